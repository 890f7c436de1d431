"""The epilogue of a layer for four channels at once, inside a kernel being written."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vectors import (
    ADD4,
    CORRECT4,
    MULHI4,
    NARROW4,
    SCALE4,
    words_at,
)
from pybuild.kernels.epilogues.affine import Affine
from pybuild.loop import Const, Expr, Var, const


class VectorFinish:
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

    def inside(self, params: Mapping[str, Var]) -> VectorFinish:
        """The same in a part that was given `values`."""
        inner = VectorFinish.__new__(VectorFinish)
        inner.ending = self.ending
        inner.base = params.get("base", self.base)
        inner.low = params.get("low", self.low)
        inner.high = params.get("high", self.high)
        return inner

    @property
    def words(self) -> int:
        """Of the table for each four channels."""
        return 8 if self.ending.below is None else 16

    def narrow(self, sums: Expr, ends: Expr) -> Expr:
        """The values of four sums; `ends`: the table of these channels."""
        signed = self.ending.below is not None
        value = SCALE4(sums, words_at(ends))
        if signed:
            value = CORRECT4(value, words_at(ends, 4), words_at(ends, 8))
        value = MULHI4(value, words_at(ends, self.words - 4))
        if self.ending.base:
            value = ADD4(value, self.base)
        return NARROW4(value, self.ending.shift, self.low, self.high)
