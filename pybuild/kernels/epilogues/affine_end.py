"""The epilogue of a layer by one high multiplication, inside a kernel being written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import MULHI, MULHI_ADD, SATURATE8
from pybuild.kernels.epilogues.affine import SHIFTS, Affine
from pybuild.kernels.epilogues.affine_add import AffineAdd
from pybuild.kernels.epilogues.requantise import SHIFT_EVEN
from pybuild.loop import INT8, Const, Expr, Var, cast, const, maximum, minimum


class AffineFinish:
    """The bound values of an Affine.

    usual  base and shift are what they are in most layers, and constants; else they
           are arguments: all other layers share a kernel
    together  both in one: the base is a number of half steps
    """

    def __init__(
        self, k: Builder, ending: Affine, usual: bool, together: bool = False
    ) -> None:
        self.ending = ending
        self.base: Expr = const(ending.base)
        self.shift: Expr = const(ending.shift)
        if together:
            steps = ending.base >> ending.shift - 1
            both = k.arg("steps_shift", steps << 16 | ending.shift)
            self.shift = both & 0xFFFF
            self.base = (both >> 16) << (self.shift - 1)
        elif not usual:
            self.base = k.arg("base", ending.base)
            self.shift = k.arg("shift", ending.shift)
        self.low: Expr = const(ending.low)
        self.high: Expr = const(ending.high)
        if ending.clamped:
            self.low = k.arg("low", ending.low)
            self.high = k.arg("high", ending.high)

    @property
    def values(self) -> dict[str, Expr]:
        """What a part of the kernel must be given."""
        known = {"base": self.base, "shift": self.shift}
        known |= {"low": self.low, "high": self.high}
        return {n: v for n, v in known.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> AffineFinish:
        """The same in a part that was given `values`."""
        inner = AffineFinish.__new__(AffineFinish)
        inner.ending = self.ending
        inner.base = params.get("base", self.base)
        inner.shift = params.get("shift", self.shift)
        inner.low = params.get("low", self.low)
        inner.high = params.get("high", self.high)
        return inner

    def narrow(self, scaled: Expr, factor: Expr) -> Expr:
        """The int8 value of 256 * acc + offset."""
        if isinstance(self.base, Const):
            value = MULHI(scaled, factor) + self.base
        else:
            value = MULHI_ADD(scaled, factor, self.base)
        value = value >> self.shift
        if not self.ending.clamped:
            return cast(SATURATE8(value), INT8)
        return cast(minimum(maximum(value, self.low), self.high), INT8)


def rounded_sum(k: Builder, cheap: AffineAdd, lift: int = 0) -> Callable[[Expr], Expr]:
    """What a sum of both products comes to before the clamp, less `lift`; where the
    shift alone rounds, its offset is less already."""
    if cheap.base is None:
        return lambda total: total >> cheap.shift
    base = k.arg("base", cheap.base - lift)
    return lambda total: SHIFT_EVEN(total, cheap.shift) + base


def is_usual(ending: Affine) -> bool:
    """Whether base and shift are those of most layers."""
    return (ending.base, ending.shift) == (0, SHIFTS[0])


def kind(ending: Affine, usual: bool) -> str:
    """What distinguishes the code of two layers."""
    parts = (
        "signed" if ending.below is not None else "",
        "clamped" if ending.clamped else "",
        "" if usual else "scaled",
    )
    return "_".join(p for p in parts if p)


def corrected(scaled: Expr, plus: Expr, minus: Expr) -> Expr:
    """256 * acc and the offset of its sign; `scaled` is used twice."""
    return scaled + (plus + ((scaled >> 31) & minus))
