"""Depthwise sums of four pixels of one channel in a vector: its weights are loaded once
for the four, its end is a few numbers. Four channels of them are packed into words. Of
a row of three pixels it is those.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.loop import Bitcast, Expr, Var, const, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_packs import (
    FOURTH,
    LANE,
    LANES8,
    LANES_NOW,
    PLACES8,
    gathered_halves,
)
from pybuild.kernels.base.vectors import DOT16, LANES, WORDS, bytes_at, gathered_bytes
from pybuild.kernels.mve.depthwise_layer import PIXELS, Layer
from pybuild.kernels.mve.pixel_epilogue import PixelFinish

_WORD = 4  # bytes
# in which channels are packed: of each pixel they come to lie in order
_PAIRS = ((0, 2), (1, 3))


def gathered(layer: Layer, x: Expr, places: Expr) -> Expr:
    """The lanes of a window, as bytes."""
    return gathered_halves(x, places) if layer.halves else gathered_bytes(x, places)


def window_offsets(
    k: Builder, layer: Layer, given: Mapping[str, Var], starts: Sequence[int] = (0,)
) -> list[Var]:
    """From a window's first lane to all of its others, a vector for each eight or four
    of them: of halves lanes, of words bytes. Of each of `starts`, in pixels."""
    channels, size = given["channels"], 1 if layer.halves else _WORD
    step = given.get("gap", channels) * size
    step = step if isinstance(step, Var) else k.let("step", step)
    plane: Expr = const(0)
    if layer.planes > 1:
        plane = given["plane"]
        if size > 1:
            plane = k.let("plane_bytes", plane * size)
    pixel: Expr = const(0)
    if len(starts) > 1:
        pixel = channels * (size * layer.window.stride_w)
    lanes = [plane * p + step * column for p, column in layer.words]
    made = []
    for start in starts:
        here = [pixel * start + lane for lane in lanes]
        for i in range(0, len(here), layer.lanes):
            some = here[i : i + layer.lanes]
            made.append(LANES8(*some) if layer.halves else LANES(*some))
    return [k.let("offsets", vector) for vector in made]


def weights_at(w: Var, at: int, given: Mapping[str, Var]) -> list[Expr]:
    """A vector of weights; of nine bits the one of what they lack, too.

    given  "lack" where there is one: bytes from the one to the other
    """
    behind = [given["lack"]] if "lack" in given else []
    return [bytes_at(w, at), *(bytes_at(w, lack + at) for lack in behind)]


def dots(total: Expr, values: Expr, weights: Sequence[Expr]) -> Expr:
    """The total and the products with each vector of weights."""
    for weight in weights:
        total = DOT16(total, values, weight)
    return total


class PixelSums:
    """The part of a kernel that sums four pixels at a time, of a row that has them.

    given  what the part was given: words, weights, epilogue, y, channels, out_width,
           plane and gap where the layer has them
    """

    def __init__(
        self, k: Builder, layer: Layer, given: Mapping[str, Var], finish: PixelFinish
    ) -> None:
        self.k, self.layer, self.given, self.finish = k, layer, given, finish
        self.count = min(PIXELS, layer.window.out_width)

    def write(self) -> None:
        """Eight pixels at a time, and four, as far as the layer has them."""
        layer, offsets = self.layer, self._offsets()
        if layer.eights:
            self._eights(offsets)
        if layer.fours:
            self._fours(offsets)

    def _from(self, ox: Expr) -> tuple[Var, Var]:
        """The places at which a pixel is read and stored."""
        k, given = self.k, self.given
        at = k.let("at", ox * given["channels"])
        x = offset(given["words"], at * self.layer.window.stride_w)
        return k.let("x", x), k.let("to", offset(given["y"], at))

    def _eights(self, offsets: list[Var]) -> None:
        """Eight pixels, channel after channel: two vectors of four; of a row of six or
        seven the second begins before the first ends."""
        k, layer, given = self.k, self.layer, self.given
        channels, width = given["channels"], given["out_width"]
        second: Expr = channels * PIXELS
        if layer.eights < 2 * PIXELS:
            second = k.let("second", channels * (width - PIXELS))
        places = k.let("places", PLACES8(channels, second))
        count: Expr = width
        if layer.eights < layer.window.out_width:
            count = width - width % (2 * PIXELS)
        with k.loop("ox", count, 0, 2 * PIXELS, rolled=True) as ox:
            if layer.eights % (2 * PIXELS) and layer.eights > 2 * PIXELS:
                ox = k.let("pixel", minimum(ox, width - 2 * PIXELS))
            x, y = self._from(ox)
            other = k.let("other", offset(x, second * layer.window.stride_w))
            w = k.let("w", given["weights"])
            ends = k.let("next_epilogue", given["epilogue"])
            with k.loop("channel", channels, rolled=True):
                numbers = [k.let("number", n) for n in self.finish.numbers(ends, 0)]
                weights = self._weights(w, 0)
                ended = []
                for at in (x, other):
                    sums = self._vector(self._short_sums(at, weights, offsets))
                    ended.append(k.let("ended", self.finish.one(k, sums, numbers)))
                halves = k.let("halves", self.finish.halves(*ended))
                k.store(y, places, self.finish.low_bytes(halves))
                for at in (x, other, y):
                    k.assign(at, offset(at, 1))
                k.assign(w, offset(w, 4 * _WORD))
                k.assign(ends, offset(ends, self.finish.size // 4))

    def _fours(self, offsets: list[Var]) -> None:
        """Four pixels, four channels at a time; the last four overlap where they are no
        four."""
        k, given, w = self.k, self.given, self.layer.window
        channels, width = given["channels"], given["out_width"]
        start: Expr = const(0)
        if self.layer.eights:
            start = k.let("fours", width - PIXELS)
        stop: Expr = width
        if self.layer.singles:
            stop = k.let("whole", width - self.layer.singles)
        with k.loop("ox", stop, start, PIXELS, rolled=True) as ox:
            if self.layer.overlapped:
                ox = k.let("pixel", minimum(ox, width - PIXELS))
            x, y = self._from(ox)
            weights = k.let("w", given["weights"])
            ends = k.let("next_epilogue", given["epilogue"])
            with k.loop("channel", channels, 0, PIXELS, rolled=True) as c:
                if w.channels % PIXELS:
                    c = k.let("first", minimum(c, channels - PIXELS))
                    size = 16 * self.layer.steps
                    weights = k.let("w", offset(given["weights"], c * size))
                    if not self.finish.turned:
                        at = c * (self.finish.size // PIXELS)
                        ends = k.let("end", offset(given["epilogue"], at))
                here: Expr = offset(x, c)
                if self.layer.steps > 1:
                    here = k.let("here", here)
                self._four((here, weights, offsets), ends, offset(y, c))
                if not w.channels % PIXELS:
                    k.assign(weights, offset(weights, 16 * self.layer.steps * PIXELS))
                if self.finish.turned or not w.channels % PIXELS:
                    k.assign(ends, offset(ends, self.finish.size))

    def _offsets(self) -> list[Var]:
        """As `window_offsets`; where a window is one vector, of each of the four that
        is loaded."""
        layer = self.layer
        starts = [0]
        if layer.steps == 1:
            starts = list(range(0, self.count, layer.together))
        found = window_offsets(self.k, layer, self.given, starts)
        return found[:2] if layer.halved else found

    def _four(self, where: tuple[Expr, Var, list[Var]], ends: Var, y: Expr) -> None:
        """Computes four channels of four pixels."""
        k = self.k
        halves = []
        for pair in _PAIRS:
            ended = [k.let("ended", self._ended(c, where, ends)) for c in pair]
            halves.append(k.let("halves", self.finish.halves(*ended)))
        packed = k.let("packed", Bitcast(self.finish.bytes(*halves), WORDS))
        for i, lane in enumerate((*LANE, FOURTH)[: self.count]):
            to = offset(y, self.given["channels"] * i)
            k.store(to, 0, lane(packed), wide=True)

    def _ended(self, c: int, where: tuple[Expr, Var, list[Var]], ends: Var) -> Expr:
        """The results of one of four channels, a pixel in each lane."""
        x, w, offsets = where
        if self.layer.steps > 1:
            sums = self._long_sums(c, x, w, offsets)
        else:
            sums = self._short_sums(offset(x, c), self._weights(w, c), offsets)
        return self.finish.one(self.k, self._vector(sums), self.finish.numbers(ends, c))

    def _weights(self, w: Var, c: int) -> list[list[Var]]:
        """The weights of one of four channels, for each window that lies in a
        vector."""
        k, layer = self.k, self.layer
        places = [layer.lead - i * layer.apart for i in range(layer.together)]
        read = (weights_at(w, 16 * c + layer.unit * at, self.given) for at in places)
        return [[k.let("weights", one) for one in some] for some in read]

    def _short_sums(
        self, x: Expr, weights: list[list[Var]], offsets: list[Var]
    ) -> list[Expr]:
        """The sums of windows of one vector."""
        k, sums = self.k, list[Expr]()
        for four in offsets:
            values = k.let("values", gathered(self.layer, x, four))
            for weight in weights[: self.count - len(sums)]:
                sums.append(k.let("acc", dots(const(0), values, weight)))
        return sums

    def _long_sums(self, c: int, x: Expr, w: Var, offsets: list[Var]) -> list[Expr]:
        """The sums of windows of several vectors."""
        k, layer = self.k, self.layer
        step = self.given["channels"] * layer.window.stride_w
        sums: list[Expr] = [const(0)] * self.count
        froms = list[Expr]()  # where the windows begin, or their right halves
        for n in range(layer.steps):
            four, on = offsets[n % len(offsets)], n // len(offsets)
            half = self.given["gap"] * (3 * on)
            read = weights_at(w, 16 * (layer.steps * c + n), self.given)
            weights = [k.let("weights", one) for one in read]
            if n % len(offsets) == 0:
                froms = []
            for i in range(self.count):
                if len(froms) == i:
                    froms.append(k.let("from", offset(x, half + step * i + c)))
                values = gathered(layer, froms[i], four)
                if layer.nine:
                    values = k.let("values", values)
                sums[i] = k.let(f"acc{i}", dots(sums[i], values, weights))
        return sums

    @staticmethod
    def _vector(sums: list[Expr]) -> Expr:
        """A sum in each lane, the last one in those that are left."""
        return LANES_NOW(*sums, *sums[-1:] * (PIXELS - len(sums)))
