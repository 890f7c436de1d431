"""map: one function of each element of the inputs, broadcast, in every type.

FUNCTIONS is the table of functions; kernels/any_type/map.py has their expressions.
Integers wrap as in C; float16 is computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pybuild.dtype import HALVES, Array, DType, widened
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value
from pybuild.ops.fixed_point.logarithm import fixed_log
from pybuild.ops.fixed_point.quant import requantize
from pybuild.records import dataclass

Numpy = Callable[..., Any]
INTEGERS = tuple(
    DType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)
FLOATS = (DType.FLOAT32, DType.FLOAT64, *HALVES)
NUMBERS = (*INTEGERS, *FLOATS)
ANY = (*NUMBERS, DType.BOOL)
_SIZES = "each size must be 1 or that of the others, counted from the last"
LOGICAL = (DType.BOOL,)


@dataclass(frozen=True)
class Function:
    """One function of `count` elements.

    types   of the inputs, which are all of one type (but see `mixed`)
    result  "same" as the last input, "bool", or "to": as the attribute says
    mixed   the first input is bool, whatever the others are
    """

    count: int
    types: tuple[DType, ...]
    numpy: Numpy
    result: str = "same"
    mixed: bool = False


def _divided(a: Any, b: Any) -> Any:
    """Integers toward zero; by zero: 0, and the one that overflows wraps."""
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    quotient = a // safe
    if a.dtype.kind == "i":
        quotient = quotient + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, quotient).astype(a.dtype)


def _remainder(a: Any, b: Any) -> Any:
    """With the sign of the divisor; by zero: 0."""
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _truncated_remainder(a: Any, b: Any) -> Any:
    """With the sign of the dividend; by zero: 0."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _power(a: Any, b: Any) -> Any:
    """Integers to exponents from 0 to 63, wrapping."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    total, base, left = np.ones_like(a), a, np.clip(b, 0, 63)
    for _ in range(6):
        total = np.where(left & 1, total * base, total).astype(a.dtype)
        base, left = (base * base).astype(a.dtype), left >> 1
    return total


def _shifted(a: Any, b: Any, left: bool) -> Any:
    """Counts of the type's width or more, or below 0, shift everything out; to the
    right the sign comes in."""
    bits = a.dtype.itemsize * 8
    outside = (b < 0) | (b >= bits)
    count = np.where(outside, bits - 1, b).astype(a.dtype)
    if not left:
        lost = np.right_shift(np.right_shift(a, count), 1)
        return np.where(outside, lost, np.right_shift(a, count)).astype(a.dtype)
    return np.where(outside, 0, np.left_shift(a, count)).astype(a.dtype)


def _requantized(x: Any, multiplier: Any, shift: Any) -> Any:
    """x * multiplier * 2^(shift - 31) by two roundings; shifts to the left wrap,
    none is beyond 30."""
    lifted = np.left_shift(x, np.maximum(shift, 0)).astype(np.int32)
    made = requantize(lifted, multiplier, np.minimum(shift, 0), "double")
    return made.astype(x.dtype)


def _requantized_once(x: Any, multiplier: Any, shift: Any) -> Any:
    """The same by one rounding, ties away from zero; what is beyond int32 wraps."""
    return requantize(x, multiplier, shift, "away").astype(x.dtype)


def _erf(x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[x.dtype])(x) if x.size else x


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _mish(x: Any) -> Any:
    return x * np.tanh(_softplus(x))


def _gelu(x: Any) -> Any:
    import math

    share = np.vectorize(lambda v: math.erfc(-v * math.sqrt(0.5)), otypes=[np.float64])
    return (0.5 * x * share(x)).astype(x.dtype) if x.size else x


def _gelu_tanh(x: Any) -> Any:
    inner = x * x.dtype.type(2 * (2 / np.pi) ** 0.5)
    return x * _logistic(inner * (1 + x.dtype.type(0.044715) * x * x))


def _below(a: Any, b: Any) -> Any:
    return (
        np.where(np.isnan(a) | (a < b), a, b)
        if a.dtype.kind == "f"
        else (np.minimum(a, b))
    )


def _above(a: Any, b: Any) -> Any:
    return (
        np.where(np.isnan(a) | (a > b), a, b)
        if a.dtype.kind == "f"
        else (np.maximum(a, b))
    )


def _unary(numpy: Numpy, types: tuple[DType, ...] = FLOATS) -> Function:
    return Function(1, types, numpy)


def _compare(numpy: Numpy, types: tuple[DType, ...] = NUMBERS) -> Function:
    return Function(2, types, numpy, "bool")


FUNCTIONS: dict[str, Function] = {
    "abs": _unary(np.abs, NUMBERS),
    "acos": _unary(np.arccos),
    "acosh": _unary(np.arccosh),
    "add": Function(2, NUMBERS, np.add),
    "and": Function(2, LOGICAL, np.logical_and),
    "asin": _unary(np.arcsin),
    "asinh": _unary(np.arcsinh),
    "atan": _unary(np.arctan),
    "atanh": _unary(np.arctanh),
    "bit_and": Function(2, INTEGERS, np.bitwise_and),
    "bit_not": Function(1, INTEGERS, np.bitwise_not),
    "bit_or": Function(2, INTEGERS, np.bitwise_or),
    "bit_xor": Function(2, INTEGERS, np.bitwise_xor),
    "bits": Function(1, NUMBERS, lambda x: x, "to"),
    "cast": Function(1, ANY, lambda x: x, "to"),
    "ceil": _unary(np.ceil),
    "copy": _unary(lambda x: x, ANY),
    "cos": _unary(np.cos),
    "cosh": _unary(np.cosh),
    "divide": Function(2, NUMBERS, _divided),
    "equal": _compare(np.equal, ANY),
    "erf": _unary(_erf),
    "exp": _unary(np.exp),
    "expm1": _unary(np.expm1),
    "fixed_log": _unary(fixed_log, (DType.INT32,)),
    "floor": _unary(np.floor),
    "gelu": _unary(_gelu),
    "gelu_tanh": _unary(_gelu_tanh),
    "is_infinite": Function(1, FLOATS, np.isinf, "bool"),
    "is_nan": Function(1, FLOATS, np.isnan, "bool"),
    "less": _compare(np.less),
    "less_or_equal": _compare(np.less_equal),
    "log": _unary(np.log),
    "log1p": _unary(np.log1p),
    "maximum": Function(2, NUMBERS, _above),
    "minimum": Function(2, NUMBERS, _below),
    "mish": _unary(_mish),
    "modulo": Function(2, NUMBERS, _remainder),
    "multiply": Function(2, NUMBERS, np.multiply),
    "negate": _unary(np.negative, NUMBERS),
    "not": Function(1, LOGICAL, np.logical_not),
    "or": Function(2, LOGICAL, np.logical_or),
    "power": Function(2, NUMBERS, _power),
    "remainder": Function(2, NUMBERS, _truncated_remainder),
    "requantize": Function(3, (DType.INT32,), _requantized),
    "requantize_once": Function(3, (DType.INT32,), _requantized_once),
    "round": _unary(np.rint),
    "shift_left": Function(2, INTEGERS, lambda a, b: _shifted(a, b, True)),
    "shift_right": Function(2, INTEGERS, lambda a, b: _shifted(a, b, False)),
    "sigmoid": _unary(_logistic),
    "sign": _unary(np.sign, NUMBERS),
    "sin": _unary(np.sin),
    "sinh": _unary(np.sinh),
    "softplus": _unary(_softplus),
    "sqrt": _unary(np.sqrt),
    "subtract": Function(2, NUMBERS, np.subtract),
    "tan": _unary(np.tan),
    "tanh": _unary(np.tanh),
    "where": Function(3, ANY, np.where, mixed=True),
    "xor": Function(2, LOGICAL, np.logical_xor),
}


def function_of(node: Node, graph: Graph) -> Function:
    """The function of a `map` node.

    Errors  BuildError for a function that does not exist
    """
    name = str(node.attrs["fn"])
    if name not in FUNCTIONS:
        raise invalid(node, graph, f"the function '{name}' does not exist")
    return FUNCTIONS[name]


def infer(node: Node, graph: Graph) -> Types:
    """attrs fn (a name of FUNCTIONS); to: type of the result of "cast"; shape: that
    the result is broadcast to as well

    Errors  BuildError where types or shapes do not fit
    """
    found = function_of(node, graph)
    inputs = [operand(node, graph, i) for i in range(found.count)]
    own = inputs[1:] if found.mixed else inputs
    kinds = {x.dtype for x in own}
    if len(kinds) > 1 or not kinds <= set(found.types):
        names = ", ".join(sorted(k.value for k in kinds))
        raise invalid(node, graph, f"'{node.attrs['fn']}' of {names}")
    if found.mixed and inputs[0].dtype is not DType.BOOL:
        raise invalid(node, graph, f"'{inputs[0].name}' is not bool")
    shapes = [x.shape for x in inputs]
    if "shape" in node.attrs:
        shapes.append(tuple(node.attrs["shape"]))
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(list(s)) for s in shapes)
        raise invalid(node, graph, f"{text} do not broadcast", _SIZES) from None
    if node.attrs["fn"] == "bits":
        _same_bits(node, graph, own[-1].dtype)
    return ((tuple(shape), _result(node, found, own[-1].dtype)),)


def _same_bits(node: Node, graph: Graph, x: DType) -> None:
    to = DType(node.attrs["to"])
    if to.bytes != x.bytes or to is DType.BOOL:
        raise invalid(node, graph, f"the bits of {x.value} are no {to.value}")


def _result(node: Node, found: Function, last: DType) -> DType:
    match found.result:
        case "bool":
            return DType.BOOL
        case "to":
            return DType(node.attrs["to"])
    return last


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning."""
    found, y = function_of(node, graph), graph.tensor(node.output)
    reads = [value(values, i) for i in range(found.count)]
    with np.errstate(all="ignore"):
        if node.attrs["fn"] == "cast":
            made = converted(widened(reads[0]), y.dtype)
        elif node.attrs["fn"] == "bits":
            made = reads[0].view(y.dtype.numpy)
        else:
            made = np.asarray(found.numpy(*map(widened, reads)))
    made = np.broadcast_to(made, y.shape)
    return (np.ascontiguousarray(made).astype(y.dtype.numpy).reshape(y.shape),)


def converted(x: Any, dtype: DType) -> Any:
    """The numbers converted as in C; values out of range are clamped to int64 (or
    uint64), then wrap; NaN is 0."""
    if dtype is DType.BOOL:
        return x != 0
    if x.dtype.kind == "f" and not dtype.is_float:
        if dtype is DType.UINT64:
            held = np.where(np.isnan(x), 0, np.clip(x, 0, None)).astype(np.float64)
            return np.where(held >= 2.0**64, 0, held).astype(np.uint64)
        held = np.where(np.isnan(x), 0, x).astype(np.float64)
        top = np.nextafter(2.0**63, 0)
        return np.clip(held, -(2.0**63), top).astype(np.int64).astype(dtype.numpy)
    return x.astype(dtype.numpy)
