"""The expression of every function of map, over elements as elements.read gives them.

The twin of ops/map.py's table of meanings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Node
from pybuild.ir.loop import (
    BOOL,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Binary,
    Cast,
    Expr,
    Intrin,
    Select,
    Var,
    binary,
    cast,
    const,
    equal,
    scalar_type,
    select,
)
from pybuild.kernels.any_type.elements import wrapping
from pybuild.kernels.base.nan import ignores
from pybuild.kernels.base.operands import short
from pybuild.kernels.epilogues.requantise import AWAY, DOUBLE
from pybuild.kernels.math import angles, curves, floats
from pybuild.kernels.math.logarithm import FIXED_LOG


def apply(name: str, values: Sequence[Expr], result: DType) -> Expr:
    """Return a function of FUNCTIONS applied to elements that read() returned, as
    `result`. The expression may use each value several times, so values must be cheap
    to repeat, or a call of the intrinsic."""
    if name == "cast":
        return _converted(values[0], result)
    kinds = tuple(scalar_type(v) for v in values)
    return _intrin(name, kinds, result)(*values)


def number_form(name: str, node: Node) -> str:
    """Return the function to use in a layer without NaN: one of FUNCTIONS, or a shorter
    form."""
    shorter = f"{name}_of_numbers"
    return shorter if ignores(node) and shorter in OF_NUMBERS else name


_LETTERS = ("a", "b", "c")


def _intrin(name: str, kinds: tuple[DType, ...], result: DType) -> Intrin:
    """Return the function as an intrinsic with a C function, so that arguments are
    computed once."""
    params = tuple(Var(n, t) for n, t in zip(_LETTERS, kinds, strict=False))
    value = (OF_NUMBERS.get(name) or EXPRESSIONS[name])(*params)
    types = "_".join(short(kind) for kind in kinds)
    made = cast(value, result)
    if isinstance(made, Select) and result.bytes < 4 and result is not BOOL:
        made = Cast(made, result)  # C's ?: gives an int
    doc = f"{name} of elements; bool is a byte."
    return Intrin(f"crt_{name}_{types}_map", params, made, doc=doc)


def _converted(x: Expr, to: DType) -> Expr:
    """Return the expression for ops.map.converted."""
    kind = scalar_type(x)
    if kind == to:
        return x
    if to is BOOL:
        return _not(equal(x, const(0, kind)))
    if kind is BOOL:
        return select(x, const(1, to), const(0, to))
    if not kind.is_float or to.is_float:
        return cast(x, to)
    v, held = Var("x", kind), Var("held", kind)
    top = 2.0**64 if to is UINT64 else 2.0**63
    low: Expr = const(0.0 if to is UINT64 else -top, kind)
    safe = select(v < const(top, kind), v, const(0.0, kind))
    lets = ((held, select(equal(v, v), select(v < low, low, safe), const(0.0, kind))),)
    wide = UINT64 if to is UINT64 else INT64
    value: Expr = cast(held, wide)
    if to is not UINT64:
        most = const((1 << 63) - 1024, INT64)
        value = select(v < const(top, kind), value, select(equal(v, v), most, value))
    name = f"crt_to_{short(to)}_{short(kind)}"
    doc = f"{kind.value} to {to.value}, held within int64 or uint64; NaN is 0."
    return Intrin(name, (v,), cast(value, to), lets, doc=doc)(x)


def _wrapped(symbol: str) -> Callable[[Expr, Expr], Expr]:
    """+, -, * of floats, or of integers that wrap."""

    def made(a: Expr, b: Expr) -> Expr:
        kind = scalar_type(a)
        if kind.is_float:
            return Binary(symbol, a, b)
        wide = wrapping(kind)
        return cast(Binary(symbol, cast(a, wide), cast(b, wide)), kind)

    return made


_add, _subtract, _multiply = _wrapped("+"), _wrapped("-"), _wrapped("*")


def _zero(a: Expr) -> Expr:
    return const(0, scalar_type(a))


def _negate(a: Expr) -> Expr:
    kind = scalar_type(a)
    return const(-1.0, kind) * a if kind.is_float else _subtract(_zero(a), a)


def _absolute(a: Expr) -> Expr:
    kind = scalar_type(a)
    if kind.is_unsigned:
        return a
    return select(a < _zero(a), _negate(a), select(equal(a, _zero(a)), _zero(a), a))


def _sign(a: Expr) -> Expr:
    kind = scalar_type(a)
    one, zero = const(1, kind), _zero(a)
    if kind.is_unsigned:
        return select(equal(a, zero), zero, one)
    minus = const(-1, kind)
    ended = select(equal(a, zero), zero, a) if kind.is_float else zero
    return select(zero < a, one, select(a < zero, minus, ended))


def _whole_quotient(a: Expr, b: Expr, symbol: str) -> Expr:
    """Return a / b or a % b of integers; 0 if b is 0, and no trap on overflow by -1."""
    kind = scalar_type(a)
    wide = (
        kind if kind.bytes >= 4 else (DType.UINT32 if kind.is_unsigned else DType.INT32)
    )
    x, y = cast(a, wide), cast(b, wide)
    zero, one = const(0, wide), const(1, wide)
    bad = equal(y, zero)
    if not wide.is_unsigned:
        bad = select(equal(y, const(-1, wide)), const(1, BOOL), bad)
    safe = select(bad, one, y)
    made = cast(Binary(symbol, x, safe), kind)
    if symbol == "%":
        return select(bad, _zero(a), made)
    if wide.is_unsigned:
        return select(bad, _zero(a), made)
    return select(bad, select(equal(y, zero), _zero(a), _negate(a)), made)


def _divide(a: Expr, b: Expr) -> Expr:
    return a / b if scalar_type(a).is_float else _whole_quotient(a, b, "/")


def _remainder(a: Expr, b: Expr) -> Expr:
    """Return the remainder with the sign of a."""
    kind = scalar_type(a)
    if not kind.is_float:
        return _whole_quotient(a, b, "%")
    size = _absolute(b)
    endless = equal(size, floats.real(kind).infinity)
    left = a - floats.truncate(kind)(a / b) * b
    return select(endless, select(_infinite(a), floats.real(kind).nan, a), left)


def _modulo(a: Expr, b: Expr) -> Expr:
    """Return the remainder with the sign of b."""
    kind = scalar_type(a)
    if kind.is_float:
        rest = _intrin("remainder", (kind, kind), kind)(a, b)
        wrong = select(rest < 0.0, b > 0.0, select(rest > 0.0, b < 0.0, const(0, BOOL)))
        return select(wrong, rest + b, rest)
    left = _whole_quotient(a, b, "%")
    if kind.is_unsigned:
        return left
    zero = _zero(a)
    other = select(
        left < zero, zero < b, select(equal(left, zero), const(0, BOOL), b < zero)
    )
    return select(other, _add(left, b), left)


def _power(a: Expr, b: Expr) -> Expr:
    """Return the power of integers by squaring, for exponents from 0 to 63."""
    kind = scalar_type(a)
    if kind.is_float:
        return floats.power(kind)(a, b)
    wide = wrapping(kind)
    x, left = Var("x", wide), Var("left", wide)
    lets = []
    total: Expr = const(1, wide)
    base: Expr = x
    for step in range(6):
        now, next_ = Var(f"total{step}", wide), Var(f"base{step}", wide)
        bit = equal((left >> const(step, wide)) & const(1, wide), const(0, wide))
        lets.append((now, select(bit, total, total * base)))
        if step < 5:
            lets.append((next_, base * base))
        total, base = now, next_
    made = Intrin(
        f"crt_whole_power_{short(wide)}",
        (x, left),
        total,
        tuple(lets),
        doc="x to the power left, from 0 to 63, by squaring.",
    )
    most = const(63, kind)
    held = select(most < b, most, b)
    if not kind.is_unsigned:
        held = select(b < _zero(b), _zero(b), held)
    return cast(made(cast(a, wide), cast(held, wide)), kind)


def _minimum(a: Expr, b: Expr) -> Expr:
    """Return the minimum; for unordered operands their sum, which is NaN."""
    if scalar_type(a).is_float:
        return select(a <= b, a, select(b < a, b, a + b))
    return select(a < b, a, b)


def _maximum(a: Expr, b: Expr) -> Expr:
    if scalar_type(a).is_float:
        return select(b <= a, a, select(a < b, b, a + b))
    return select(b < a, a, b)


def _bitwise(symbol: str) -> Callable[[Expr, Expr], Expr]:
    def made(a: Expr, b: Expr) -> Expr:
        kind, wide = scalar_type(a), wrapping(scalar_type(a))
        return cast(binary(symbol, cast(a, wide), cast(b, wide)), kind)

    return made


def _bit_not(a: Expr) -> Expr:
    kind = scalar_type(a)
    wide = wrapping(kind)
    return cast(cast(a, wide) ^ const(wide.high, wide), kind)


def _shift(left: bool) -> Callable[[Expr, Expr], Expr]:
    """Shift as ops.map defines it: by the width or more gives 0, or the sign alone."""

    def made(a: Expr, b: Expr) -> Expr:
        kind = scalar_type(a)
        wide = wrapping(kind)
        top = const(kind.bytes * 8 - 1, kind)
        outside = top < b
        if not kind.is_unsigned:
            outside = select(b < _zero(b), const(1, BOOL), outside)
        held = select(outside, top, b)
        if left:
            whole = cast(cast(a, wide) << cast(held, wide), kind)
            return select(outside, _zero(a), whole)
        if not kind.is_unsigned:
            wide = DType.INT64 if kind.bytes == 8 else DType.INT32
        shifted = cast(a, wide) >> cast(held, wide)
        gone = shifted >> const(1, wide)
        return cast(select(outside, gone, shifted), kind)

    return made


def _requantize(a: Expr, multiplier: Expr, shift: Expr) -> Expr:
    """Requantise with two roundings; `shift` is in bits to the left, from -30 to 30."""
    zero = const(0)
    left, right = (
        select(zero < shift, shift, zero),
        select(shift < zero, zero - shift, zero),
    )
    lifted = cast(cast(a, UINT32) << cast(left, UINT32), INT32)
    return DOUBLE(lifted, multiplier, right)


def _not(a: Expr) -> Expr:
    return select(a, const(0, BOOL), const(1, BOOL))


def _infinite(a: Expr) -> Expr:
    infinity = floats.real(scalar_type(a)).infinity
    return select(equal(a, infinity), const(1, BOOL), equal(a, _negate(infinity)))


def _equal(a: Expr, b: Expr) -> Expr:
    if scalar_type(a) is BOOL:
        return select(a, b, _not(b))
    return equal(a, b)


def _real(name: str) -> Callable[[Expr], Expr]:
    return lambda a: curves.UNARY[name](scalar_type(a))(a)


def _angle(name: str) -> Callable[[Expr], Expr]:
    return lambda a: angles.angle(scalar_type(a), name)(a)


EXPRESSIONS: dict[str, Callable[..., Expr]] = {
    **{name: _real(name) for name in curves.UNARY},
    **{name: _angle(name) for name in angles.ANGLES},
    "abs": _absolute,
    "add": _add,
    "and": lambda a, b: select(a, b, const(0, BOOL)),
    "bit_and": _bitwise("&"),
    "bit_not": _bit_not,
    "bit_or": _bitwise("|"),
    "bit_xor": _bitwise("^"),
    "bits": lambda a: a,
    "cast": lambda a: a,
    "copy": lambda a: a,
    "divide": _divide,
    "equal": _equal,
    "fixed_log": FIXED_LOG,
    "is_infinite": _infinite,
    "is_nan": lambda a: _not(equal(a, a)),
    "less": lambda a, b: a < b,
    "less_or_equal": lambda a, b: a <= b,
    "maximum": _maximum,
    "minimum": _minimum,
    "modulo": _modulo,
    "multiply": _multiply,
    "negate": _negate,
    "not": _not,
    "or": lambda a, b: select(a, const(1, BOOL), b),
    "power": _power,
    "remainder": _remainder,
    "requantize": _requantize,
    "requantize_once": lambda a, b, c: AWAY(a, b, const(31) - c),
    "shift_left": _shift(True),
    "shift_right": _shift(False),
    "sign": _sign,
    "subtract": _subtract,
    "where": lambda a, b, c: select(a, b, c),
    "xor": lambda a, b: select(a, _not(b), b),
}

# the same of numbers alone
OF_NUMBERS: dict[str, Callable[..., Expr]] = {
    "maximum_of_numbers": lambda a, b: select(b < a, a, b),
    "minimum_of_numbers": lambda a, b: select(a < b, a, b),
}
