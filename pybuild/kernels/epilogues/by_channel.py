"""The epilogue in kernels that multiply one by one: its form, its table and its code.
Knows no layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import (
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
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.base.intrin import MULHI, SATURATE8
from pybuild.kernels.epilogues.affine import (
    Affine,
    affine,
    affine_or_exact,
)
from pybuild.kernels.epilogues.affine_end import corrected
from pybuild.kernels.epilogues.affine_split import Split, split, split_or_exact
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.end16 import Bound16, End16
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.exact_end import RuleEnd, Sum, end_of
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.ops.conv import ConvParameters
from pybuild.targets.target import Target

Epilogue = Affine | Split | Exact
# of layers of int8, and of int16
AnyEpilogue = Epilogue | End16
_MOST_EXACT = 0.25  # of channels, beside parts of a multiplier


def scalar_epilogue(
    made: ConvParameters, low: Ints, high: Ints, target: Target
) -> Affine | Split | None:
    """Return the cheapest form that is proven for every channel on that core, or None.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    if "mulhi" not in target.features:
        found = split(made, low, high)
        if found is not None:
            return found
    return affine(made, low, high)


def layer_epilogue(
    made: ConvParameters, low: Ints, high: Ints, target: Target
) -> Epilogue:
    """Return the cheapest form, with the rule itself for channels that have none."""
    found: Epilogue | None = scalar_epilogue(made, low, high, target)
    if found is not None:
        return found
    if "mulhi" not in target.features:
        found = split_or_exact(made, low, high)
        if isinstance(found, Split) and np.mean(found.uppers < 0) <= _MOST_EXACT:
            return found
    return affine_or_exact(made, low, high)


def starts_at_zero(epilogue: Epilogue) -> bool:
    """Return True if the bias is added at the end: within the offset, or by the
    rule."""
    if isinstance(epilogue, Affine):
        return epilogue.below is None
    return isinstance(epilogue, Exact)


def columns(epilogue: AnyEpilogue) -> int:
    """Return the words of the table for one output channel."""
    if isinstance(epilogue, Exact | End16):
        return epilogue.size
    if isinstance(epilogue, Split):
        return 5 + (epilogue.below is not None)
    return 2 if epilogue.below is None else 4


def exact_of(epilogue: AnyEpilogue) -> Exact | None:
    """Return the rule for channels without a cheaper form, if the layer has such beside
    others."""
    return None if isinstance(epilogue, Exact | End16) else epilogue.exact


def exact_share(epilogue: AnyEpilogue) -> float:
    """Return the share of channels that use the rule itself, in a layer that has
    others."""
    if isinstance(epilogue, Exact | End16):
        return 0.0
    marks = epilogue.uppers if isinstance(epilogue, Split) else epilogue.multipliers
    return float(np.mean(marks < 0))


def exact_tables(epilogue: Epilogue, bias: Array) -> tuple[Packed, ...]:
    """Return the table of the channels that use the rule itself, if there are
    others."""
    if isinstance(epilogue, Exact) or epilogue.exact is None:
        return ()
    lie = f"of each channel that ends by the rule itself: {epilogue.exact.row}"
    return (Packed("exact", epilogue.rows(bias).astype(np.int32), order=lie),)


def tables(
    epilogue: AnyEpilogue, bias: Ints, order: Array | None = None
) -> tuple[Packed, ...]:
    """Return the table with a row for each output channel, its start value, if any, and
    its epilogue numbers; then the table of the channels that use the rule itself."""
    if isinstance(epilogue, Bare):
        return ()
    if isinstance(epilogue, Exact | End16):
        return (epilogue.table(bias, order),)
    return (table(epilogue, bias, order), *exact_tables(epilogue, bias))


def table(epilogue: Affine | Split, bias: Ints, order: Array | None = None) -> Packed:
    """Return the table with a row for each output channel: its start value, if any, and
    the numbers that `narrow` reads."""
    wide = epilogue.added(bias)
    below = [] if epilogue.below is None else [epilogue.below]
    if isinstance(epilogue, Split):
        parts = [
            wide,
            epilogue.uppers,
            epilogue.lowers,
            epilogue.offsets,
            epilogue.shifts,
        ]
        parts += below
    elif starts_at_zero(epilogue):
        parts = [epilogue.offsets + (wide << FRACTION), epilogue.multipliers]
    else:
        parts = [wide, epilogue.offsets, *below, epilogue.multipliers]
    rows = np.stack(parts, axis=1)
    rows = rows if order is None else rows[order]
    lie = f"{EACH}: {_row(epilogue)}"
    return Packed("epilogue", rows.astype(np.int32), order=lie)


def _row(epilogue: Affine | Split) -> str:
    """Describe a row of `table` for readers of the C."""
    if isinstance(epilogue, Split):
        words = "bias, upper and lower part of the factor, offset, shift"
        return words + ", what is added below zero" * (epilogue.below is not None)
    if starts_at_zero(epilogue):
        return epilogue.row
    return epilogue.row.removeprefix("256 * ")


class ScalarFinish:
    """The bound values of an Epilogue; values that most layers share are constants.

    rows  the table of the channels that use the rule itself
    """

    def __init__(
        self, k: Builder, epilogue: Epilogue, rows: Expr | None = None
    ) -> None:
        self.epilogue = epilogue
        self.bound: dict[str, Expr] = {}
        self.rule: RuleEnd | None = None
        found = epilogue if isinstance(epilogue, Exact) else epilogue.exact
        if not isinstance(epilogue, Exact):
            self._bind(k, epilogue)
        if found is not None:
            self.rule = end_of(k, found)
        if rows is not None:
            self.bound["rows"] = rows

    def _bind(self, k: Builder, epilogue: Affine | Split) -> None:
        self.bound = {
            "base": const(0),
            "low": const(epilogue.low),
            "high": const(epilogue.high),
            "limit": const(0),
        }
        if isinstance(epilogue, Affine) and epilogue.base:
            self.bound["base"] = k.arg("base", epilogue.base)
        if isinstance(epilogue, Split) and epilogue.limit is not None:
            self.bound["limit"] = k.arg("limit", epilogue.limit)
        if epilogue.clamped:
            self.bound["low"] = k.arg("low", epilogue.low)
            self.bound["high"] = k.arg("high", epilogue.high)

    @property
    def values(self) -> dict[str, Expr]:
        """The values to pass to a part of the kernel."""
        known = self.bound | (self.rule.values if self.rule is not None else {})
        return {n: v for n, v in known.items() if not isinstance(v, Const)}

    @property
    def is_cheap(self) -> bool:
        """True if `narrow` serves every sum."""
        return not isinstance(self.epilogue, Exact) and self.epilogue.exact is None

    def inside(self, params: Mapping[str, Var]) -> ScalarFinish:
        """Return the same inside a part that was given `values`."""
        inner = ScalarFinish.__new__(ScalarFinish)
        inner.epilogue = self.epilogue
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        inner.rule = self.rule.inside(params) if self.rule is not None else None
        return inner

    def start(self, ends: Expr, at: Operand) -> Expr:
        """Return the start value of an accumulator; `at`: its row of the table."""
        return const(0) if starts_at_zero(self.epilogue) else load(ends, at)

    def row(self, k: Builder, ends: Expr, at: int) -> list[Var]:
        """Load the rest of the channel's row; nothing if all channels use the rule."""
        if isinstance(self.epilogue, Exact):
            return []
        first = 0 if starts_at_zero(self.epilogue) else 1
        count = columns(self.epilogue)
        return [k.let(f"end{i}", load(ends, at + i)) for i in range(first, count)]

    def store(
        self,
        k: Builder,
        sums: Sequence[Sum],
        row: Sequence[Expr],
        ends: Expr,
    ) -> None:
        """Finish and store the sums of one channel.

        ends  the channel's row of the table
        """
        if isinstance(self.epilogue, Exact):
            self._by_rule(sums, ends)
            return
        if self.epilogue.exact is None:
            self._cheap(k, sums, row)
            return
        mark = row[0] if isinstance(self.epilogue, Split) else row[-1]
        with k.when(mark < 0, rare=True):
            self._by_rule(sums, offset(self.bound["rows"], const(-1) - mark))
        with k.otherwise():
            self._cheap(k, sums, row)

    def _by_rule(self, sums: Sequence[Sum], row: Expr) -> None:
        assert self.rule is not None
        for acc, y, at in sums:
            self.rule.store(y, at, acc, row)

    def _cheap(self, k: Builder, sums: Sequence[Sum], row: Sequence[Expr]) -> None:
        for acc, y, at in sums:
            k.store(y, at, self.narrow(k, acc, row))

    def narrow(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        """Return the int8 value of an accumulator by the cheap form."""
        assert not isinstance(self.epilogue, Exact)
        if isinstance(self.epilogue, Split):
            value = self._by_parts(k, acc, row)
        else:
            value = self._by_high_half(k, acc, row)
        if not self.epilogue.clamped:
            return cast(SATURATE8(value), INT8)
        low, high = self.bound["low"], self.bound["high"]
        return cast(minimum(maximum(value, low), high), INT8)

    def _by_parts(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        epilogue = self.epilogue
        assert isinstance(epilogue, Split)
        upper, lower, plus, shift, *minus = row
        if epilogue.limit is not None:
            limit = self.bound["limit"]
            acc = k.let("held", minimum(maximum(acc, const(0) - limit), limit))
        value = acc * upper + ((acc * lower) >> epilogue.part) + plus
        if minus:
            value = value + ((acc >> 31) & minus[0])
        return value >> shift

    def _by_high_half(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        epilogue = self.epilogue
        assert isinstance(epilogue, Affine)
        plus, *minus, factor = row
        scaled = acc * (1 << FRACTION)
        if minus:
            scaled = corrected(k.let("scaled", scaled), plus, minus[0])
        else:
            scaled = scaled + plus
        return (MULHI(scaled, factor) + self.bound["base"]) >> epilogue.shift


BoundEnd = ScalarFinish | Bound16


def finish_of(k: Builder, epilogue: AnyEpilogue, rows: Expr | None = None) -> BoundEnd:
    """Return the bound values of a layer's epilogue; rows: as in ScalarFinish."""
    if isinstance(epilogue, End16):
        return Bound16(k, epilogue)
    return ScalarFinish(k, epilogue, rows)
