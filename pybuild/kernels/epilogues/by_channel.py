"""The epilogue of a layer in kernels that multiply one by one: which form, its table
and its code. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.base.intrin import MULHI, SATURATE8
from pybuild.kernels.epilogues.affine import FRACTION, Affine, affine
from pybuild.kernels.epilogues.affine_end import corrected
from pybuild.kernels.epilogues.affine_split import Split, split
from pybuild.loop import (
    INT8,
    Const,
    Expr,
    Operand,
    Var,
    cast,
    const,
    load,
    maximum,
    minimum,
)
from pybuild.ops.conv import ConvParameters
from pybuild.targets.target import Target

Ending = Affine | Split


def scalar_ending(
    made: ConvParameters, low: Ints, high: Ints, target: Target
) -> Ending | None:
    """The cheapest proven form on that core.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    if "mulhi" not in target.features:
        found = split(made, low, high)
        if found is not None:
            return found
    return affine(made, low, high)


def starts_at_zero(ending: Ending) -> bool:
    """Whether the bias is added at the end, within the offset."""
    return isinstance(ending, Affine) and ending.below is None


def columns(ending: Ending) -> int:
    """Words of the table for one output channel."""
    if isinstance(ending, Split):
        return 5 + (ending.below is not None)
    return 2 if ending.below is None else 4


def table(ending: Ending, bias: Ints, order: Array | None = None) -> Packed:
    """A row for each output channel: its start, if any, and what `narrow` reads."""
    wide = bias.astype(np.int64)
    below = [] if ending.below is None else [ending.below]
    if isinstance(ending, Split):
        parts = [wide, ending.uppers, ending.lowers, ending.offsets, ending.shifts]
        parts += below
    elif starts_at_zero(ending):
        parts = [ending.offsets + (wide << FRACTION), ending.multipliers]
    else:
        parts = [wide, ending.offsets, *below, ending.multipliers]
    rows = np.stack(parts, axis=1)
    rows = rows if order is None else rows[order]
    lie = f"{EACH}: {_row(ending)}"
    return Packed("epilogue", rows.astype(np.int32), order=lie)


def _row(ending: Ending) -> str:
    """`table` for readers of the C."""
    if isinstance(ending, Split):
        words = "bias, upper and lower part of the factor, offset, shift"
        return words + ", what is added below zero" * (ending.below is not None)
    if starts_at_zero(ending):
        return ending.row
    return ending.row.removeprefix("256 * ")


class ScalarFinish:
    """The bound values of an Ending; what is the same in most layers is constant."""

    def __init__(self, k: Builder, ending: Ending) -> None:
        self.ending = ending
        self.bound: dict[str, Expr] = {
            "base": const(0),
            "low": const(ending.low),
            "high": const(ending.high),
            "limit": const(0),
        }
        if isinstance(ending, Affine) and ending.base:
            self.bound["base"] = k.arg("base", ending.base)
        if isinstance(ending, Split) and ending.limit is not None:
            self.bound["limit"] = k.arg("limit", ending.limit)
        if ending.clamped:
            self.bound["low"] = k.arg("low", ending.low)
            self.bound["high"] = k.arg("high", ending.high)

    @property
    def values(self) -> dict[str, Expr]:
        """What a part of the kernel must be given."""
        return {n: v for n, v in self.bound.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> ScalarFinish:
        """The same in a part that was given `values`."""
        inner = ScalarFinish.__new__(ScalarFinish)
        inner.ending = self.ending
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        return inner

    def start(self, ends: Expr, at: Operand) -> Expr:
        """What an accumulator begins with, its row of the table at `at`."""
        return const(0) if starts_at_zero(self.ending) else load(ends, at)

    def row(self, k: Builder, ends: Expr, at: int) -> list[Var]:
        """The rest of the channel's row."""
        first = 0 if starts_at_zero(self.ending) else 1
        count = columns(self.ending)
        return [k.let(f"end{i}", load(ends, at + i)) for i in range(first, count)]

    def narrow(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        """The int8 value of an accumulator."""
        if isinstance(self.ending, Split):
            value = self._by_parts(k, acc, row)
        else:
            value = self._by_high_half(k, acc, row)
        if not self.ending.clamped:
            return cast(SATURATE8(value), INT8)
        low, high = self.bound["low"], self.bound["high"]
        return cast(minimum(maximum(value, low), high), INT8)

    def _by_parts(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        ending = self.ending
        assert isinstance(ending, Split)
        upper, lower, plus, shift, *minus = row
        if ending.limit is not None:
            limit = self.bound["limit"]
            acc = k.let("held", minimum(maximum(acc, const(0) - limit), limit))
        value = acc * upper + ((acc * lower) >> ending.part) + plus
        if minus:
            value = value + ((acc >> 31) & minus[0])
        return value >> shift

    def _by_high_half(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        ending = self.ending
        assert isinstance(ending, Affine)
        plus, *minus, factor = row
        scaled = acc * (1 << FRACTION)
        if minus:
            scaled = corrected(k.let("scaled", scaled), plus, minus[0])
        else:
            scaled = scaled + plus
        return (MULHI(scaled, factor) + self.bound["base"]) >> ending.shift
