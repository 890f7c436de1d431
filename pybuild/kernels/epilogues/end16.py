"""The int16 epilogue in kernels that sum several channels together: a table row for
each channel, whatever its rule, for sums of 32 or 64 bits. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import (
    INT16,
    INT64,
    UINT32,
    Expr,
    Operand,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.base.intrin import MULHI_ADD, SATURATE16
from pybuild.kernels.epilogues.by_parts import BY_PARTS, PRECISE
from pybuild.kernels.epilogues.exact_end import Sum
from pybuild.kernels.epilogues.int8 import Finish, Int8Finish
from pybuild.kernels.epilogues.int16 import HIGH, WIDE, Finish16
from pybuild.kernels.epilogues.requantise import DOUBLE
from pybuild.records import dataclass

# of factors of 15 bits, and all that is written where a sum ends
_SHORT = ("high", "shifted", "parts")
_CHEAP = (*_SHORT, "precise")
_GIVEN = {
    "high": ("factor",),
    "shifted": ("65536 * factor + shift",),
    "parts": ("256 * factor + shift",),
    "wide": ("factor", "shift"),
    **dict.fromkeys(BY_PARTS, ("factor", "shift", "lower part of the factor")),
    "double": ("factor", "shift", "shift before it"),
}
_BITS = 15  # of the factors of LiteRT's rule
_LEAST = 17  # bits to the right, so that the high half of a product is enough


@dataclass(frozen=True)
class End16:
    """y = clamp(rule(acc + bias) + zero)

    form    the rule's name in _GIVEN
    rows    [channel, word] the rule's numbers
    long    whether sums have 64 bits; the bias is then added at the end
    told    the rule in words, for readers of the C
    zero    of the output, within its limits low and high
    """

    form: str
    rows: Ints
    low: int
    high: int
    long: bool
    told: str
    zero: int = 0

    @property
    def is_cheap(self) -> bool:
        """True if it takes few instructions."""
        return self.form in _CHEAP

    @property
    def is_short(self) -> bool:
        """True if factors have 15 bits."""
        return self.form in _SHORT

    @property
    def factors(self) -> tuple[Ints, Ints]:
        """The factors of a short form: each channel's 15-bit factor, and how many of a
        product's bits above 16 are shifted out."""
        words = self.rows[:, 0]
        if self.form == "high":
            spare = np.maximum(_bits(words) - _BITS, 0)
            return words >> spare, 16 - spare
        bits = 16 if self.form == "shifted" else 8
        return words >> bits, words & ((1 << bits) - 1)

    @property
    def bias_words(self) -> int:
        return 2 if self.long else 1

    @property
    def size(self) -> int:
        """Words of a row of the table."""
        return self.bias_words + len(_GIVEN[self.form])

    @property
    def clamped(self) -> bool:
        """True if its results are clamped to less than the range of int16."""
        return (self.low, self.high) != (-32768, 32767)

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        clamped = "clamped" if self.clamped and self.is_cheap else ""
        zero = "zero" if self.zero else ""
        parts = (self.form, "s64" if self.long else "", clamped, zero)
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        return self.told

    def table(self, bias: Array, order: Array | None = None) -> Packed:
        """Return the rows of all channels, or of those in `order`; bias: the start
        value of sums, or what is added to them."""
        wide = bias.astype(np.int64)
        words = [wide]
        if self.long:
            lower = (wide & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
            words = [lower.astype(np.int64), wide >> 32]
        rows = np.concatenate([np.stack(words, axis=1), self.rows], axis=1)
        rows = rows if order is None else rows[order]
        halves = ", its upper half" * self.long
        lie = f"{EACH}: bias{halves}, {', '.join(_GIVEN[self.form])}"
        return Packed("epilogue", rows.astype(np.int32), order=lie)


def end16(finish: Finish, channels: int, long: bool, mulhi: bool) -> End16:
    """Return the epilogue with a row for each channel.

    finish  from layers/weights.py
    mulhi   whether the core computes high halves of products
    """
    zero = 0
    if isinstance(finish, Int8Finish):
        rule = finish.rule
        left = rule.left or (0,) * len(rule.shifts)
        form, columns = "double", [rule.multipliers, rule.shifts, left]
        low, high, rounds = rule.low, rule.high, rule.rounds
    else:
        assert isinstance(finish, Finish16)
        form, columns = _columns(finish, long, mulhi)
        low, high, rounds = finish.low, finish.high, finish.rounds
        zero = finish.zero
    factors = np.asarray(columns, np.int64).T
    rows = np.broadcast_to(factors, (channels, factors.shape[1]))
    # the table has a row of each channel, also where all have one factor
    told = f"{rounds}; factors of each channel"
    return End16(form, rows, low, high, long, told, zero)


def _columns(
    finish: Finish16, long: bool, mulhi: bool
) -> tuple[str, list[tuple[int, ...]]]:
    if finish.rests:
        return finish.by_parts, [finish.multipliers, finish.shifts, finish.rests]
    whole = not finish.shifts
    ways = _normal(finish)
    if not whole and (long or min(s for _, s in ways) < _LEAST):
        return "wide", [finish.multipliers, finish.shifts]
    assert not long, "the high half is of sums of 32 bits"
    if whole and mulhi:
        return "high", [finish.multipliers]
    # beyond 31 bits nothing is left of a sum
    ways = [(m, s - 16) if s <= 47 else (0, 31) for m, s in ways]
    if mulhi:
        return "shifted", [tuple(m << 16 | s for m, s in ways)]
    return "parts", [tuple(m << 8 | s for m, s in ways)]


def _normal(finish: Finish16) -> list[tuple[int, int]]:
    """Return factors of 15 bits, and right shifts of the whole product."""
    if finish.shifts:
        given = zip(finish.multipliers, finish.shifts, strict=True)
        return [(m, s) if m else (0, _LEAST) for m, s in given]
    spare = [max(m.bit_length() - _BITS, 0) for m in finish.multipliers]
    return [(m >> t, 32 - t) for m, t in zip(finish.multipliers, spare, strict=True)]


def _bits(words: Ints) -> Ints:
    """The number of bits of each."""
    return np.asarray([int(n).bit_length() for n in words], np.int64)


class Bound16:
    """The bound values of an End16 inside a kernel being written."""

    def __init__(self, k: Builder, epilogue: End16) -> None:
        self.epilogue = epilogue
        self.bound: dict[str, Expr] = {}
        if not epilogue.is_cheap or epilogue.clamped:
            self.bound["lowest"] = k.arg("lowest", epilogue.low)
            self.bound["most"] = k.arg("most", epilogue.high)
        if epilogue.zero:
            self.bound["y_zero"] = k.arg("y_zero", epilogue.zero)

    @property
    def values(self) -> dict[str, Expr]:
        """The values to pass to a part of the kernel."""
        return self.bound

    @property
    def is_cheap(self) -> bool:
        """True if `narrow` serves every sum."""
        return self.epilogue.is_cheap

    def inside(self, params: Mapping[str, Var]) -> Bound16:
        """Return the same inside a part that was given `values`."""
        inner = Bound16.__new__(Bound16)
        inner.epilogue = self.epilogue
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        return inner

    def start(self, ends: Expr, at: Operand) -> Expr:
        """Return the start value of an accumulator; `at`: its row of the table."""
        return const(0) if self.epilogue.long else load(ends, at)

    def row(self, k: Builder, ends: Expr, at: int) -> list[Var]:
        """Load the rest of the channel's row if its epilogue is cheap."""
        if not self.is_cheap:
            return []
        word = load(ends, at + 1)
        if self.epilogue.form == "high":
            return [k.let("factor", word)]
        if self.epilogue.form == "precise":
            rest = k.let("rest", load(ends, at + 3))
            return [k.let("factor", word), k.let("shift", load(ends, at + 2)), rest]
        both = k.let("both", word)
        shift = k.let("shift", both & 0xFF)
        factor = both & -65536 if self.epilogue.form == "shifted" else both >> 8
        half = k.let("half", const(1) << shift - 1)
        return [k.let("factor", factor), shift, half]

    def store(
        self, k: Builder, sums: Sequence[Sum], row: Sequence[Expr], ends: Expr
    ) -> None:
        """Finish and store the sums of one channel; ends: its row of the table."""
        for acc, y, at in sums:
            if self.is_cheap:
                k.store(y, at, self.narrow(k, acc, row))
            else:
                self._by_rule(k, acc, offset(y, at), ends)

    def narrow(self, k: Builder, acc: Expr, row: Sequence[Expr]) -> Expr:
        """Return the value of an accumulator by the cheap form."""
        if self.epilogue.form == "high":
            return self._held(HIGH(acc, row[0]))
        if self.epilogue.form == "precise":
            factor, shift, rest = row
            return self._held(PRECISE(acc, factor, rest, shift))
        factor, shift, half = row
        if self.epilogue.form == "shifted":
            return self._held(MULHI_ADD(acc, factor, half) >> shift)
        low = (acc & 0xFFFF) * factor
        return self._held(((acc >> 16) * factor + (low >> 16) + half) >> shift)

    def _held(self, value: Expr) -> Expr:
        if "y_zero" in self.bound:
            value = value + self.bound["y_zero"]
        if not self.epilogue.clamped:
            return cast(SATURATE16(value), INT16)
        low, high = self.bound["lowest"], self.bound["most"]
        return cast(minimum(maximum(value, low), high), INT16)

    def _by_rule(self, k: Builder, acc: Expr, y: Expr, ends: Expr) -> None:
        """Finish a sum by the rule, in a separate function, so that the cheap form
        keeps all registers."""
        epilogue = self.epilogue
        # of a depthwise layer only the bias may have more bits
        acc = i64(acc) if epilogue.long else acc
        doc = told("y[0], int16, of one sum", "one row of the table", epilogue.words)
        given = {"y": y, "acc": acc, "row": ends, **self.bound}
        with k.part(f"end16_{epilogue.key}", doc, **given) as params:
            known = {p.name: p for p in params}
            row, total = known["row"], i64(known["acc"])
            first = epilogue.bias_words
            if epilogue.long:
                lower = cast(cast(load(row), UINT32), INT64)
                total = total + (i64(load(row, 1)) * (1 << 32) + lower)
            words = [load(row, first + i) for i in range(epilogue.size - first)]
            value = self._value(known["acc"], k.let("total", total), words)
            value = value + known["y_zero"] if "y_zero" in known else value
            low, high = known["lowest"], known["most"]
            held = minimum(maximum(value, low), high)
            k.store(known["y"], 0, cast(held, INT16))

    def _value(self, acc: Expr, total: Expr, words: Sequence[Expr]) -> Expr:
        factor, shift, *more = words
        match self.epilogue.form:
            case "wide":
                return WIDE(total, factor, shift)
            case form if form in BY_PARTS:
                return BY_PARTS[form](total, factor, more[0], shift)
        return DOUBLE(i32(acc) * (const(1) << more[0]), factor, shift)
