"""Elementwise arithmetic that takes several ONNX operators."""

from __future__ import annotations

from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Ref


def operand(w: Writer, call: Call, name: str, kind: str) -> str:
    """Return a tensor or number argument, in a type."""
    value = call.get(name)
    if isinstance(value, Ref):
        return w.as_kind(value.name, kind)
    if isinstance(value, bool | int | float):
        return w.const(value, kind)
    raise call.invalid(f"its '{name}' is missing")


def div(w: Writer, call: Call) -> None:
    made, mode = w.kind(call.outputs[0]), call.get("rounding_mode")
    if ".floor_divide" in call.target:
        mode = "floor"
    a, b = (operand(w, call, name, made) for name in ("self", "other"))
    if mode is None:
        w.give("Div", a, b)
    elif mode == "floor":
        _floor_divide(w, a, b)
    elif mode == "trunc" and "float" in made:
        _towards_zero(w, w.op("Div", a, b))
    else:
        w.give("Div", a, b)


def _floor_divide(w: Writer, a: str, b: str) -> None:
    """Divide through the remainder, as torch does: 0.9 / 0.3 may be 2."""
    kind = w.kind(w.call.outputs[0])
    zero, less = (w.const(n, kind) for n in (0, 1))
    left = w.op("Mod", a, b, fmod=1)
    whole = w.op("Div", w.op("Sub", a, left), b)
    signs = (w.op("Less", n, zero) for n in (left, b))
    below = w.op("And", w.op("Xor", *signs), w.op("Not", w.op("Equal", left, zero)))
    whole = w.op("Where", below, w.op("Sub", whole, less), whole)
    if "float" in kind:  # which is whole but for rounding
        w.give("Round", whole)
    else:
        w.give("Identity", whole)


def _towards_zero(w: Writer, x: str) -> None:
    w.give("Mul", w.op("Sign", x), w.op("Floor", w.op("Abs", x)))


def trunc(w: Writer, call: Call) -> None:
    _towards_zero(w, call.tensor("self"))


def remainder(w: Writer, call: Call) -> None:
    """The remainder of a division, with the sign of the divisor; fmod: with that of the
    dividend."""
    made = w.kind(call.outputs[0])
    a, b = (operand(w, call, name, made) for name in ("self", "other"))
    if ".fmod" in call.target or "float" not in made:
        w.give("Mod", a, b, fmod=int(".fmod" in call.target))
        return
    zero, left = w.const(0, made), w.op("Mod", a, b, fmod=1)
    signs = (w.op("Less", n, zero) for n in (left, b))
    other = w.op("And", w.op("Xor", *signs), w.op("Not", w.op("Equal", left, zero)))
    w.give("Where", other, w.op("Add", left, b), left)


def lerp(w: Writer, call: Call) -> None:
    """self + weight * (end - self)"""
    x, made = call.tensor("self"), w.kind(call.outputs[0])
    way = w.op("Sub", call.tensor("end"), x)
    w.give("Add", x, w.op("Mul", operand(w, call, "weight", made), way))


def added(kind: str) -> Handler:
    """addcmul, addcdiv: self + value * (tensor1 by tensor2)."""

    def handler(w: Writer, call: Call) -> None:
        made = w.op(kind, call.tensor("tensor1"), call.tensor("tensor2"))
        value = call.get("value", 1)
        if value != 1:
            made = w.op("Mul", made, w.const(value, w.kind(call.outputs[0])))
        w.give("Add", call.tensor("self"), made)

    return handler


def threshold(w: Writer, call: Call) -> None:
    """x above a threshold, else a value."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    bound, value = (w.const(call.get(n), kind) for n in ("threshold", "value"))
    w.give("Where", w.op("LessOrEqual", x, bound), value, x)


def expm1(w: Writer, call: Call) -> None:
    """expm1: exp(x) - 1, exact near 0 as in torch: by Elu below 0, and through Elu of
    -x above."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    zero, whole = w.const(0, kind), w.const(1, kind)
    less = w.op("Elu", w.op("Neg", w.op("Abs", x)))
    more = w.op("Div", w.op("Neg", less), w.op("Add", less, whole))
    near = w.op("Where", w.op("Less", x, zero), less, more)
    far = w.op("Sub", w.op("Exp", x), whole)
    w.give("Where", w.op("Less", x, whole), near, far)


def log1p(w: Writer, call: Call) -> None:
    """log(1 + x), exact near 0: what 1 + x loses is put right by a factor.

    Source  W. Kahan; D. Goldberg, What every computer scientist should know, theorem 4
    """
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    whole = w.const(1, kind)
    more = w.op("Add", x, whole)
    rest, log = w.op("Sub", more, whole), w.op("Log", more)
    none = w.op("Equal", rest, w.const(0, kind))
    safe = w.op("Where", none, whole, rest)
    near = w.op("Where", none, x, w.op("Div", w.op("Mul", log, x), safe))
    w.give("Where", w.op("Less", x, whole), near, log)


def exp2(w: Writer, call: Call) -> None:
    w.give("Pow", w.const(2, w.kind(call.outputs[0])), call.tensor("self"))


def log_add_exp(w: Writer, call: Call) -> None:
    """log(exp(a) + exp(b)), by the greater one."""
    a, b = call.tensor("self"), call.tensor("other")
    less = w.op("Neg", w.op("Abs", w.op("Sub", a, b)))
    w.give("Add", w.op("Max", a, b), w.op("Softplus", less))


def log_sigmoid(w: Writer, call: Call) -> None:
    w.give("Neg", w.op("Softplus", w.op("Neg", call.tensor("self"))))


def logit(w: Writer, call: Call) -> None:
    x, kind, eps = call.tensor("self"), w.kind(call.outputs[0]), call.get("eps")
    if eps is not None:
        x = w.op("Clip", x, w.const(eps, kind), w.const(1 - float(eps), kind))
    w.give("Log", w.op("Div", x, w.op("Sub", w.const(1, kind), x)))


def hypot(w: Writer, call: Call) -> None:
    """sqrt(a * a + b * b), over the greater one, so that no square is too large."""
    a, b = (w.op("Abs", call.tensor(name)) for name in ("self", "other"))
    kind = w.kind(call.outputs[0])
    most = w.op("Max", a, b)
    none = w.op("Equal", most, w.const(0, kind))
    safe = w.op("Where", none, w.const(1, kind), most)
    parts = [w.op("Div", one, safe) for one in (a, b)]
    squares = [w.op("Mul", one, one) for one in parts]
    w.give("Mul", most, w.op("Sqrt", w.op("Add", *squares)))


def hard_shrink(w: Writer, call: Call) -> None:
    """0 where x is at most a number from 0, else x; NaN stays NaN."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    least = w.const(float(call.get("lambd", 0.5)), kind)
    near = w.op("LessOrEqual", w.op("Abs", x), least)
    w.give("Where", near, w.const(0, kind), x)


def soft_shrink(w: Writer, call: Call) -> None:
    """x less what it has within limits."""
    x, kind = call.tensor("self"), w.kind(call.outputs[0])
    most = float(call.get("lambd", 0.5))
    ends = (w.const(end, kind) for end in (-most, most))
    w.give("Sub", x, w.op("Clip", x, *ends))


def square(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    w.give("Mul", x, x)


ARITHMETIC: dict[str, Handler] = {
    **dict.fromkeys(("div", "divide", "floor_divide", "true_divide"), div),
    "addcdiv": added("Div"), "addcmul": added("Mul"), "expm1": expm1,
    "exp2": exp2, "hardshrink": hard_shrink, "hypot": hypot,
    **dict.fromkeys(("log_sigmoid", "log_sigmoid_forward"), log_sigmoid),
    "log1p": log1p, "logaddexp": log_add_exp, "logit": logit,
    "softshrink": soft_shrink,
    "fmod": remainder, "lerp": lerp, "remainder": remainder, "square": square,
    "threshold": threshold, "trunc": trunc,
}  # fmt: skip
