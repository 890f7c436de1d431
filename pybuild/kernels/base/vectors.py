"""Operations on vectors that kernels spell: their meaning and their names.

Their C is in crt/vector.h, gathers.h and lanes.h: Cortex-M55's instructions, or loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    Bitcast,
    Cast,
    Expr,
    Intrin,
    Lane,
    Lanes,
    Operand,
    PointerType,
    Var,
    VectorType,
    binary,
    cast,
    const,
    i32,
    i64,
    load,
    minimum,
    wide,
)
from pybuild.kernels.base.intrin import MULHI

BYTES = VectorType(INT8, 16)
WORDS = VectorType(INT32, 4)
HALVES = VectorType(INT16, 8)

_WIDE = VectorType(INT32, 16)
_ALL = Var("all", _WIDE)
_WIDE8 = VectorType(INT32, 8)
_ALL8 = Var("all", _WIDE8)
_X, _W = Var("x", BYTES), Var("w", BYTES)
_V, _U, _T = (Var(name, WORDS) for name in ("v", "u", "t"))
_ACC, _N, _LOW, _HIGH = (Var(name, INT32) for name in ("acc", "n", "low", "high"))
_X8, _W8 = Var("x", HALVES), Var("w", HALVES)
_A, _B = Var("a", BYTES), Var("b", BYTES)
_ROWS = tuple(Var(f"row{i}", BYTES) for i in range(4))
_FROM = Var("from", PointerType(INT32, writable=True))
_FOUR = tuple(Var(name, INT32) for name in "abcd")
_SMALL, _TABLE = (Var(name, PointerType(INT8)) for name in ("from", "table"))


def bytes_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Load sixteen bytes from any address."""
    return wide(pointer, index, BYTES)


def halves_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Load eight int16; from a pointer to bytes, eight bytes widened."""
    return wide(pointer, index, HALVES)


def words_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Loads four words; smaller elements are widened."""
    return wide(pointer, index, WORDS)


def _all(value: Expr) -> Expr:
    return Lanes((value,) * 4)


def _total(vector: Var) -> Expr:
    assert isinstance(vector.type, VectorType)
    total: Expr = Lane(vector, 0)
    for i in range(1, vector.type.lanes):
        total = total + Lane(vector, i)
    return total


def _each(f: Callable[[Expr, Expr], Expr]) -> Expr:
    return Lanes(tuple(f(Lane(_V, i), Lane(_U, i)) for i in range(4)))


def _intrin(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})")


def _first(lane: int) -> Expr:
    inside = (const(lane) - _N) >> 31
    return cast(i32(load(_SMALL, minimum(lane, _N - 1))) & inside, INT8)


# n bytes, at any address, and zeros; nothing is read behind them
FIRST16 = Intrin(
    "crt_first16",
    (_SMALL, _N),
    Lanes(tuple(map(_first, range(16)))),
    c="crt_first16({0}, {1})",
    feature="mve",
    llvm="crt_first16",
)
# n in each lane; of n its low byte
ALL4 = _intrin("crt_all4", (_N,), _all(_N))
ALL16 = _intrin("crt_all16", (_N,), Lanes((cast(_N, INT8),) * 16))
# in each lane: the greater, the less
MAX16 = _intrin("crt_max16", (_A, _B), binary("max", _A, _B))
MIN16 = _intrin("crt_min16", (_A, _B), binary("min", _A, _B))
MAX4 = _intrin("crt_max4", (_V, _U), binary("max", _V, _U))
# in each lane: v + u; v * u; v * u + n; v + u * n
PLUS4 = _intrin("crt_plus4", (_V, _U), _V + _U)
TIMES4 = _intrin("crt_times4", (_V, _U), _V * _U)
LINE4 = _intrin("crt_line4", (_V, _U, _N), _V * _U + _all(_N))
MORE4 = _intrin("crt_more4", (_V, _U, _N), _V + _U * _all(_N))
# four words as a vector
LANES = _intrin("crt_lanes", _FOUR, Lanes(_FOUR))


def _nibbles(name: str, result: Expr) -> Intrin:
    return Intrin(name, (_W,), result, c=f"{name}({{0}})")


_FOUR_BITS = const(4, INT8)
_SIXTEEN = Lanes((const(16, UINT8),) * 16)
# of two int4 in each byte the high one, and 16 times the low one
HIGH_INT4 = _nibbles("crt_high_int4", _W >> Lanes((_FOUR_BITS,) * 16))
LOW_INT4 = _nibbles(
    "crt_low_int4", Bitcast(Bitcast(_W, VectorType(UINT8, 16)) * _SIXTEEN, BYTES)
)


def _dot(x: Var, w: Var, products: Var, kind: str) -> Intrin:
    """acc + the sum of all x * w.

    products  the type that holds one product in each lane; kind: LLVM's name for x's
              type
    """
    wide = products.type
    assert isinstance(wide, VectorType)
    name = f"crt_dot{wide.lanes}"
    total = Intrin(
        f"crt_sum{wide.lanes}",
        (products,),
        _total(products),
        c=f"crt_sum{wide.lanes}({{0}})",
        llvm=f"llvm.vector.reduce.add.v{wide.lanes}i32",
    )
    return Intrin(
        name,
        (_ACC, x, w),
        _ACC + total(Cast(x, wide) * Cast(w, wide)),
        c=f"{name}({{0}}, {{1}}, {{2}})",
        feature="mve",
        llvm=f"llvm.arm.mve.vmldava.{kind}",
        lead=(0, 0, 0),
    )


DOT16 = _dot(_X, _W, _ALL, "v16i8")
DOT8 = _dot(_X8, _W8, _ALL8, "v8i16")
_LONG = Var("acc", INT64)


def _long_products() -> Expr:
    total: Expr = _LONG
    for i in range(8):
        total = total + i64(i32(Lane(_X8, i)) * i32(Lane(_W8, i)))
    return total


# acc + the sum of all x * w, of a sum of 64 bits
LONG_DOT8 = Intrin(
    "crt_long_dot8",
    (_LONG, _X8, _W8),
    _long_products(),
    c="crt_long_dot8({0}, {1}, {2})",
    feature="mve",
    llvm="crt_long_dot8",
)
# in each lane: v * 256 + u
SCALE4 = _intrin("crt_scale4", (_V, _U), _V * _all(i32(256)) + _U)
# in each lane: v + u, and where v is negative + t
CORRECT4 = _intrin("crt_correct4", (_V, _U, _T), _V + _U + ((_V >> _all(i32(31))) & _T))
# in each lane: v + acc, and 1 more where bit n of v is set
EVEN4 = _intrin(
    "crt_even4", (_V, _N, _ACC), _V + _all(_ACC) + ((_V >> _all(_N)) & _all(i32(1)))
)
# in each lane: the high half of the product
MULHI4 = Intrin(
    "crt_mulhi4",
    (_V, _U),
    _each(lambda v, u: MULHI(v, u)),
    c="crt_mulhi4({0}, {1})",
    feature="mve",
    llvm="llvm.arm.mve.vmulh.v4i32",
    trail=(0,),
)
# in each lane: v + n
ADD4 = _intrin("crt_add4", (_V, _N), _V + _all(_N))
# in each lane: v >> n, held within low and high
NARROW4 = _intrin(
    "crt_narrow4",
    (_V, _N, _LOW, _HIGH),
    binary("min", binary("max", _V >> _all(_N), _all(_LOW)), _all(_HIGH)),
)
# the words `v` bytes behind a pointer to words
GATHER4 = Intrin(
    "crt_gather4",
    (_FROM, _V),
    Lanes(tuple(load(_FROM, Lane(_V, i) >> 2) for i in range(4))),
    c="crt_gather4({0}, {1})",
    feature="mve",
    llvm="llvm.arm.mve.vldr.gather.offset.v4i32.p0.v4i32",
    trail=(32, 0, 0),
)
# the same of words that are never written
_KNOWN = Var("from", PointerType(INT32))
GATHER_KNOWN4 = replace(
    GATHER4,
    params=(_KNOWN, _V),
    result=Lanes(tuple(load(_KNOWN, Lane(_V, i) >> 2) for i in range(4))),
)
# each byte's entry in a table of 256, which begins with the entry of -128
TABLE16 = Intrin(
    "crt_table16",
    (_TABLE, _X),
    Lanes(tuple(load(_TABLE, i32(Lane(_X, i)) + 128) for i in range(16))),
    c="crt_table16({0}, {1})",
    feature="mve",
    llvm="crt_table16",
)
# first bytes of four rows, second bytes, ...; it can only be stored
ZIP4 = Intrin(
    "crt_zip4",
    _ROWS,
    Lanes(tuple(Lane(row, i) for i in range(16) for row in _ROWS)),
    c="crt_zip4({0}, {1}, {2}, {3})",
    feature="mve",
    llvm="llvm.arm.mve.vst4q.p0.v16i8",
    stages=4,
)
# first bytes of two rows, second bytes, ...; it can only be stored
ZIP2 = Intrin(
    "crt_zip2",
    _ROWS[:2],
    Lanes(tuple(Lane(row, i) for i in range(16) for row in _ROWS[:2])),
    c="crt_zip2({0}, {1})",
    feature="mve",
    llvm="llvm.arm.mve.vst2q.p0.v16i8",
    stages=2,
)


def gathered_bytes(pointer: Expr, offsets: Expr) -> Expr:
    """Gathers four words as sixteen bytes."""
    return Bitcast(GATHER4(pointer, offsets), BYTES)
