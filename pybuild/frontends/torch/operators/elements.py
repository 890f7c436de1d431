"""Elementwise operators: arithmetic, activations, comparison, conversion."""

from __future__ import annotations

import math
from typing import Any

from pybuild.frontends.torch.operators.arithmetic import ARITHMETIC, operand
from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Ref


def one(kind: str, **attrs: Any) -> Handler:
    """Return a handler for an operator of one tensor."""

    def handler(w: Writer, call: Call) -> None:
        x, made = call.tensor("self", "input"), w.kinds.get(call.outputs[0], "")
        whole = "float" not in w.kind(x) and "float" in made
        w.give(kind, w.cast(x, made) if whole else x, **attrs)

    return handler


def two(kind: str, turned: bool = False) -> Handler:
    """Return a handler for an operator of two tensors, the second multiplied by
    `alpha`."""

    def handler(w: Writer, call: Call) -> None:
        made = w.kind(call.outputs[0])
        a, b = (operand(w, call, name, made) for name in ("self", "other"))
        alpha = call.get("alpha", 1)
        if turned:
            a, b = b, a
        if alpha != 1:
            factor = w.const(alpha, made)
            a, b = (
                (w.op("Mul", a, factor), b) if turned else (a, w.op("Mul", b, factor))
            )
        w.give(kind, a, b)

    return handler


def truth(w: Writer, call: Call, kind: str, *inputs: str) -> None:
    """Emit a bool; for a call in place, 1 or 0 in the type of its tensor."""
    made = w.kind(call.outputs[0])
    if made == "bool":
        w.give(kind, *inputs)
    else:
        w.give("Identity", w.cast(w.op(kind, *inputs), made))


def logical(kind: str) -> Handler:
    """Return a handler that treats every value other than 0 as true."""

    def handler(w: Writer, call: Call) -> None:
        names = [n for n in ("self", "other") if n in call.args]
        truth(w, call, kind, *(operand(w, call, name, "bool") for name in names))

    return handler


def compared(kind: str, no: bool = False) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        x = call.tensor("self")
        other = call.get("other")
        names = [w.kind(x)]
        if isinstance(other, Ref):
            names.append(w.kind(other.name))
        floats = [name for name in names if "float" in name]
        common = floats[0] if floats else max(names, key=_width)
        if not floats and isinstance(other, float):
            common = "float32"
        b = operand(w, call, "other", common)
        made = [w.as_kind(x, common), b]
        if no:
            truth(w, call, "Not", w.op(kind, *made))
        else:
            truth(w, call, kind, *made)

    return handler


def _width(name: str) -> int:
    return int("".join(filter(str.isdigit, name)) or 1)


def bits(kind: str) -> Handler:
    """Return a handler for booleans, or for each bit of integers."""

    def handler(w: Writer, call: Call) -> None:
        made = w.kind(call.outputs[0])
        a, b = (operand(w, call, name, made) for name in ("self", "other"))
        w.give(kind if made == "bool" else f"Bitwise{kind}", a, b)

    return handler


def bitwise_not(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    w.give("Not" if w.kind(x) == "bool" else "BitwiseNot", x)


def power(w: Writer, call: Call) -> None:
    made = w.kind(call.outputs[0])
    a = operand(w, call, "self", made)
    w.give("Pow", a, operand(w, call, "exponent", made))


def clamp(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    kind = w.kind(call.outputs[0])
    bounds = []
    for names in (("min", "min_val"), ("max", "max_val")):
        value = next((call.args[n] for n in names if call.get(n) is not None), None)
        if isinstance(value, Ref):
            raise call.invalid("bounds that are tensors are not supported")
        bounds.append("" if value is None else w.const(value, kind))
    w.give("Clip", w.as_kind(x, kind), *(bounds if bounds[1] else bounds[:1]))


def hardtanh(w: Writer, call: Call) -> None:
    low, high = call.get("min_val", -1.0), call.get("max_val", 1.0)
    w.give(
        "Clip", call.tensor("self"), w.const(low, "float32"), w.const(high, "float32")
    )


def relu6(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    w.give("Clip", x, w.const(0.0, "float32"), w.const(6.0, "float32"))


def silu(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    w.give("Mul", x, w.op("Sigmoid", x))


def gelu(w: Writer, call: Call) -> None:
    w.give("Gelu", call.tensor("self"), approximate=call.get("approximate", "none"))


def elu(w: Writer, call: Call) -> None:
    """scale * x, or scale * alpha * (exp(input_scale * x) - 1) below 0."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    names = (("alpha", 1.0), ("scale", 1.0), ("input_scale", 1.0))
    alpha, scale, inner = (float(call.get(*name)) for name in names)
    if (scale, inner) == (1, 1):
        w.give("Elu", x, alpha=alpha)
        return
    zero, by = w.const(0.0, kind), w.const(scale, kind)
    above = w.op("Mul", x, by)
    scaled = w.op("Mul", w.op("Min", x, zero), w.const(inner, kind))
    below = w.op("Mul", w.op("Elu", scaled, alpha=alpha), by)
    w.give("Where", w.op("Less", x, zero), below, above)


def sloped(kind: str, name: str, default: float) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        w.give(kind, call.tensor("self"), alpha=float(call.get(name, default)))

    return handler


def prelu(w: Writer, call: Call) -> None:
    x, slope = call.tensor("self"), call.tensor("weight")
    count = w.shape(slope)[0] if w.rank(slope) else 1
    row = [count, *[1] * max(w.rank(x) - 2, 0)]
    w.give("PRelu", x, w.reshape(slope, row))


# beyond it log(1 + exp(x)) is x in float32
_STRAIGHT = 18


def softplus(w: Writer, call: Call) -> None:
    """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    beta, threshold = (float(call.get(*n)) for n in (("beta", 1), ("threshold", 20)))
    if not beta:
        raise call.invalid("beta is 0")
    scaled = x if beta == 1 else w.op("Mul", x, w.const(beta, kind))
    if beta == 1 and threshold >= _STRAIGHT:
        w.give("Softplus", x)
        return
    made = w.op("Softplus", scaled)
    made = made if beta == 1 else w.op("Mul", made, w.const(1 / beta, kind))
    w.give("Where", w.op("Greater", scaled, w.const(threshold, kind)), x, made)


def rsqrt(w: Writer, call: Call) -> None:
    w.give("Reciprocal", w.op("Sqrt", call.tensor("self")))


def logarithm(base: float) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        natural = w.op("Log", call.tensor("self"))
        w.give("Mul", natural, w.const(1 / math.log(base), "float32"))

    return handler


def where(w: Writer, call: Call) -> None:
    made = w.kind(call.outputs[0])
    a, b = (operand(w, call, name, made) for name in ("self", "other"))
    w.give("Where", call.tensor("condition"), a, b)


def masked_fill(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    value = operand(w, call, "value", w.kind(x))
    w.give("Where", call.tensor("mask"), value, x)


def convert(w: Writer, call: Call) -> None:
    x, made = call.tensor("self"), w.kind(call.outputs[0])
    if w.kind(x) == made:
        w.same(x)
    else:
        w.give("Identity", w.cast(x, made))


def identity(w: Writer, call: Call) -> None:
    w.same(call.tensor("self", "input"))


def dropout(w: Writer, call: Call) -> None:
    if call.get("train") is True:
        raise call.invalid("is in training mode", "model.eval() before the export")
    w.same(call.tensor("input", "self"))


def glu(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim", -1)), w.rank(x))
    half = w.shape(x)[axis] // 2
    parts = [w.fresh(), w.fresh()]
    w.op("Split", x, w.ints([half, half]), to=parts, axis=axis)
    w.give("Mul", parts[0], w.op("Sigmoid", parts[1]))


def softmax(kind: str) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        x = call.tensor("self")
        w.give(kind, x, axis=w.axis(int(call.get("dim", -1)), w.rank(x)))

    return handler


_ONE = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil",
    "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor",
    "hardswish": "HardSwish", "hardswish_": "HardSwish", "isinf": "IsInf",
    "isnan": "IsNaN",
    "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "relu_": "Relu", "round": "Round",
    "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "softsign": "Softsign",
    "selu": "Selu",
}  # fmt: skip
_TWO = {
    "add": "Add", "add_": "Add", "sub": "Sub", "mul": "Mul", "mul_": "Mul",
    "maximum": "Max", "minimum": "Min", "multiply": "Mul", "subtract": "Sub",
}  # fmt: skip
_LOGICAL = {"and": "And", "not": "Not", "or": "Or", "xor": "Xor"}
_BITS = {"and": "And", "or": "Or", "xor": "Xor"}
_COMPARED = {
    "eq": ("Equal", False), "ne": ("Equal", True), "lt": ("Less", False),
    "le": ("LessOrEqual", False), "gt": ("Greater", False),
    "ge": ("GreaterOrEqual", False),
}  # fmt: skip
_SAME = (
    "alias", "clone", "contiguous", "detach", "detach_", "lift_fresh_copy",
    "feature_dropout", "copy",
)  # fmt: skip

ELEMENTS: dict[str, Handler] = {
    **{name: one(kind) for name, kind in _ONE.items()},
    **{name: two(kind) for name, kind in _TWO.items()},
    **{name: bits(kind) for key, kind in _BITS.items()
       for name in (f"bitwise_{key}", f"__{key}__")},
    **{f"logical_{key}": logical(kind) for key, kind in _LOGICAL.items()},
    **{name: compared(*kind) for name, kind in _COMPARED.items()},
    **dict.fromkeys(_SAME, identity),
    **dict.fromkeys(("dropout", "dropout_", "native_dropout"), dropout),
    **dict.fromkeys(("_to_copy", "to", "type_as"), convert),
    **dict.fromkeys(("clamp", "clamp_", "clip", "clamp_min", "clamp_max"), clamp),
    **dict.fromkeys(("hardtanh", "hardtanh_"), hardtanh),
    **dict.fromkeys(("relu6", "relu6_"), relu6),
    **dict.fromkeys(("silu", "silu_"), silu),
    **dict.fromkeys(("leaky_relu", "leaky_relu_"),
                    sloped("LeakyRelu", "negative_slope", 0.01)),
    **dict.fromkeys(("elu", "elu_"), elu),
    **dict.fromkeys(("softmax", "_softmax"), softmax("Softmax")),
    **dict.fromkeys(("log_softmax", "_log_softmax"), softmax("LogSoftmax")),
    **ARITHMETIC, "bitwise_not": bitwise_not, "celu": sloped("Celu", "alpha", 1.0),
    "gelu": gelu, "glu": glu,
    "hardsigmoid": one("HardSigmoid", alpha=1 / 6, beta=0.5),
    "log10": logarithm(10), "log2": logarithm(2), "masked_fill": masked_fill,
    "mish": one("Mish"), "pow": power, "prelu": prelu,
    "rsqrt": rsqrt, "rsub": two("Sub", turned=True), "softplus": softplus,
    "where": where,
}  # fmt: skip
