"""Operators of files that are a function of each float, and their attributes.

Each is a `Function`; what has its own numbers is written here, the rest is named.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.magnitudes.functions import FUNCTIONS, Function, below_zero, held
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
