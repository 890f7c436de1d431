"""The end of a layer by one high multiplication, inside a kernel being written."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.kernels.affine import Affine
from pybuild.kernels.builder import Builder
from pybuild.kernels.intrin import MULHI, SATURATE8
from pybuild.loop import INT8, Const, Expr, Var, cast, const, maximum, minimum


class AffineFinish:
    """The bound values of an Affine; what is the same in most layers is constant."""

    def __init__(self, k: Builder, ending: Affine) -> None:
        self.ending = ending
        self.base: Expr = const(0)
        if ending.base:
            self.base = k.arg("base", ending.base)
        self.low: Expr = const(ending.low)
        self.high: Expr = const(ending.high)
        if ending.clamped:
            self.low = k.arg("low", ending.low)
            self.high = k.arg("high", ending.high)

    @property
    def values(self) -> dict[str, Expr]:
        """What a part of the kernel must be given."""
        known = {"base": self.base, "low": self.low, "high": self.high}
        return {n: v for n, v in known.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> AffineFinish:
        """The same in a part that was given `values`."""
        inner = AffineFinish.__new__(AffineFinish)
        inner.ending = self.ending
        inner.base = params.get("base", self.base)
        inner.low = params.get("low", self.low)
        inner.high = params.get("high", self.high)
        return inner

    def narrow(self, scaled: Expr, factor: Expr) -> Expr:
        """The int8 value of 256 * acc + offset."""
        value = (MULHI(scaled, factor) + self.base) >> self.ending.shift
        if not self.ending.clamped:
            return cast(SATURATE8(value), INT8)
        return cast(minimum(maximum(value, self.low), self.high), INT8)


def corrected(scaled: Expr, plus: Expr, minus: Expr) -> Expr:
    """256 * acc and the offset of its sign; `scaled` is used twice."""
    return scaled + (plus + ((scaled >> 31) & minus))
