"""add, sub and mul of int8, four elements at a time, on cores with DSP instructions.

Sums are of single bytes, whose loads are as cheap as what takes a word apart; the
factors of a product are two in a word, their zero points added as they are widened.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, Expr, Intrin, cast, const, i32, load, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import (
    ADD_EVEN,
    ADD_ODD,
    MLA_HIGH,
    MLA_HIGH_LOW,
    MLA_LOW,
    SATURATE8,
    SATURATE16,
)
from pybuild.kernels.epilogues.affine import Affine, of_products
from pybuild.kernels.epilogues.affine_add import AffineAdd, affine_add
from pybuild.kernels.epilogues.affine_end import (
    AffineFinish,
    corrected,
    is_usual,
    kind,
    rounded_sum,
)
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.eltwise_loops import Arithmetic, Given
from pybuild.ops.eltwise import AddParameters, MulParameters
from pybuild.records import dataclass

_Maker = Callable[[Builder], Arithmetic]
_MOST = 1 << 31


@dataclass(frozen=True)
class Clamp:
    """low..high by saturation alone: that of value - lift holds the lower end.

    lift  low less the least of the type;  drop  its greatest less high
    """

    lift: int
    drop: int
    dtype: DType = INT8

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        """The function that finishes a value that is `lift` too low."""
        lift = k.arg("lift", self.lift + self.drop)
        drop = k.arg("drop", self.drop) if self.drop else None
        saturate = SATURATE8 if self.dtype is INT8 else SATURATE16

        def end(value: Expr) -> Expr:
            held = saturate(value)
            if self.lift + self.drop:
                held = saturate(held + lift)
            return cast(held if drop is None else held - drop, self.dtype)

        return end

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        if not self.lift + self.drop:
            return ""
        return "_held" if self.drop else "_lifted"


def clamp_of(made: AddParameters | MulParameters, dtype: DType = INT8) -> Clamp:
    """The clamp that finishes a sum."""
    return Clamp(made.low - dtype.low, dtype.high - made.high, dtype)


def add4(made: AddParameters) -> tuple[_Maker, str, str] | None:
    """add or sub by `affine_add`, if it has a form with room for the clamp."""
    cheap = affine_add(made)
    if cheap is None:
        return None
    clamp = clamp_of(made)
    lifted = cheap.offset
    if cheap.base is None:
        lifted -= clamp.lift << cheap.shift
    if 128 * (abs(cheap.a_factor) + abs(cheap.b_factor)) + abs(lifted) >= _MOST:
        return None
    maker = _sum(cheap, lifted, clamp)
    return maker, f"dsp_{cheap.key}{clamp.key}", cheap.words


def _sum(cheap: AffineAdd, lifted: int, clamp: Clamp) -> _Maker:
    def make(k: Builder) -> Arithmetic:
        a_factor = k.arg("a_factor", cheap.a_factor)
        b_factor = k.arg("b_factor", cheap.b_factor)
        add, end = k.arg("offset", lifted), clamp.bind(k)
        scaled = rounded_sum(k, cheap, clamp.lift)

        def a_term(x: Expr) -> Expr:
            return i32(x) * a_factor + add

        def b_term(x: Expr) -> Expr:
            return i32(x) * b_factor

        return of_terms(a_term, b_term, lambda a, b: end(scaled(a + b)))

    return make


def of_terms(
    a_term: Callable[[Expr], Expr],
    b_term: Callable[[Expr], Expr],
    y: Callable[[Expr, Expr], Expr],
) -> Arithmetic:
    """Four neighbours are as one, four times."""

    def four(a: Given, b: Given) -> list[Expr]:
        terms = zip(each(a, a_term), each(b, b_term), strict=True)
        return [y(one, other) for one, other in terms]

    return Arithmetic(a_term, b_term, y, four)


def each(given: Given, term: Callable[[Expr], Expr]) -> list[Expr]:
    """The values of four elements."""
    if given.pointer is None:
        assert given.term is not None
        return [given.term] * 4
    return [term(load(given.pointer, i)) for i in range(4)]


def mul4(made: MulParameters) -> tuple[_Maker, str, str] | None:
    """mul by one high multiplication, where that is proven."""
    epilogue = of_products(made)
    if epilogue is None:
        return None
    usual = is_usual(epilogue)
    key = kind(epilogue, usual)
    maker = _product(made, epilogue, usual)
    return maker, f"dsp_{key}".rstrip("_"), epilogue.words


def _product(made: MulParameters, epilogue: Affine, usual: bool) -> _Maker:
    (above, *below, factor) = (int(n) for n in epilogue.columns(np.zeros(1, int))[0])
    if epilogue.below is not None:
        above, below = below[0], below[1:]

    def make(k: Builder) -> Arithmetic:
        finish = AffineFinish(k, epilogue, usual)
        a_zero, b_zero = k.arg("a_zero", made.a_zero), k.arg("b_zero", made.b_zero)
        a_zeros = k.arg("a_zeros", _twice(-made.a_zero))
        b_zeros = k.arg("b_zeros", _twice(-made.b_zero))
        plus, times = k.arg("offset", above), k.arg("factor", factor)
        minus = k.arg("below", below[0]) if below else None

        def y(product: Expr) -> Expr:
            scaled = product * (1 << FRACTION)
            if minus is None:
                return finish.narrow(scaled + plus, times)
            return finish.narrow(corrected(k.let("scaled", scaled), plus, minus), times)

        def four(a: Given, b: Given) -> list[Expr]:
            first, second = _lanes(k, a, a_zeros), _lanes(k, b, b_zeros)
            return [
                y(_of_lanes(first[i % 2], second[i % 2], i > 1, a.pointer, b.pointer))
                for i in range(4)
            ]

        return Arithmetic(
            lambda x: i32(x) - a_zero,
            lambda x: i32(x) - b_zero,
            lambda a, b: y(a * b),
            four,
        )

    return make


def _twice(value: int) -> int:
    """The value in both halves of a word."""
    return value * 65536 + (value & 0xFFFF)


def _lanes(k: Builder, given: Given, zeros: Expr) -> tuple[Expr, Expr]:
    """Elements 0 and 2, and 1 and 3; of one that stays itself."""
    if given.pointer is None:
        assert given.term is not None
        return given.term, given.term
    word = k.let("word", wide(given.pointer, 0))
    even, odd = ADD_EVEN(zeros, word), ADD_ODD(zeros, word)
    return k.let("even", even), k.let("odd", odd)


def _of_lanes(
    a: Expr, b: Expr, high: bool, a_moves: Expr | None, b_moves: Expr | None
) -> Expr:
    """The product of the low or the high halves; what stays is in the low one."""
    if not high:
        return MLA_LOW(a, b, const(0))
    if a_moves is None:
        return MLA_HIGH_LOW(b, a, const(0))
    which: Intrin = MLA_HIGH if b_moves is not None else MLA_HIGH_LOW
    return which(a, b, const(0))
