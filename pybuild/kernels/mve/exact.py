"""The epilogue of a layer by its own rule of rounding, on four channels at once: every
channel has it, however far its sums reach. Cheaper where it is proven: affine.py.

A right shift of a product by more than 32 bits is its high half, shifted and rounded
once: bits below it decide only ties. Where fewer bits are shifted, the sum is shifted
left before; what then leaves int32 is far beyond the clamp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.loop import Expr, Var
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.vector_packs import MORE8, PACK8, held_bytes
from pybuild.kernels.base.vector_rounds import (
    ABOVE_BYTE4,
    ABOVE_FIVE4,
    AWAY4,
    FIVE_LOW4,
    HOLD4,
    LIFT4,
    ONCE4,
    SCALED4,
    TWICE4,
    TWICE_DOWN4,
)
from pybuild.kernels.base.vectors import PLUS4
from pybuild.kernels.epilogues.end16 import End16
from pybuild.ops.conv import ConvParameters
from pybuild.records import dataclass

_RULES = {"double": TWICE4, "single": ONCE4, "away": AWAY4}
_DOWN = _RULES | {"double": TWICE_DOWN4}
BYTE, FIVE = 8, 5  # bits of a word that a shift takes, below a bias
_WORDS = {
    "double": "a product rounded to 31 bits less, then a shift rounded away from zero",
    "single": "a product shifted once, rounded, ties up",
    "away": "a product shifted once, rounded, ties away from zero",
    "even": "a product of float32, rounded, ties to even",
    "precise": "two products of 64 bits, a multiplier of 53 bits, rounded once",
}
_HIGH = 32  # bits of a product below its high half


@dataclass(frozen=True)
class Exact:
    """y = clamp(rule(acc + bias), low - y_zero, high - y_zero) + y_zero

    rule     a name of _RULES, or "even": a float32 is multiplied; or "precise": of a
             factor of two words, which only some cores have
    factors  [channel, word] what the rule is given, in its order: the multiplier and
             minus the shift; what the sum is shifted left before, if some is, or the
             multiplier's lower word; or the bits of the float
    given    so many words
    elem     what is stored
    shifts   every channel is shifted to the right, by one bit at least
    joined   bias and shift lie in one word, the shift in so many low bits; 0: they do
             not
    """

    rule: str
    factors: Ints
    given: int
    low: int
    high: int
    y_zero: int
    elem: str = "int8"
    shifts: bool = False
    joined: int = 0

    @property
    def clamped(self) -> bool:
        """True if its limits are tighter than those of the type."""
        kind = DType(self.elem)
        return self.low > kind.low or self.high < kind.high

    @property
    def lifted(self) -> bool:
        return self.given == 3 and self.rule in _RULES

    @property
    def size(self) -> int:
        """Words of the table for each four channels."""
        return 4 * (1 + self.given - bool(self.joined))

    @property
    def words(self) -> str:
        """The words for the comment in the C."""
        return (
            f"requantises by its own rule: {_WORDS[self.rule]}, held within {self.elem}"
        )

    @property
    def row(self) -> str:
        """A row of the table, for readers of the C."""
        if self.rule == "even":
            return "bias, the bits of a float32"
        if self.joined:
            low = f"minus the shift to the right in the {self.joined} low bits"
            return f"bias above, and {low} of a word; factor"
        lift = ", the shift to the left before" if self.lifted else ""
        return f"bias, factor, minus the shift to the right{lift}"

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        joined = {0: "", BYTE: "_joined", FIVE: "_joined5"}[self.joined]
        ways = "_lifted" * self.lifted + joined
        ways += "_zero" * bool(self.elem == "int16" and self.y_zero)
        return f"exact_{self.rule}{ways}"

    def columns(self, bias: Array) -> Ints:
        """The epilogue numbers of each channel: [channel, word]."""
        wide = bias.astype(np.int64)[:, None]
        if not self.joined:
            return np.concatenate([wide, self.factors], axis=1)
        low = self.factors[:, 1:] & ((1 << self.joined) - 1)
        return np.concatenate(
            [(wide << self.joined) + low, self.factors[:, :1]], axis=1
        )

    def with_bias(self, bias: Array) -> Exact:
        """The same, joined if that can be."""
        if self.given != 2 or not self.shifts:
            return self
        least, most = int(bias.min()), int(bias.max())
        for bits in (BYTE, FIVE):
            half = 1 << (31 - bits)
            if -half <= least and most < half:
                return replace(self, joined=bits)
        return self

    def table(self, bias: Array, order: Array, together: int = 4) -> Packed:
        """The epilogue numbers of each block of channels, in reading order; in a block
        of fewer than four, the last channel fills all other lanes."""
        rows = self.columns(bias)
        lanes = [min(lane, together - 1) for lane in range(4)]
        fours = rows[order].reshape(-1, together, rows.shape[1])[:, lanes]
        fours = fours.transpose(0, 2, 1)
        lie = f"of each {together} output channels, four words of each: {self.row}"
        return Packed("epilogue", fours.astype(np.int32), order=lie)


def exact(made: ConvParameters, low: Ints, high: Ints) -> Exact:
    """The end that every layer of int8 has.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    rest = made.low, made.high, made.y_zero
    if made.rounding == "even":
        scales = np.asarray(made.scales, np.float32).view(np.int32).astype(np.int64)
        return Exact("even", np.broadcast_to(scales, low.shape)[:, None], 1, *rest)
    mult = np.broadcast_to(np.asarray(made.multipliers, np.int64), low.shape)
    bits = np.broadcast_to(np.asarray(made.shifts, np.int64), low.shape)
    if made.rounding == "double":
        rule, least, most = "double", 0, 31
        right = -bits
    else:
        rule, least, most = "single", 1, 30
        right = 31 - _HIGH - bits
    # beyond that nothing is left of a sum
    mult, right = np.where(right > most, 0, mult), np.minimum(right, most)
    left = np.maximum(least - right, 0)
    right = np.maximum(right, least)
    if made.rounding == "away" and _may_tie(mult, right, left, low, high):
        rule = "away"
    columns = [mult, -right, *([left] if left.any() else [])]
    factors = np.stack(columns, axis=1)
    return Exact(rule, factors, len(columns), *rest, shifts=bool((right > 0).all()))


def exact16(epilogue: End16) -> Exact | None:
    """The same of a layer of int16 whose ends are cheap: LiteRT's factor has 15 bits,
    so that the high half of a product, shifted, is rounded once. None: they are not."""
    if not epilogue.is_short:
        return None
    mult, right = epilogue.factors
    factors = np.stack([mult << 16, -right], axis=1)
    rest = epilogue.low, epilogue.high, epilogue.zero
    return Exact("single", factors, 2, *rest, "int16")


def _may_tie(mult: Ints, right: Ints, left: Ints, low: Ints, high: Ints) -> bool:
    """True if a product may be an odd number of halves: of twos it has as many as the
    multiplier and a sum have at most."""
    reach = np.maximum(np.maximum(-low, high), 1)
    twos = np.floor(np.log2(reach)).astype(np.int64) + left
    own = np.log2(np.where(mult > 0, mult & -mult, 1)).astype(np.int64)
    return bool(((twos + own >= right + _HIGH - 1) & (mult > 0)).any())


class ExactFinish:
    """The bound values of an Exact inside a kernel being written."""

    def __init__(self, k: Builder, epilogue: Exact) -> None:
        self.epilogue = epilogue
        self.bound: dict[str, Expr] = {
            "lowest": k.arg("lowest", epilogue.low - epilogue.y_zero),
            "most": k.arg("most", epilogue.high - epilogue.y_zero),
            "y_zero": k.arg("y_zero", epilogue.y_zero),
        }

    @property
    def values(self) -> dict[str, Expr]:
        """The arguments of a part of the kernel."""
        return self.bound

    def inside(self, params: Mapping[str, Var]) -> ExactFinish:
        """The same in a part that was given `values`."""
        inner = ExactFinish.__new__(ExactFinish)
        inner.epilogue = self.epilogue
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        return inner

    def scaled(self, sums: Expr, numbers: Sequence[Expr]) -> Expr:
        """Four sums scaled, not yet clamped; `numbers`: the table's vectors of these
        channels."""
        if self.epilogue.joined:
            joined, factor = numbers
            above = ABOVE_BYTE4 if self.epilogue.joined == BYTE else ABOVE_FIVE4
            total = above(sums, joined)
            if self.epilogue.joined == FIVE:
                joined = FIVE_LOW4(joined)
            return _DOWN[self.epilogue.rule](total, factor, joined)
        total = PLUS4(sums, numbers[0])
        given = [*numbers[1:]]
        if self.epilogue.rule == "even":
            return SCALED4(total, *given)
        if self.epilogue.lifted:
            total = LIFT4(total, given.pop())
        return _RULES[self.epilogue.rule](total, *given)

    def narrow(self, sums: Expr, numbers: Sequence[Expr]) -> Expr:
        """The values of four sums."""
        return self.held(self.scaled(sums, numbers))

    def held(self, value: Expr) -> Expr:
        """The values of four that are scaled."""
        return HOLD4(value, *(self.bound[n] for n in ("lowest", "most", "y_zero")))

    def alone(self, one: Var) -> Expr:
        """The same, whose low bytes are to be stored."""
        return self.held(one)

    def paired(self, one: Var, other: Var) -> Expr:
        """The values of two fours, in turns: bytes, in halves."""
        low, high, zero = (self.bound[n] for n in ("lowest", "most", "y_zero"))
        limits = (low + zero, high + zero) if self.epilogue.clamped else None
        return held_bytes(MORE8(PACK8(one, other), zero), limits)
