"""Operators of files that are a function of each float, and their attributes.

Each is a `Function`; what has its own numbers is written here, the rest is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.magnitudes.functions import FUNCTIONS, TINY, Function, below_zero, held
from tests.magnitudes.grid import Bound

_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


@dataclass(frozen=True)
class Operator:
    """One operator of x.

    kind    of the file's format
    attrs   attributes, or fields of its options
    more    constants after x
    """

    kind: str
    function: Function
    attrs: dict[str, Any] = field(default_factory=dict)
    more: tuple[float, ...] = ()


def _own(name: str) -> Function:
    return FUNCTIONS[name]


def _hard(slope: float, offset: float) -> Any:
    return lambda x: held(0, 1)(slope * x + offset)


def _swish(x: Any) -> Any:
    return x * FUNCTIONS["logistic"].true(x)


def _power(exponent: float) -> Operator:
    """The logarithm is rounded before it is multiplied."""
    words = "1e-5 of the result"
    function = Function(lambda x: np.power(x, np.full_like(x, np.float32(exponent))),
                        Bound(170, 1.2e-38), words)  # fmt: skip
    return Operator("Pow", function, {}, (exponent,))


_EXPM1 = np.expm1
_NEAR = Bound(3, 3e-38)
# a sum of what nearly cancels is right to a step of its parts
_LINE = Bound(2, 1.2e-7)
ONNX: dict[str, Operator] = {
    **{
        kind: Operator(kind, _own(name))
        for kind, name in {
            "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin",
            "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh", "Ceil": "ceil",
            "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
            "Gelu": "gelu", "Identity": "copy", "Log": "log", "Mish": "mish",
            "Neg": "negate", "Round": "round", "Sigmoid": "logistic", "Sign": "sign",
            "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Sqrt": "sqrt",
            "Tan": "tan", "Tanh": "tanh",
        }.items()
    },
    "GeluTanh": Operator("Gelu", _own("gelu_tanh"), {"approximate": "tanh"}),
    "Celu": Operator("Celu", Function(
        below_zero(lambda x: 2.5 * _EXPM1(x / 2.5)), _NEAR), {"alpha": 2.5}),
    "Elu": Operator("Elu", Function(below_zero(lambda x: 1.5 * _EXPM1(x)), _NEAR),
                    {"alpha": 1.5}),
    "HardSigmoid": Operator("HardSigmoid", Function(
        _hard(float(np.float32(0.2)), 0.5), _LINE)),
    "HardSwish": Operator("HardSwish", Function(
        lambda x: x * _hard(1 / 6, 0.5)(x), Bound(2, 5e-7))),
    "LeakyRelu": Operator("LeakyRelu", Function(
        below_zero(lambda x: float(np.float32(0.2)) * x), Bound(1)), {"alpha": 0.2}),
    "PRelu": Operator("PRelu", Function(
        below_zero(lambda x: 0.25 * x), Bound(1)), {}, (0.25,)),
    "Pow": _power(1.75),
    "PowHalf": _power(0.5),
    "PowOdd": _power(3.0),
    "PowMinus": _power(-2.0),
    "Reciprocal": Operator("Reciprocal", Function(lambda x: 1 / x, Bound(1))),
    "Relu": Operator("Relu", Function(held(0, np.inf), Bound(0))),
    "Clip": Operator("Clip", Function(held(-1, 6), Bound(0)), {}, (-1.0, 6.0)),
    "Selu": Operator("Selu", Function(below_zero(
        lambda x: _ALPHA * _GAMMA * _EXPM1(x), lambda x: _GAMMA * x), _NEAR)),
    "Shrink": Operator("Shrink", Function(
        lambda x: np.where(x < -0.5, x, np.where(x > 0.5, x, 0.0)), Bound(0)),
        {"lambd": 0.5}),
    "Softsign": Operator("Softsign", Function(lambda x: x / (1 + np.abs(x)))),
    "Swish": Operator("Swish", Function(_swish, Bound(3, 5e-37))),
    "ThresholdedRelu": Operator("ThresholdedRelu", Function(
        lambda x: np.where(x > 1.0, x, 0.0), Bound(0))),
}  # fmt: skip


_LEAKY = Function(below_zero(lambda x: float(np.float32(0.2)) * x), Bound(1))
TFLITE: dict[str, Operator] = {
    **{
        kind: Operator(kind, _own(name))
        for kind, name in {
            "ABS": "abs",
            "CEIL": "ceil",
            "COS": "cos",
            "EXP": "exp",
            "FLOOR": "floor",
            "LOG": "log",
            "LOGISTIC": "logistic",
            "NEG": "negate",
            "ROUND": "round",
            "SIN": "sin",
            "SQRT": "sqrt",
            "TANH": "tanh",
        }.items()
    },
    "ELU": Operator("ELU", Function(below_zero(_EXPM1))),
    "GELU": Operator("GELU", _own("gelu"), {"GeluOptions": {"Approximate": False}}),
    "GELU_TANH": Operator(
        "GELU", _own("gelu_tanh"), {"GeluOptions": {"Approximate": True}}
    ),
    "HARD_SWISH": Operator(
        "HARD_SWISH", Function(lambda x: x * (held(0, 6)(x + 3) / 6), Bound(2, 1e-6))
    ),
    "LEAKY_RELU": Operator("LEAKY_RELU", _LEAKY, {"LeakyReluOptions": {"Alpha": 0.2}}),
    "RELU": Operator("RELU", Function(held(0, np.inf), Bound(0))),
    "RELU6": Operator("RELU6", Function(held(0, 6), Bound(0))),
    "RELU_N1_TO_1": Operator("RELU_N1_TO_1", Function(held(-1, 1), Bound(0))),
    "RSQRT": Operator("RSQRT", Function(lambda x: 1 / np.sqrt(x), Bound(2))),
    "SQUARE": Operator("SQUARE", Function(lambda x: x * x, Bound(0))),
}


# as ONNX's operator of a row above
_AS_ONNX = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "clone": "Identity",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "gelu": "Gelu", "hardswish": "HardSwish", "log": "Log", "mish": "Mish",
    "neg": "Neg", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round",
    "selu": "Selu", "sigmoid": "Sigmoid", "sign": "Sign", "silu": "Swish",
    "sin": "Sin", "sinh": "Sinh", "softplus": "Softplus", "softsign": "Softsign",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip


def _ended(kind: str, **ends: float) -> Operator:
    function = held(ends.get("min", -np.inf), ends.get("max", np.inf))
    return Operator(kind, Function(function, Bound(0)), dict(ends))


ATEN: dict[str, Operator] = {
    **{kind: Operator(kind, ONNX[row].function) for kind, row in _AS_ONNX.items()},
    "celu": Operator("celu", Function(below_zero(_EXPM1, lambda x: x), _NEAR)),
    "exp2": Operator("exp2", Function(np.exp2, Bound(40, TINY))),
    "expm1": Operator("expm1", Function(_EXPM1, _LINE)),
    "hardshrink": Operator("hardshrink", Function(
        lambda x: np.where(np.abs(x) <= 0.5, 0.0, x), Bound(0))),
    "log_sigmoid": Operator("log_sigmoid", Function(
        lambda x: -np.logaddexp(0, -x), Bound(3, TINY))),
    "logit": Operator("logit", Function(
        lambda x: np.log(x / (1 - x)), Bound(3, 3e-7))),
    "softshrink": Operator("softshrink", Function(
        lambda x: x - np.clip(x, -0.5, 0.5))),
    "square": Operator("square", Function(lambda x: x * x, Bound(0))),
    "threshold": Operator("threshold", Function(
        lambda x: np.where(x <= 1, 2.0, x), Bound(0)),
        {"threshold": 1.0, "value": 2.0}),
    "trunc": Operator("trunc", Function(np.trunc, Bound(0))),
    "clamp": _ended("clamp", min=-1.0, max=6.0),
    "clamp_max": _ended("clamp_max", max=6.0),
    "clamp_min": _ended("clamp_min", min=-1.0),
    "clip": _ended("clip", min=-1.0, max=6.0),
    "elu": Operator("elu", ONNX["Elu"].function, {"alpha": 1.5}),
    "elu_scaled": Operator("elu", Function(
        below_zero(lambda x: 3 * _EXPM1(x), lambda x: 2 * x), _NEAR),
        {"alpha": 1.5, "scale": 2.0}),
    "gelu_tanh": Operator("gelu", _own("gelu_tanh"), {"approximate": "tanh"}),
    "hardsigmoid": Operator("hardsigmoid", Function(_hard(1 / 6, 0.5), _LINE)),
    "hardtanh": Operator("hardtanh", Function(held(-1, 1), Bound(0))),
    "leaky_relu": Operator("leaky_relu", _LEAKY, {"negative_slope": 0.2}),
    "log10": Operator("log10", Function(np.log10, Bound(3))),
    "log1p": Operator("log1p", Function(np.log1p, Bound(4))),
    "log2": Operator("log2", Function(np.log2, Bound(3))),
    "pow": Operator("pow", ONNX["Pow"].function, {"exponent": 1.75}),
    "relu6": Operator("relu6", Function(held(0, 6), Bound(0))),
    "rsqrt": Operator("rsqrt", Function(lambda x: 1 / np.sqrt(x), Bound(3))),
    "softplus_steep": Operator("softplus", Function(
        lambda x: np.where(2 * x > 20, x, np.logaddexp(0, 2 * x) / 2), Bound(3, TINY)),
        {"beta": 2.0}),
}  # fmt: skip
