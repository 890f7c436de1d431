"""Operations on RISC-V's vectors that kernels spell: their meaning and their names.

Their C is in crt/rvv.h: intrinsics of riscv_vector.h, or loops. Their LLVM IR is in
llvm.py. Lanes are counted for registers of 128 bits; each operation is told on how many
it works, and what the others hold is not known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    INT64,
    Cast,
    Expr,
    Intrin,
    Lane,
    Lanes,
    Operand,
    PointerType,
    Var,
    VectorType,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
)
from pybuild.kernels.base.vector_rounds import away, lift, once, twice
from pybuild.kernels.rvv.llvm import defined

FEATURE = "rvv"
HEADER = "crt/rvv.h"

_N, _X, _LOW, _HIGH = (Var(name, INT32) for name in ("n", "x", "low", "high"))
_BYTES, _WORDS = Var("from", PointerType(INT8)), Var("from", PointerType(INT32))
_HALVES = Var("from", PointerType(INT16))
_TABLE = Var("table", PointerType(INT8))
_INT8 = (-128, 127)


class Vectors:
    """The operations on vectors of so many lanes.

    lanes  of 128 bits; words fill 4 registers of 16 lanes, 8 of 32
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        words, halves, small = (
            VectorType(elem, lanes, grows=True) for elem in (INT32, INT16, INT8)
        )
        self.words, self.halves, self.bytes = words, halves, small
        v, u, m = (Var(name, words) for name in "vum")
        h, hx, hw = (Var(name, halves) for name in "hxw")
        b, bx, bw = (Var(name, small) for name in "bxw")
        each, made = self._each, self._made
        # lanes of a turn over so many elements
        self.LANES = made("lanes", (_N,), minimum(_N, const(lanes)))
        # n elements, and nothing behind them; bytes as they are, or widened
        self.BYTES = made("bytes", (_BYTES, _N), self._first(_BYTES, INT8))
        self.WORDS = made("words", (_WORDS, _N), self._first(_WORDS, INT32))
        self.HALVES = made("halves", (_HALVES, _N), self._first(_HALVES, INT16))
        wide = self._first(_BYTES, INT16)
        self.WIDENED = made("widened", (_BYTES, _N), wide, takes=2)
        longer = self._first(_BYTES, INT32)
        self.LONG = made("long", (_BYTES, _N), longer, takes=2)
        # x in each lane; of x its low byte
        x = _grown(Lanes((_X,) * lanes))
        self.ALL = made("all", (_X, _N), x)
        self.FILL = made("fill", (_X, _N), Lanes((cast(_X, INT8),) * lanes))
        # v + x * w, of one x, which has 16 bits, or of an x of each lane
        one = v + x * Cast(hw, words)
        self.MAC_ONE = made("mac_one", (v, _X, hw, _N), one)
        several = v + Cast(hx, words) * Cast(hw, words)
        self.MAC = made("mac", (v, hx, hw, _N), several)
        # x * w, and h + x * w: they fit int16
        product = Cast(bx, halves) * Cast(bw, halves)
        self.PRODUCT = made("product", (bx, bw, _N), product)
        self.MORE = made("more", (h, bx, bw, _N), h + product)
        # v + h; v + u; v + x; v * x; v * x + u; the high half of v * u
        self.ADD = made("add", (v, h, _N), v + Cast(h, words))
        self.SUM = made("sum", (v, u, _N), v + u)
        self.PLUS = made("plus", (v, _X, _N), v + x)
        self.TIMES = made("times", (v, _X, _N), v * x)
        self.PRODUCTS = made("products", (v, u, _N), v * u)
        self.LINE = made("line", (v, _X, u, _N), v * x + u)
        self.HIGH = made("high", (v, u, _N), self._high(v, u))
        self.HIGH_ONE = made("high_one", (v, _X, _N), self._high(v, x))
        # v + x, and where it is negative + low
        low = _grown(Lanes((_LOW,) * lanes))
        sign = v >> _grown(Lanes((const(31),) * lanes))
        correct = v + x + (sign & low)
        self.CORRECT = made("correct", (v, _X, _LOW, _N), correct, takes=4)
        # v / 2^x, ties to even
        self.EVEN = made("even", (v, _X, _N), each(_even, v))
        # v >> x and v + x, held within int8
        right = each(lambda v: _between(v >> _X, *_INT8), v, to=INT8)
        self.SHIFTED = made("shifted", (v, _X, _N), right, takes=2)
        plus = each(lambda v: _between(i64(v) + i64(_X), *_INT8), v, to=INT8)
        self.RAISED = made("raised", (v, _X, _N), plus, takes=3)
        # b, held within low and high
        hold = each(lambda b: _between(i32(b), _LOW, _HIGH), b, to=INT8)
        self.HOLD = made("hold", (b, _LOW, _HIGH, _N), hold, takes=2)
        # the greater, the less
        self.MOST = made("most", (bx, bw, _N), each(_most, bx, bw, to=INT8))
        # each byte's entry in a table of 256, which begins with that of -128
        entry = each(lambda b: load(_TABLE, i32(b) + 128), b, to=INT8)
        self.TABLE = made("table", (_TABLE, b, _N), entry, takes=2)
        # rules of rounding: vector_rounds.py
        self.LIFT = made("lift", (v, m, _N), each(lift, v, m), takes=6)
        self.TWICE = made("twice", (v, m, u, _N), each(twice, v, m, u), takes=6)
        self.ONCE = made("once", (v, m, u, _N), each(once, v, m, u), takes=3)
        self.AWAY = made("away", (v, m, u, _N), each(away, v, m, u), takes=8)

    def _made(
        self, name: str, params: tuple[Var, ...], result: Expr, takes: float = 1
    ) -> Intrin:
        """An operation of that name: its vectors are of these lanes."""
        whole = f"crt_{name}_v{self.lanes}"
        given = ", ".join(f"{{{i}}}" for i in range(len(params)))
        if isinstance(result, Lanes):
            result = _grown(result)
        return Intrin(
            whole, params, result, c=f"{whole}({given})", feature=FEATURE,
            llvm=whole, header=HEADER, define=defined(name, self.lanes), takes=takes,
        )  # fmt: skip

    def _high(self, a: Expr, b: Expr) -> Expr:
        wide = VectorType(INT64, self.lanes, grows=True)
        half = _grown(Lanes((const(32, INT64),) * self.lanes))
        return Cast((Cast(a, wide) * Cast(b, wide)) >> half, self.words)

    def _each(
        self, meaning: Callable[..., Expr], *given: Var, to: DType = INT32
    ) -> Expr:
        """A vector whose lanes are `meaning` of the lanes of these."""
        return Lanes(
            tuple(
                cast(meaning(*(Lane(v, i) for v in given)), to)
                for i in range(self.lanes)
            )
        )

    def _first(self, pointer: Var, to: DType) -> Expr:
        """The first n elements; the last one fills the lanes behind them."""
        return Lanes(
            tuple(
                cast(load(pointer, minimum(lane, _N - 1)), to)
                for lane in range(self.lanes)
            )
        )


def _grown(vector: Lanes) -> Expr:
    """The same as a vector that grows."""
    kind = vector.type
    return Cast(vector, VectorType(kind.elem, kind.lanes, grows=True))


def _between(value: Expr, low: Operand, high: Operand) -> Expr:
    return minimum(maximum(value, low), high)


def _even(v: Expr) -> Expr:
    half = (const(1, INT64) << i64(_X)) >> const(1, INT64)
    odd = i64((v >> _X) & 1)
    return i32((i64(v) + half - 1 + odd) >> i64(_X))


def _most(a: Expr, b: Expr) -> Expr:
    return maximum(i32(a), i32(b))


@functools.cache
def vectors(lanes: int) -> Vectors:
    """The operations on vectors of 16 or 32 lanes."""
    return Vectors(lanes)
