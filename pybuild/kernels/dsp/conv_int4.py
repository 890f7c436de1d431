"""The sums of conv_code.py's kernels where weights have 4 bits: the weights of four
output channels lie in a half of a word.

Knows no node.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.ir.loop import Expr, Var, const, load, offset
from pybuild.kernels.base.intrin import DOT2, IN_ORDER
from pybuild.kernels.dsp.conv_sums import Memory, Sums
from pybuild.kernels.epilogues.affine_end import is_signed
from pybuild.kernels.layers.conv import INT4_OUTPUTS

# A half is 4096 * a + 256 * (b + 8) + 16 * (c + 8) + d + 8: a has a sign, b, c and d
# have none, so nothing is borrowed and a mask tells them apart. A product with the
# whole word adds to all four sums; three products with b, c and d alone tell them
# apart. The 8s add 8 times the sum of the inputs to each sum, which is computed once
# for all channels.
BIAS = 8  # what makes an int4 an uint4
# channels b, c and d of a word of two halves, and the bits before each
_MASKS = ((0x0F000F00, 8), (0x00F000F0, 4), (0x000F000F, 0))
_FIRST = 12  # the bits before channel a
# of a half: what b, c and d reach, which is subtracted from the sum of all
_REST = sum(15 << bits for _, bits in _MASKS)

Int32s = npt.NDArray[np.int32]
# for each pixel, the sums of a word's four channels, and of those of b, c and d alone
_Four = list[Var]


def halves(weights: Array) -> Int32s:
    """Weights [blocks, 4, lanes], of four output channels each, as halves of words:
    int32[blocks, lanes]."""
    a, b, c, d = weights.astype(np.int32).transpose(1, 0, 2)
    made: Int32s = (a << _FIRST) + (b + BIAS << 8) + (c + BIAS << 4) + d + BIAS
    return made


def reach(weights: Array) -> Int32s:
    """How far a product by -128 moves the sums of each lane, and their difference."""
    found: Int32s = 128 * (np.abs(halves(weights)) + _REST)
    return found


class Int4Sums(Sums):
    """The part of a kernel that multiplies a patch with all weights of 4 bits."""

    def write(self, pixels: int) -> None:
        self.bias = self._biases(pixels)
        super().write(pixels)

    def _biases(self, pixels: int) -> list[Var]:
        """8 times the sum of the inputs of each pixel."""
        k, layer = self.k, self.layer
        found = [k.let(f"bias{p}", 0) for p in range(pixels)]
        x = k.let("x", self.known["taps"])
        whole = layer.unrolled_of(pixels) > layer.unrolled
        turns = const(layer.turns) if whole else self.turns
        with k.loop("turn", turns, rolled=True):
            for tap in range(layer.unrolled):
                for value, total in zip(
                    self._values(x, tap, pixels), found, strict=True
                ):
                    k.assign(total, DOT2(value, const(BIAS * 0x10001), total))
            k.assign(x, offset(x, layer.unrolled * layer.step))
        return found

    def _block(
        self, pixels: int, blocks: int, where: Memory, y: Expr, channel: Expr,
        across: int = 1,
    ) -> None:  # fmt: skip
        """As Sums does, of channels in fours."""
        k, layer, (w, ends, patch) = self.k, self.layer, where
        fours = [
            [[k.let(f"sum{q}_{p}_{i}", 0) for i in range(INT4_OUTPUTS)]
             for p in range(pixels)]
            for q in range(blocks // 2 * across)
        ]  # fmt: skip
        # of a single turn gcc would keep the patch, on the stack, for all channels
        k.assign(fours[0][0][0], IN_ORDER(fours[0][0][0]))
        words = [w]
        if across > 1:
            after = self.turns * (self.unrolled * (blocks // 2))
            words.append(k.let("next", offset(w, after)))
        x = k.let("x", patch)
        if layer.runs > 1:
            apart = self._each_run(fours, words, x)
        else:
            self._fours(fours, words, x, self.turns)
            apart = [[self._apart(four) for four in each] for each in fours]
        if across > 1:
            k.assign(w, words[-1])
        size = layer.end_size
        for q, each in enumerate(apart):
            for half in (0, 1):
                its = offset(ends, (2 * q + half) * size)
                pairs = [
                    (
                        self._sum(one, p, 2 * half, its),
                        self._sum(one, p, 2 * half + 1, its),
                    )
                    for p, one in enumerate(each)
                ]
                self._finish(pairs, its, offset(y, channel + 4 * q + 2 * half))
        if size:
            k.assign(ends, offset(ends, 2 * size * len(fours)))

    def _sum(self, four: list[Expr], pixel: int, which: int, ends: Expr) -> Var:
        """The sum of a channel, as its epilogue takes it."""
        total = four[which] - self.bias[pixel] if which else four[which]
        if is_signed(self.layer.epilogue):
            total = total + load(ends, which % 2)
        return self.k.let("sum", total)

    def _apart(self, four: _Four) -> list[Expr]:
        """The sums of each channel, of three with 8 times that of the inputs."""
        total: Expr = four[0]
        parts = list[Expr]()
        for part, (_, bits) in zip(four[1:], _MASKS, strict=True):
            parts.append(part >> bits)
            total = total - part
        return [total >> _FIRST, *parts]

    def _fours(
        self, fours: list[list[_Four]], words: list[Var], x: Var, turns: Expr
    ) -> None:
        k, layer, count = self.k, self.layer, len(fours) // len(words)
        with k.loop("turn", turns, rolled=True):
            for tap in range(self.unrolled):
                values: list[Var] = []
                for n, four in enumerate(fours):
                    # gcc has no register for a second word
                    read = load(words[n // count], tap * count + n % count)
                    word = k.let("word", IN_ORDER(read))
                    values = values or self._values(x, tap, len(four))
                    self._multiply_four(four, values, word)
            for w in words:
                k.assign(w, offset(w, self.unrolled * count))
            k.assign(x, offset(x, self.unrolled * layer.step))

    def _multiply_four(self, four: list[_Four], values: list[Var], word: Var) -> None:
        k = self.k
        parts = [word, *(word & mask for mask, _ in _MASKS)]
        for i, part in enumerate(parts):
            weights = k.let("part", part) if i else part
            for sums, value in zip(four, values, strict=True):
                k.assign(sums[i], DOT2(value, weights, sums[i]))

    def _each_run(
        self, fours: list[list[_Four]], words: list[Var], x: Var
    ) -> list[list[list[Expr]]]:
        """Run by run; the sums of each channel, told apart after each."""
        k = self.k
        totals = [
            [[k.let(f"total{q}_{p}_{i}", 0) for i in range(len(four))]
             for p, four in enumerate(each)]
            for q, each in enumerate(fours)
        ]  # fmt: skip
        most = self.known["run_turns"]
        with k.loop("run", self.known["runs"]) as run:
            count = k.let("count", self._run_count(run, most))
            self._fours(fours, words, x, count)
            for each, theirs in zip(fours, totals, strict=True):
                for four, total in zip(each, theirs, strict=True):
                    for to, part in zip(total, self._apart(four), strict=True):
                        k.assign(to, to + part)
                    for one in four:
                        k.assign(one, 0)
        return [[[*total] for total in theirs] for theirs in totals]
