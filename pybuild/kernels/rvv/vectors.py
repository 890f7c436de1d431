"""Operations on RISC-V's vectors that kernels spell: their meaning and their names.

Their C is in crt/rvv.h: intrinsics of riscv_vector.h, or loops. Their LLVM IR is in
llvm.py. Lanes are counted for registers of 128 bits; each operation is told on how many
it works, and what the others hold is not known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

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
    select,
)
from pybuild.kernels.base.vector_rounds import away, lift, once, twice
from pybuild.kernels.epilogues.by_parts import PRECISE
from pybuild.kernels.rvv.llvm import defined

FEATURE = "rvv"
HEADER = "crt/rvv.h"

_N, _X, _LOW, _HIGH = (Var(name, INT32) for name in ("n", "x", "low", "high"))
_STEP = Var("step", INT32)
_BYTES, _WORDS = Var("from", PointerType(INT8)), Var("from", PointerType(INT32))
_HALVES = Var("from", PointerType(INT16))
_TABLE, _ENTRIES = Var("table", PointerType(INT8)), Var("table", PointerType(INT32))
_INT8, _INT16 = (-128, 127), (-32768, 32767)


class Vectors:
    """The operations on vectors of so many lanes.

    lanes  of 128 bits; words fill 4 registers of 16 lanes, 8 of 32
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.words, self.halves, self.bytes = (
            VectorType(elem, lanes, grows=True) for elem in (INT32, INT16, INT8)
        )
        # lanes of a turn over so many elements
        self.LANES = self._made("lanes", (_N,), minimum(_N, const(lanes)))
        self._loads()
        self._strided()
        self._products()
        self._sums()
        self._narrowed()
        self._rules()
        self._reductions()
        # by the type of elements
        self.AS_THEY_ARE = {INT8: self.BYTES, INT16: self.HALVES}
        self.AS_HALVES = {INT8: self.WIDENED, INT16: self.HALVES}
        self.AS_WORDS = {INT8: self.LONG, INT16: self.LONG_HALVES}
        self.APART_AS_THEY_ARE = {INT8: self.APART_BYTES, INT16: self.APART_HALVES}
        self.FILLED = {INT8: self.FILL, INT16: self.FILL_HALVES}
        self.HELD = {INT8: self.HOLD, INT16: self.HOLD_HALVES}
        self.GREATER = {INT8: self.MOST, INT16: self.MOST_HALVES}

    def _named(self, words: str = "", halves: str = "", small: str = "") -> list[Var]:
        """Parameters: a letter each."""
        kinds = (words, self.words), (halves, self.halves), (small, self.bytes)
        return [Var(name, kind) for names, kind in kinds for name in names]

    def _loads(self) -> None:
        """n elements, and nothing behind them; x in each lane."""
        made, first = self._made, self._first
        # as they are
        self.BYTES = made("bytes", (_BYTES, _N), first(_BYTES, INT8))
        self.WORDS = made("words", (_WORDS, _N), first(_WORDS, INT32))
        self.HALVES = made("halves", (_HALVES, _N), first(_HALVES, INT16))
        # widened
        wide = first(_BYTES, INT16)
        self.WIDENED = made("widened", (_BYTES, _N), wide, takes=2)
        longer = first(_BYTES, INT32)
        self.LONG = made("long", (_BYTES, _N), longer, takes=2)
        longer = first(_HALVES, INT32)
        self.LONG_HALVES = made("long_halves", (_HALVES, _N), longer, takes=2)
        # bytes less x, as halves
        less = self._first(_BYTES, INT16, less=_X)
        self.LOWERED = made("lowered", (_BYTES, _X, _N), less, takes=2)
        # x; its low byte or half
        self.ALL = made("all", (_X, _N), Lanes((_X,) * self.lanes))
        filled = Lanes((cast(_X, INT8),) * self.lanes)
        self.FILL = made("fill", (_X, _N), filled)
        filled = Lanes((cast(_X, INT16),) * self.lanes)
        self.FILL_HALVES = made("fill_halves", (_X, _N), filled)

    def _strided(self) -> None:
        """n elements that lie `step` of them apart; entries of tables."""
        made, bytes_ = self._made, (_BYTES, _STEP, _N)
        apart = self._first(_BYTES, INT8, _STEP)
        self.APART_BYTES = made("apart_bytes", bytes_, apart)
        apart = self._first(_HALVES, INT16, _STEP)
        self.APART_HALVES = made("apart_halves", (_HALVES, _STEP, _N), apart)
        # each byte's entry in a table of 256, which begins with that of -128
        b, h = self._named(halves="h", small="b")[::-1]
        entry = self._each(lambda b: load(_TABLE, i32(b) + 128), b, to=INT8)
        self.TABLE = made("table", (_TABLE, b, _N), entry, takes=2)
        # the words of a table at h
        entry = self._each(lambda h: load(_ENTRIES, i32(h)), h)
        self.ENTRIES = made("entries", (_ENTRIES, h, _N), entry, takes=2)

    def _products(self) -> None:
        """Sums of products."""
        made, words, halves = self._made, self.words, self.halves
        v, h, hx, hw, bx, bw = [
            *self._named("v", "hxw"), *self._named(small="xw")
        ]  # fmt: skip
        # v + x * w, of one x, which has 16 bits, or of an x of each lane
        one = v + self._all(_X) * Cast(hw, words)
        self.MAC_ONE = made("mac_one", (v, _X, hw, _N), one)
        several = v + Cast(hx, words) * Cast(hw, words)
        self.MAC = made("mac", (v, hx, hw, _N), several)
        # x * w, and h + x * w: they fit int16
        product = Cast(bx, halves) * Cast(bw, halves)
        self.PRODUCT = made("product", (bx, bw, _N), product)
        self.MORE = made("more", (h, bx, bw, _N), h + product)
        # v + h
        self.ADD = made("add", (v, h, _N), v + Cast(h, words))

    def _sums(self) -> None:
        """Arithmetic of words; of halves a sum."""
        made = self._made
        (v, u, h), x = self._named("vu", "h"), self._all(_X)
        self.SUM = made("sum", (v, u, _N), v + u)
        self.LESS = made("less", (v, u, _N), v - u)
        self.PLUS = made("plus", (v, _X, _N), v + x)
        self.TIMES = made("times", (v, _X, _N), v * x)
        self.PRODUCTS = made("products", (v, u, _N), v * u)
        self.LINE = made("line", (v, _X, u, _N), v * x + u)
        # the high half of a product
        self.HIGH = made("high", (v, u, _N), self._high(v, u))
        self.HIGH_ONE = made("high_one", (v, _X, _N), self._high(v, x))
        # v + x, and where it is negative + low
        correct = v + x + ((v >> self._all(const(31))) & self._all(_LOW))
        self.CORRECT = made("correct", (v, _X, _LOW, _N), correct, takes=4)
        # v / 2^x: downwards; ties to even
        self.RIGHT = made("right", (v, _X, _N), v >> x)
        self.EVEN = made("even", (v, _X, _N), self._each(_even, v))
        plus = self._each(lambda h: i32(h) + _X, h, to=INT16)
        self.HALVES_PLUS = made("halves_plus", (h, _X, _N), plus)

    def _narrowed(self) -> None:
        """Words as bytes or halves; these held within limits."""
        made, each = self._made, self._each
        v, h, hx, hw, b, bx, bw = [
            *self._named("v", "hxw"), *self._named(small="bxw")
        ]  # fmt: skip
        # v >> x held within int16; v >> x and v + x, held within int8
        right = each(lambda v: _between(v >> _X, *_INT16), v, to=INT16)
        self.SHORT = made("short", (v, _X, _N), right)
        right = each(lambda v: _between(v >> _X, *_INT8), v, to=INT8)
        self.SHIFTED = made("shifted", (v, _X, _N), right, takes=2)
        plus = each(lambda v: _between(i64(v) + i64(_X), *_INT8), v, to=INT8)
        self.RAISED = made("raised", (v, _X, _N), plus, takes=3)
        # b, held within low and high
        last = (_LOW, _HIGH, _N)
        self.HOLD = made("hold", (b, *last), each(_held, b, to=INT8), takes=2)
        held = each(_held, h, to=INT16)
        self.HOLD_HALVES = made("hold_halves", (h, *last), held, takes=2)
        # the greater
        self.MOST = made("most", (bx, bw, _N), each(_most, bx, bw, to=INT8))
        most = each(_most, hx, hw, to=INT16)
        self.MOST_HALVES = made("most_halves", (hx, hw, _N), most)

    def _rules(self) -> None:
        """Rules of rounding: vector_rounds.py."""
        made, each = self._made, self._each
        v, m, u, low = self._named("vmuw")
        self.LIFT = made("lift", (v, m, _N), each(lift, v, m), takes=6)
        self.TWICE = made("twice", (v, m, u, _N), each(twice, v, m, u), takes=6)
        self.ONCE = made("once", (v, m, u, _N), each(once, v, m, u), takes=3)
        self.AWAY = made("away", (v, m, u, _N), each(away, v, m, u), takes=8)
        # by one multiplier x and shift `low`, which is minus the bits to the right
        by_one = (v, _X, _LOW, _N)
        doubled = each(lambda v: twice(v, _X, _LOW), v)
        self.TWICE_ONE = made("twice_one", by_one, doubled, takes=4)
        single = each(lambda v: once(v, _X, _LOW), v)
        self.ONCE_ONE = made("once_one", by_one, single, takes=2)
        up = each(lambda v: twice(v, _X, const(0)), v)
        self.UP_ONE = made("up_one", (v, _X, _N), up)
        # of two words of a factor, the upper one first: epilogues/by_parts.py
        precise = each(_precise, v, m, u, low)
        self.PRECISE = made("precise", (v, m, u, low, _N), precise, takes=12)

    def _reductions(self) -> None:
        """One number of n lanes: their sum, and the greatest."""
        v, b = self._named("v", small="b")
        total: Expr = const(0)
        most: Expr = const(INT8.low)
        for i in range(self.lanes):
            is_one = const(i) < _N
            total = total + select(is_one, Lane(v, i), const(0))
            most = maximum(most, select(is_one, i32(Lane(b, i)), const(INT8.low)))
        self.TOTAL = self._made("total", (v, _N), total, takes=3)
        self.GREATEST = self._made("greatest", (b, _N), most, takes=3)

    def _all(self, x: Expr) -> Expr:
        return _grown(Lanes((x,) * self.lanes))

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
        half = self._all(const(32, INT64))
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

    def _first(
        self,
        pointer: Var,
        to: DType,
        step: Expr | None = None,
        less: Expr | None = None,
    ) -> Expr:
        """The first n elements; the last one fills the lanes behind them."""
        lanes = (minimum(lane, _N - 1) for lane in range(self.lanes))
        places = (at if step is None else at * step for at in lanes)
        values: Iterator[Expr] = (load(pointer, at) for at in places)
        if less is not None:
            values = (i32(value) - less for value in values)
        return Lanes(tuple(cast(value, to) for value in values))


def _grown(vector: Lanes) -> Expr:
    """The same as a vector that grows."""
    kind = vector.type
    return Cast(vector, VectorType(kind.elem, kind.lanes, grows=True))


def _between(value: Expr, low: Operand, high: Operand) -> Expr:
    return minimum(maximum(value, low), high)


def _held(value: Expr) -> Expr:
    return _between(i32(value), _LOW, _HIGH)


def _precise(v: Expr, m: Expr, u: Expr, low: Expr) -> Expr:
    return PRECISE(v, m, low, 0 - u)


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
