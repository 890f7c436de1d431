"""The sums of conv_code.py's kernels: all output channels of a patch of a few pixels.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import Expr, Var, const, load, minimum, offset, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, IN_ORDER, ODD_BYTES
from pybuild.kernels.epilogues.affine_end import AffineFinish, is_signed, row_words
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.rounded import Rounded
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.conv import Layer

_ONES = 0x00010001
_LOW_BYTES = 0x00FF00FF
# 256 * a + b, and b: of two channels a and b; or both, where words hold one alone
_Pair = tuple[Var, Var]
Memory = tuple[Var, Var, Expr]


class Sums:
    """The part of a kernel that multiplies a patch with all weights."""

    def __init__(
        self, k: Builder, layer: Layer, known: Mapping[str, Var], finish: AffineFinish
    ) -> None:
        self.k, self.layer, self.finish = k, layer, finish
        self.known = known
        self.out_channels, self.turns = known["out_channels"], known["turns"]
        self.outputs = known.get("outputs", self.out_channels)
        self.only_rule = isinstance(layer.epilogue, Exact)

    def write(self, pixels: int) -> None:
        """Blocks of pairs of output channels, then single pairs."""
        k, layer, y = self.k, self.layer, self.known["y"]
        self.unrolled = layer.unrolled_of(pixels)
        weights, ends = self.known["weights"], self.known["epilogue"]
        memory = (k.let("w", weights), k.let("next_epilogue", ends), self.known["taps"])
        if layer.lone:
            self._lone(pixels, memory, y)
            return
        if layer.centres:
            self._centre(pixels)
        start: Expr = const(0)
        if layer.whole:
            across = 2 if pixels < layer.pixels and layer.twice else 1
            stop, size = self.outputs, 2 * layer.blocks * across
            if layer.whole < layer.outputs:
                stop = k.let("whole", stop - stop % size)
            with k.loop("channel", stop, start, size) as channel:
                self._block(pixels, layer.blocks, memory, y, channel, across)
            start = stop
        if layer.whole < layer.outputs:
            last = layer.last
            with k.loop("channel", self.outputs, start, last) as channel:
                if layer.outputs % last:
                    channel = k.let("first", minimum(channel, self.outputs - last))
                self._block(pixels, last // 2, memory, y, channel)

    def _centre(self, pixels: int) -> None:
        """What the zero point of the weights takes off the sums of each pixel, of the
        first channel of a pair and of the second."""
        k, known = self.k, self.known
        totals = [k.let(f"total{p}", 0) for p in range(pixels)]
        x = k.let("summed", known["taps"])
        with k.loop("lane", known["lanes"], rolled=True):
            for at in range(self.layer.counted):
                for p, total in enumerate(totals):
                    value = load(x, at * self.layer.pixels + p)
                    k.assign(total, DOT2(value, const(_ONES), total))
            k.assign(x, offset(x, self.layer.counted * self.layer.pixels))
        zeros = known["high_zero"], known["low_zero"]
        self.centres = [
            [
                k.let(f"centre{which}_{p}", total * zero)
                for p, total in enumerate(totals)
            ]
            for which, zero in enumerate(zeros)
        ]

    def _lone(self, pixels: int, where: Memory, y: Expr) -> None:
        """The only output channel."""
        k, layer, (w, ends, patch) = self.k, self.layer, where
        start: Expr = const(0) if self.only_rule else load(ends, 0)
        sums = [k.let(f"sum{p}", start) for p in range(pixels)]
        x = k.let("x", patch)
        with k.loop("turn", self.turns, rolled=True):
            for tap in range(self.unrolled):
                pair = k.let("pair", load(w, tap))
                values = self._values(x, tap, pixels)
                for value, total in zip(values, sums, strict=True):
                    k.assign(total, DOT2(value, pair, total))
            k.assign(w, offset(w, self.unrolled))
            k.assign(x, offset(x, self.unrolled * layer.step))
        to = [(total, y, self.out_channels * p) for p, total in enumerate(sums)]
        if self.only_rule:
            self.finish.by_rule(to, ends)
            return
        row: list[Expr] = [
            k.let(f"end{i}", load(ends, i)) for i in range(1, layer.end_size)
        ]
        signed = is_signed(layer.epilogue)
        with self.finish.cheap(k, row[-1], to):
            told = self.finish.row(k, row) if signed else None
            for acc, _, at in to:
                if told is not None:
                    ended = self.finish.by_sign(k, acc, 0, told)
                else:
                    ended = self.finish.narrow(acc * 256 + row[0], row[-1])
                k.store(y, at, ended)

    def _block(
        self, pixels: int, blocks: int, where: Memory, y: Expr, channel: Expr,
        across: int = 1,
    ) -> None:  # fmt: skip
        """`blocks` pairs of output channels; `across`: of so many blocks, one after the
        other in flash."""
        k, (w, ends, patch) = self.k, where
        size = self.layer.end_size
        sums = [
            [self._starts(ends, b, p) for p in range(pixels)]
            for b in range(blocks * across)
        ]
        # of a single turn gcc would keep the patch, on the stack, for all channels
        k.assign(sums[0][0][0], IN_ORDER(sums[0][0][0]))
        words = [w]
        if across > 1:
            after = self.turns * (self.unrolled * self._of_tap(blocks))
            words.append(k.let("next", offset(w, after)))
        x = k.let("x", patch)
        if self.layer.runs > 1:
            sums = self._runs(sums, words, x)
        else:
            self._turns(sums, words, x, self.turns)
        if across > 1:
            k.assign(w, words[-1])
        for b in range(blocks * across):
            self._finish(sums[b], offset(ends, b * size), offset(y, channel + 2 * b))
        if size:
            k.assign(ends, offset(ends, size * blocks * across))

    def _of_tap(self, blocks: int) -> int:
        """Words of weights of a pair of taps."""
        return blocks * (2 if self.layer.apart else 1)

    def _starts(self, ends: Var, b: int, p: int) -> _Pair:
        """The start values of both sums of a pair."""
        k, layer = self.k, self.layer
        first: Expr = const(0)
        second: Expr = const(0)
        signed = is_signed(layer.epilogue)
        if signed or not (self.only_rule or layer.separate):
            first = load(ends, b * layer.end_size)
        if signed:
            second = load(ends, b * layer.end_size + 1)
        return k.let(f"both{b}_{p}", first), k.let(f"low{b}_{p}", second)

    def _turns(
        self, sums: list[list[_Pair]], words: list[Var], x: Var, turns: Expr
    ) -> None:
        k, layer = self.k, self.layer
        with k.loop("turn", turns, rolled=True):
            for tap in range(self.unrolled):
                self._multiply(sums, words, x, tap)
            blocks = self._of_tap(len(sums) // len(words))
            for pairs in words:
                k.assign(pairs, offset(pairs, self.unrolled * blocks))
            k.assign(x, offset(x, self.unrolled * layer.step))

    def _runs(
        self, sums: list[list[_Pair]], words: list[Var], x: Var
    ) -> list[list[_Pair]]:
        """Run by run; of each pair both sums, told apart."""
        k = self.k
        told = [
            [(k.let(f"sum{b}_{p}", 0), low) for p, (_, low) in enumerate(block)]
            for b, block in enumerate(sums)
        ]
        most = self.known["run_turns"]
        with k.loop("run", self.known["runs"]) as run:
            count = k.let("count", self._run_count(run, most))
            self._turns(sums, words, x, count)
            for block, apart in zip(sums, told, strict=True):
                for (both, low), (total, _) in zip(block, apart, strict=True):
                    k.assign(total, total + ((both - low) >> 8))
                    k.assign(both, low)
        return told

    def _run_count(self, run: Expr, most: Expr) -> Expr:
        """Turns of a run."""
        return minimum(self.turns - run * most, most)

    def _multiply(
        self, sums: list[list[_Pair]], words: list[Var], x: Var, tap: int
    ) -> None:
        k, blocks = self.k, len(sums) // len(words)
        values: list[Var] = []
        pairs: list[Var] = []
        for b, block in enumerate(sums):
            if not pairs:
                pairs = self._weights(words[b // blocks], tap * blocks + b % blocks)
            if b == 0:
                values = self._values(x, tap, len(block))
            pair = pairs.pop(0)
            for value, (both, _) in zip(values, block, strict=True):
                k.assign(both, DOT2(value, pair, both))
            if self.layer.apart:
                low = pairs.pop(0)
            else:
                low = k.let("single", self._second(pair))
            for value, (_, alone) in zip(values, block, strict=True):
                k.assign(alone, DOT2(value, low, alone))

    def _second(self, pair: Var) -> Expr:
        """The weights of the second of two channels."""
        return pair & const(_LOW_BYTES) if self.layer.centres else EVEN_BYTES(pair)

    def _weights(self, words: Var, block: int) -> list[Var]:
        """The weights of so many blocks that one load reads: of two neighbouring
        channels, or of two blocks."""
        k, layer = self.k, self.layer
        at = 2 * block if layer.apart else block
        many = 2 if layer.apart or block % 2 == 0 else 1
        pairs = [k.let("pair", load(words, at + i)) for i in range(many)]
        if layer.apart:  # gcc would load the second where it is used, by itself
            k.assign(pairs[-1], IN_ORDER(pairs[-1]))
        return pairs

    def _values(self, x: Var, tap: int, pixels: int) -> list[Var]:
        """A pair of taps of each pixel: neighbours, so one load may read two; or half
        of the bytes of a word."""
        k, step = self.k, self.layer.pixels
        if not self.layer.direct:
            at = range(tap * step, tap * step + pixels)
            return [k.let("value", load(x, i)) for i in at]
        if tap % 2 == 0:
            self.word = k.let("word", wide(x, 2 * tap))
        return [k.let("value", (ODD_BYTES if tap % 2 else EVEN_BYTES)(self.word))]

    def _finish(self, sums: list[_Pair], ends: Expr, y: Expr) -> None:
        k, epilogue, apart = self.k, self.layer.epilogue, self.layer.separate
        rounds = isinstance(epilogue, Rounded)
        for which in (0, 1):
            to = [
                (self._told(pair, which, p), y, self.out_channels * p + which)
                for p, pair in enumerate(sums)
            ]
            if isinstance(epilogue, Exact):
                self.finish.by_rule(to, offset(ends, epilogue.size * which))
                continue
            signed, row = is_signed(epilogue), None
            if signed:
                count = row_words(epilogue) - 1
                at = 2 + count * which
                read: list[Expr] = [load(ends, at + i) for i in range(count)]
                if not rounds and epilogue.exact is None:
                    # gcc would read those of all channels first, and keep them on
                    # the stack
                    read = [IN_ORDER(word) for word in read]
                words = [k.let("end", word) for word in read]
                factor: Expr = words[-1]
            else:
                at = row_words(epilogue) * which
                if which or apart:
                    plus = k.let("plus", load(ends, at))
                factor = self.finish.factor(k, ends, at + 1)
            with self.finish.cheap(k, factor, to):
                if signed:
                    row = self.finish.row(k, words)
                for p, ((both, alone), (_, _, place)) in enumerate(
                    zip(sums, to, strict=True)
                ):
                    total: Expr = alone if which else both
                    bits = FRACTION if not which and not apart else 0
                    total = both - alone if bits else total
                    total = self._centred(total, which, p, bits)
                    if row is not None:
                        if rounds:  # the same of sums that are shifted
                            total = k.let("total", IN_ORDER(total))
                        value = self.finish.by_sign(k, total, bits, row)
                    else:
                        scaled = total if bits else total * 256
                        scaled = scaled + plus if which or apart else scaled
                        value = self.finish.narrow(scaled, factor)
                    k.store(y, place, value)

    def _told(self, pair: _Pair, which: int, pixel: int) -> Expr:
        """The sum of one of two channels."""
        first, second = pair
        alone = self.layer.runs > 1 or self.layer.separate
        total: Expr = first if alone else (first - second) >> 8
        return self._centred(second if which else total, which, pixel)

    def _centred(self, total: Expr, which: int, pixel: int, bits: int = 0) -> Expr:
        """A sum, times two to the power of `bits`, less what the zero point of the
        weights adds."""
        if not self.layer.centres:
            return total
        less: Expr = self.centres[which][pixel]
        return total + (less * (1 << bits) if bits else less)
