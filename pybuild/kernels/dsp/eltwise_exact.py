"""add, sub and prelu of int8, add, sub, mul of int16 by their own rule, with DSP
instructions: a product whose high half is rounded as it is taken (SMMLAR), and a shift,
as in epilogues/rounded.py. For layers without a cheaper form.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, Expr, cast, const, i32, maximum, minimum
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import (
    KEPT,
    MULHI_ADD,
    MULHI_ADD_ROUND,
    SATURATE8,
)
from pybuild.kernels.dsp.eltwise import clamp_of, of_terms
from pybuild.kernels.epilogues.one_rule import HALF
from pybuild.kernels.layers.eltwise_loops import Arithmetic
from pybuild.ops.eltwise import AddParameters, MulParameters, PreluParameters
from pybuild.records import dataclass

_Maker = Callable[[Builder], Arithmetic]
_MOST_SHIFT = 30
_MOST = 1 << 30  # of what is added to a high half


@dataclass(frozen=True)
class _Scaling:
    """A scaling of 2 * value * 2^left: the high half of its product, then a shift by
    `right`; the last of these steps rounds.

    base  added to the result
    """

    twice: bool
    multiplier: int
    right: int
    base: int = 0
    left: int = 0

    @property
    def key(self) -> str:
        return "" if self.right else "up"

    def bind(self, k: Builder, name: str = "") -> Callable[[Expr], Expr]:
        factor = KEPT(k.arg(f"{name}multiplier", self.multiplier))
        multiplier = k.let(f"{name}factor", factor)
        if not self.right:
            base = k.arg(f"{name}base", self.base)
            return lambda value: MULHI_ADD_ROUND(value, multiplier, base)
        plus = k.arg(f"{name}plus", (2 * self.base + 1) << (self.right - 1))
        right = k.arg(f"{name}right", self.right)
        if not self.twice:
            return lambda value: MULHI_ADD(value, multiplier, plus) >> right

        def both(value: Expr) -> Expr:
            value = k.let("twice", value)
            high = MULHI_ADD_ROUND(value, multiplier, plus)
            return (high + (value >> 31)) >> right

        return both


@dataclass(frozen=True)
class _Term:
    """2 * (x - zero), in the unit of the sum; `scaling` rounds the smaller scale."""

    unit: int
    zero: int
    scaling: _Scaling | None
    minus: bool

    def bind(self, k: Builder, name: str) -> Callable[[Expr], Expr]:
        start = k.arg(f"{name}_start", -self.zero * self.unit)
        if self.scaling is None:
            return lambda x: i32(x) * self.unit + start
        scale = self.scaling.bind(k, f"{name}_")
        times = -2 if self.minus else 2
        return lambda x: scale(i32(x) * self.unit + start) * times


def exact4(made: AddParameters, dtype: DType) -> tuple[_Maker, str, str] | None:
    """None for rules that add and sub of files do not have, and for scales that are
    too far apart for words."""
    a = _term(made, made.a_zero, made.a_multiplier, made.a_shift, 1)
    b = _term(made, made.b_zero, made.b_multiplier, made.b_shift, made.sign)
    summed = (made.multiplier, made.shift) == (HALF, 1)
    clamp = clamp_of(made, dtype)
    base = made.y_zero - clamp.lift
    end = None
    if not summed:
        end = _scaling(made.rounding, made.multiplier, made.shift, base)
    if a is None or b is None or not (summed or (end and end.right)):
        return None

    def make(k: Builder) -> Arithmetic:
        a_term, b_term, held = a.bind(k, "a"), b.bind(k, "b"), clamp.bind(k)
        less = k.arg("less", clamp.lift) if summed and clamp.lift else const(0)
        scaled = (lambda total: (total >> 1) - less) if end is None else end.bind(k)

        return of_terms(a_term, b_term, lambda a, b: held(scaled(a + b)))

    kinds = "".join(
        f"{name}{'half' * (t.scaling is None)}{'minus' * t.minus}"
        for name, t in (("a", a), ("b", b))
    )
    rule = "summed" if summed else made.rounding
    key = f"dsp_exact_{kinds}_{rule}{clamp.key}"
    return make, key, _WORDS[rule]


_WORDS = {
    "summed": "operands shifted to the unit of the output, which rounds; their sum",
    "double": "operands to one unit, of which the smaller scale is rounded; their sum "
    "requantised by two roundings, of the product's high half, then of a shift",
    "single": "operands to one unit, of which the smaller scale is rounded; their sum "
    "requantised by one rounding of the product, half up",
}


def _term(
    made: AddParameters, zero: int, multiplier: int, shift: int, sign: int
) -> _Term | None:
    if (multiplier, shift) == (HALF, 0):
        return _Term(sign << made.left, zero, None, False)
    scaling = _scaling(made.rounding, multiplier, shift, 0)
    if scaling is None or not scaling.right:
        return None
    return _Term(2 << made.left, zero, scaling, sign < 0)


def prelu4(made: PreluParameters) -> tuple[_Maker, str, str] | None:
    """Both sides of every value, of which one is 0, and their sum."""
    above = _scaling(made.rounding, *made.above, made.y_zero)
    below = _scaling(made.rounding, *made.below, 0)
    if above is None or below is None or 255 * 255 * (2 << below.left) >= 2 * _MOST:
        return None

    def make(k: Builder) -> Arithmetic:
        x_zero, zero = (
            k.arg("x_zero", made.x_zero),
            k.arg("slope_zero", made.slope_zero),
        )
        up, down = (
            k.arg(f"{n}_unit", 2 << s.left)
            for n, s in (("above", above), ("below", below))
        )
        positive, negative = above.bind(k, "above_"), below.bind(k, "below_")

        def y(x: Expr, slope: Expr) -> Expr:
            x = k.let("x", x)
            held = positive(maximum(x, 0) * up)
            value = k.let("value", held + negative(minimum(x, 0) * slope))
            return cast(SATURATE8(value), INT8)

        def x_term(x: Expr) -> Expr:
            return i32(x) - x_zero

        def slope_term(slope: Expr) -> Expr:
            return (i32(slope) - zero) * down

        return of_terms(x_term, slope_term, y)

    key = "_".join(filter(None, ("dsp_exact", above.key, below.key, made.rounding)))
    return make, key, _SLOPED


_SLOPED = "both sides of a value by their own rule, of which one is 0; their sum"


def mul16(made: MulParameters) -> tuple[_Maker, str, str] | None:
    """mul of int16. Twice the product of two of -32768 is 2^31, so that minus twice it
    is multiplied by minus the multiplier; of a product of 0 the high half is 0,
    whichever sign it is taken for.
    """
    clamp = clamp_of(made, DType.INT16)
    end = _scaling(made.rounding, made.multiplier, made.shift, -clamp.lift)
    if end is None or not end.right or not end.twice:
        return None

    def make(k: Builder) -> Arithmetic:
        held = clamp.bind(k)
        multiplier = k.let("factor", KEPT(k.arg("multiplier", -end.multiplier)))
        plus = k.arg("plus", ((2 * end.base + 1) << (end.right - 1)) - 1)
        right = k.arg("right", end.right)

        def y(a: Expr, b: Expr) -> Expr:
            twice = k.let("twice", a * b)
            high = MULHI_ADD_ROUND(twice, multiplier, plus)
            return held((high - (twice >> 31)) >> right)

        def b_term(b: Expr) -> Expr:
            return i32(b) * -2

        return of_terms(i32, b_term, y)

    return make, f"dsp_exact_double{clamp.key}", _PRODUCT


_PRODUCT = "the product requantised by two roundings: of its high half, then of a shift"


def _scaling(rounding: str, multiplier: int, shift: int, base: int) -> _Scaling | None:
    if rounding not in ("double", "single"):
        return None
    right, left = (1, 0) if multiplier == 0 else (max(-shift, 0), max(shift, 0))
    if not right:
        # a half of the product is added to its high one by both rules
        return _Scaling(False, multiplier, 0, base, left)
    if right > _MOST_SHIFT or abs(2 * base + 1) << (right - 1) > _MOST:
        return None
    return _Scaling(rounding == "double", multiplier, right, base)
