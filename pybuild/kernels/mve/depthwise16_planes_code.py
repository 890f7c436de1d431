"""The code of depthwise16_planes.py's kernels: rows turned into planes, then sums.

Knows no weight and no node.
"""

from __future__ import annotations

from typing import Any

from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Bitcast,
    Expr,
    Var,
    const,
    i32,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vector_packs import (
    GATHER_HALVES4,
    HOLD8,
    LANES_NOW,
    MORE8,
    ONCE_ALL4,
    PACK8,
    PLACES8,
)
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    DOT8,
    HALVES,
    LANES,
    MORE4,
    halves_at,
)

VECTOR = 8  # int16
FOUR = 4  # pixels of a vector of sums
_TOGETHER = 4  # rows that are turned together: each has a vector of places
_HELD = 3  # vectors of weights that stay in registers
_END = 3  # words of a channel

# depthwise16_planes.py's Planes
Layer = Any


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c]))).

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`; ends of each channel
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.y = k.row("y", 0, INT16, writable=True)
        self.rows = [k.row(f"row{ky}", ky + 1, INT16) for ky in range(w.kernel_h)]
        self.weights = k.row("weights", w.kernel_h + 1, INT8)
        self.ends = k.row("epilogue", w.kernel_h + 2, INT32)
        self.planes = k.row("planes", w.kernel_h + 3, INT16, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.plane = k.arg("plane", layer.plane)

    def write(self) -> Builder:
        k, layer, w = self.k, self.layer, self.layer.window
        begin: Expr = const(0)
        if w.left:
            begin = k.let("begin", k.arg("left", w.left) * w.kernel_h)
        width = k.arg("width", w.width)
        if any(layer.filled):
            self._fill(begin + width * w.kernel_h)
        places = k.let("places", PLACES8(self.plane * 2, self.plane))
        for first in range(0, w.kernel_h, _TOGETHER):
            last = min(first + _TOGETHER, w.kernel_h)
            self._turn(range(first, last), begin, width, places)
        given: dict[str, Expr] = {
            "planes": self.planes,
            "weights": self.weights,
            "epilogue": self.ends,
            "y": self.y,
            "channels": self.channels,
            "plane": self.plane,
        }
        if w.out_width >= 2 * FOUR:
            given["out_width"] = k.arg("out_width", w.out_width)
        if layer.held:
            given["lowest"] = k.arg("lowest", layer.epilogue.low)
            given["most"] = k.arg("most", layer.epilogue.high)
        name = f"sum16_mve_planes_{layer.sum_key}"
        with k.part(name, layer.sum_doc, **given) as params:
            _Sums(k, layer, {p.name: p for p in params}).write()
        return k

    def _fill(self, end: Expr) -> None:
        """Zeros before and behind the values of each channel. What is filled beside
        them is written again."""
        k, (left, right) = self.k, self.layer.filled
        zeros = k.let("zeros", Bitcast(ALL4(const(0)), HALVES))
        at = k.let("at", self.planes)
        end = k.let("end", end) if right else end
        with k.loop("channel", self.channels, rolled=True):
            for i in range(left):
                k.store(at, VECTOR * i, zeros)
            for i in range(right):
                k.store(at, end + VECTOR * i, zeros)
            k.assign(at, offset(at, self.plane))

    def _turn(self, rows: range, begin: Expr, width: Expr, places: Var) -> None:
        """Some rows: eight channels of a column at a time, each into its plane; the
        last eight again where they are no eight."""
        k, channels = self.k, self.channels
        sources = [k.let(f"from{ky}", self.rows[ky]) for ky in rows]
        its = [
            k.let("its_places", MORE8(places, const(ky))) if ky else places
            for ky in rows
        ]
        to = k.let("to", offset(self.planes, begin))
        rest: Expr = const(0)
        if self.layer.window.channels % VECTOR:
            rest = k.let("rest", channels % VECTOR)
            back = k.let("back", (channels - VECTOR) * self.plane)
        with k.loop("column", width, rolled=True):
            at = k.let("at", to)
            with k.loop("channel", channels - (VECTOR - 1), 0, VECTOR, rolled=True):
                for source, place in zip(sources, its, strict=True):
                    k.store(at, place, k.let("values", halves_at(source)))
                    k.assign(source, offset(source, VECTOR))
                k.assign(at, offset(at, self.plane * VECTOR))
            if self.layer.window.channels % VECTOR:
                last = k.let("last", offset(to, back))
                for source, place in zip(sources, its, strict=True):
                    values = halves_at(source, rest - VECTOR)
                    k.store(last, place, k.let("values", values))
                    k.assign(source, offset(source, rest))
            k.assign(to, offset(to, self.layer.window.kernel_h))


class _Sums:
    """The part of a kernel that sums a row; known: what it was given."""

    def __init__(self, k: Builder, layer: Layer, known: dict[str, Var]) -> None:
        self.k, self.layer, self.known = k, layer, known

    def write(self) -> None:
        """Eight pixels a turn, or four."""
        k, layer, known = self.k, self.layer, self.known
        offsets = {count: self._offsets(count) for count in dict.fromkeys(layer.counts)}
        width = known.get("out_width")
        if width is None:
            self._pixels(const(0), layer.counts, offsets)
            return
        stop: Expr = width
        if layer.ends_with_four:
            stop = k.let("whole", width - width % (2 * FOUR))
        with k.loop("ox", stop, 0, 2 * FOUR, rolled=True) as ox:
            if layer.window.out_width % (2 * FOUR) and not layer.ends_with_four:
                ox = k.let("pixel", minimum(ox, width - 2 * FOUR))
            self._pixels(ox, layer.counts, offsets)
        if layer.ends_with_four:
            self._pixels(k.let("pixel", width - FOUR), layer.counts[:1], offsets)

    def _offsets(self, count: int) -> list[Var]:
        """From where so many windows begin to each of their last taps; the last window
        is in all lanes that are left."""
        layer = self.layer
        windows = [layer.apart * min(i, count - 1) for i in range(FOUR)]
        taps = range(layer.taps - layer.singles, layer.taps)
        return [
            self.k.let("offsets", LANES(*(const(at + tap) for at in windows)))
            for tap in taps
        ]

    def _places(self, counts: tuple[int, ...]) -> Expr:
        """From the first pixel's value to those of the others."""
        channels, pixels = self.known["channels"], sum(counts)
        second = channels * FOUR if len(counts) > 1 else const(0)
        places = PLACES8(channels, second)
        if pixels % FOUR:
            places = HOLD8(places, const(0), channels * (pixels - 1))
        return places

    def _pixels(
        self, ox: Expr, counts: tuple[int, ...], offsets: dict[int, list[Var]]
    ) -> None:
        """One or two fours of pixels, channel after channel."""
        k, layer, known = self.k, self.layer, self.known
        places = k.let("places", self._places(counts))
        x = k.let("x", offset(known["planes"], ox * layer.apart))
        y = k.let("to", offset(known["y"], ox * known["channels"]))
        w, ends = k.let("w", known["weights"]), k.let("end", known["epilogue"])
        with k.loop("channel", known["channels"], rolled=True):
            bias, factor, shift = (k.let("number", load(ends, i)) for i in range(_END))
            whole = VECTOR * layer.steps
            singles = [
                k.let("weight", i32(load(w, whole + i))) for i in range(layer.singles)
            ]
            held = list[Var]()
            if layer.steps <= _HELD:
                held = [self._weights(w, step) for step in range(layer.steps)]
            ended = []
            for four, count in enumerate(counts):
                there = x
                if four:
                    there = k.let("other", offset(x, FOUR * layer.apart))
                total = self._total(there, w, held, count)
                for places4, weight in zip(offsets[count], singles, strict=True):
                    total = MORE4(total, GATHER_HALVES4(there, places4), weight)
                total = ONCE_ALL4(ADD4(total, bias), factor, shift)
                ended.append(k.let("ended", total))
            halves: Expr = PACK8(ended[0], ended[-1])
            if layer.held:
                halves = HOLD8(halves, known["lowest"], known["most"])
            k.store(y, places, halves)
            k.assign(x, offset(x, known["plane"]))
            k.assign(y, offset(y, 1))
            k.assign(w, offset(w, layer.weight_bytes))
            k.assign(ends, offset(ends, _END))

    def _weights(self, w: Var, step: int) -> Var:
        return self.k.let("weights", halves_at(w, VECTOR * step))

    def _total(self, x: Var, w: Var, held: list[Var], count: int) -> Expr:
        """The sums of whole vectors for so many pixels, one in each lane."""
        k, layer = self.k, self.layer
        sums: list[Expr] = [const(0)] * count
        for step in range(layer.steps):
            weights = held[step] if held else self._weights(w, step)
            for i in range(count):
                values = halves_at(x, layer.apart * i + VECTOR * step)
                sums[i] = k.let(f"acc{i}", DOT8(sums[i], values, weights))
        return LANES_NOW(*sums, *sums[-1:] * (FOUR - count))
