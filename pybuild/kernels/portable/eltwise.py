"""add, sub, mul and prelu of integers by the rules themselves, an element at a time, on
any core.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, INT16, Expr, binary, cast, i32, select
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import SATURATE8
from pybuild.kernels.epilogues.requantise import (
    RULES,
    Requant,
    check_reach,
    requant,
    scaler,
)
from pybuild.kernels.layers.eltwise_loops import Arithmetic
from pybuild.ops.eltwise import AddParameters, MulParameters, PreluParameters
from pybuild.records import dataclass

_HALF = 1 << 30  # 0.5 as a Q31 multiplier
Way = tuple[Callable[[Builder], Arithmetic], str, str]  # key, and that in words
# greatest value less its zero point
_REACH = {INT8: 255, INT16: 1 << 15}


def multiplied(made: MulParameters, dtype: DType, where: str) -> Way:
    reach = _REACH[dtype] * _REACH[dtype]
    check_reach(where, made.rounding, made.multiplier, made.shift, reach)
    limits = (made.low, made.high)
    rule = requant(
        made.rounding, made.multiplier, made.shift, limits, made.y_zero, dtype
    )

    def make(k: Builder) -> Arithmetic:
        a_zero, b_zero = k.arg("a_zero", made.a_zero), k.arg("b_zero", made.b_zero)
        finish = scaler(k, rule, 0)
        return Arithmetic(
            lambda a: i32(a) - a_zero,
            lambda b: i32(b) - b_zero,
            lambda a, b: finish.apply(a * b, 0),
        )

    return make, rule.key, rule.words


def sloped(made: PreluParameters, where: str) -> Way:
    rules = []
    for reach, scale in ((255, made.above), (255 * 255, made.below)):
        check_reach(where, made.rounding, *scale, reach)
        rules.append(requant(made.rounding, *scale, (0, 0), 0))

    def make(k: Builder) -> Arithmetic:
        x_zero, zero = (
            k.arg("x_zero", made.x_zero),
            k.arg("slope_zero", made.slope_zero),
        )
        above, below = (
            _ruled(k, name, rule)
            for name, rule in zip(("above", "below"), rules, strict=True)
        )
        y_zero = k.arg("y_zero", made.y_zero)

        def y(x: Expr, slope: Expr) -> Expr:
            x = k.let("x", x)
            value = select(x < 0, below(x * slope), above(x)) + y_zero
            return cast(SATURATE8(k.let("value", value)), INT8)

        return Arithmetic(lambda x: i32(x) - x_zero, lambda s: i32(s) - zero, y)

    return make, "_".join(r.key for r in rules), rules[0].words


def _ruled(k: Builder, name: str, rule: Requant) -> Callable[[Expr], Expr]:
    """The function that scales a value, without zero point and clamp."""
    multiplier = k.arg(f"{name}_multiplier", rule.multipliers[0])
    shift = k.arg(f"{name}_shift", rule.shifts[0])
    lift = k.arg(f"{name}_lift", 1 << rule.left[0]) if rule.left else None
    scale = RULES[rule.rounding]
    return lambda x: scale(x if lift is None else x * lift, multiplier, shift)


def exact_add(made: AddParameters, dtype: DType, where: str) -> Way:
    limits = (made.low, made.high)
    if made.rounding == "even":
        reach = _REACH[dtype] * (made.a_multiplier + made.b_multiplier)
    else:
        reach = _REACH[dtype] << made.left
    check_reach(where, made.rounding, made.multiplier, made.shift, reach)
    rule = requant(
        made.rounding, made.multiplier, made.shift, limits, made.y_zero, dtype
    )
    terms = [
        _Term("a", made.a_zero, made.a_multiplier, made.a_shift, made),
        _Term("b", made.b_zero, made.b_multiplier, made.b_shift, made),
    ]
    symbol = "-" if made.sign < 0 else "+"

    def make(k: Builder) -> Arithmetic:
        a, b = (term.bind(k) for term in terms)
        finish = scaler(k, rule, 0)
        return Arithmetic(a, b, lambda x, z: finish.apply(binary(symbol, x, z), 0))

    kinds = "_".join(term.key for term in terms if term.half)
    return make, f"{kinds}_{rule.key}".lstrip("_"), rule.words


@dataclass(frozen=True)
class _Term:
    """One operand on the way to the sum; the larger scale needs only a shift."""

    name: str
    zero: int
    multiplier: int
    shift: int
    made: AddParameters

    @property
    def half(self) -> bool:
        """A multiplication by exactly a half of what is shifted left."""
        doubled = self.made.left > 0
        return doubled and (self.multiplier, self.shift) == (_HALF, 0)

    @property
    def key(self) -> str:
        return f"{self.name}half"

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        zero = k.arg(f"{self.name}_zero", self.zero)
        if self.half:
            return lambda x: (i32(x) - zero) * (1 << (self.made.left - 1))
        if self.made.rounding == "even":
            weight = k.arg(f"{self.name}_multiplier", self.multiplier)
            return lambda x: (i32(x) - zero) * weight
        rule = requant(self.made.rounding, self.multiplier, self.shift, (0, 0), 0)
        scale, lift = _ruled(k, self.name, rule), 1 << self.made.left
        return lambda x: scale((i32(x) - zero) * lift)
