"""The code of depthwise.py's kernels: woven rows, then dot products.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Bitcast,
    Expr,
    Var,
    const,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vectors import (
    ALL16,
    BYTES,
    GATHER_KNOWN4,
    HALVES,
    LANES,
    ZIP2,
    ZIP4,
    bytes_at,
)
from pybuild.kernels.mve.depthwise_layer import SIDE, Layer
from pybuild.kernels.mve.depthwise_pixels import (
    PixelSums,
    dots,
    gathered,
    weights_at,
    window_offsets,
)
from pybuild.kernels.mve.epilogue import finish_of, numbers_of, size_of
from pybuild.kernels.mve.pixel_epilogue import PixelFinish


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c]))).

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`; ends of conv_mve's `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return Writer(layer).write()


class Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer, name: str = "") -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(name or layer.name, layer.doc)
        dilation = k.arg("dilation_h", w.dilation_h) if w.dilation_h > 1 else const(1)
        self.dilation_h: Expr = dilation
        rows = self.dilation_h * (w.kernel_h - 1) + 1
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", rows + 1, INT8)
        self.ends = k.row("epilogue", rows + 2, INT32)
        self.woven = k.row("woven", rows + 3, INT8, writable=True)
        lane = INT16 if layer.halves else INT32
        self.words = k.row("words", rows + 3, lane, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.out_width = k.arg("out_width", w.out_width)
        # columns of padding on either side of a row
        self.padded = w.left, w.right
        self.plane: Expr = const(0)
        if layer.planes > 1:
            self.plane = k.arg("plane", layer.plane)
        self.gap: Expr = self.channels
        if w.dilation_w > 1:
            self.gap = self.channels * k.arg("dilation_w", w.dilation_w)
        if layer.in_pixels:
            self.pixel_finish = PixelFinish(
                k, layer.epilogue, layer.turned, layer.steps == 1
            )
        if layer.singles:
            self.finish = finish_of(k, layer.epilogue)

    def write(self) -> Builder:
        k, w = self.k, self.layer.window
        begin: Expr = const(0)
        if w.left:
            begin = k.let("begin", k.arg("left", w.left) * self.channels)
        width = k.arg("width", self.layer.inside)
        size = k.let("size", width * self.channels)
        end = right = begin + size
        if self.layer.window.right:
            right = end + k.arg("right", self.layer.window.right) * self.channels
        # in order: what a fill writes behind its plane is written again
        for plane in range(self.layer.planes):
            first = self.plane * plane
            if w.left:
                self._fill(first, first + begin)
            if self.layer.window.right:
                self._fill(first + end, first + right)
            to = k.let("to", offset(self.woven, (first + begin) * self.layer.unit))
            if self.layer.halves and plane == self.layer.planes - 1:
                self._weave_last(to, size, (const(0), const(w.left), width))
            else:
                self._weave(
                    plane, to, size, const(0), self.layer.inside * w.channels % 16 > 0
                )
        self._sums()
        return k

    def _fill(self, first: Expr, last: Expr) -> None:
        """Lanes of padding, and up to a vector's rest more."""
        k, lanes = self.k, self.layer.lanes
        zeros: Expr = self._zeros
        if self.layer.halves:
            zeros = Bitcast(zeros, HALVES)
        with k.loop("at", last, first, lanes, rolled=True) as at:
            k.store(self.words, at, zeros)

    @property
    def _zeros(self) -> Var:
        """Words of padding."""
        if not hasattr(self, "zeros"):
            zero = self.layer.x_zero & 0xFF
            word = int.from_bytes(bytes([zero] * 4), "little", signed=True)
            value = self.k.arg("x_zeros", word)
            self.zeros = self.k.let("zeros", LANES(value, value, value, value))
        return self.zeros

    def _weave(
        self, plane: int, to: Expr, size: Expr, begin: Expr, ragged: bool
    ) -> None:
        """The bytes of four rows side by side, or of two, from `begin` on: a lane for
        each pixel and channel; ragged: the last vector reaches back."""
        k, w, unit = self.k, self.layer.window, self.layer.unit
        rows = [
            k.row(f"row{ky}", self.dilation_h * ky + 1, INT8)
            for ky in range(unit * plane, min(unit * (plane + 1), w.kernel_h))
        ]

        blank = []
        if len(rows) < unit:  # bytes of no weight
            blank = [k.let("blank", ALL16(const(0)))] * (unit - len(rows))

        def zip_at(at: Expr) -> None:
            values = [
                k.let(f"v{ky}", bytes_at(row, begin + at))
                for ky, row in enumerate(rows)
            ]
            values += blank
            zipped = ZIP2(*values) if self.layer.halves else ZIP4(*values)
            k.store(to, at * unit, zipped)

        with k.loop("at", size - 15, 0, 16, rolled=True) as at:
            zip_at(at)
        if ragged:
            zip_at(k.let("last", size - 16))

    def _weave_last(self, to: Expr, size: Expr, where: tuple[Expr, Expr, Expr]) -> None:
        """The last row, which is alone: of each pixel, or of every other one, its byte
        and that of its right neighbour. What reaches beyond a pixel is written again.

        where  where the row begins, columns of padding before it, and its pixels
        """
        (begin, left, pixels), channels = where, self.channels
        k, w, padded = self.k, self.layer.window, self.padded
        apart = w.stride_w == 2
        row = k.row("row_alone", self.dilation_h * (w.kernel_h - 1) + 1, INT8)
        zeros = k.let("padding", Bitcast(self._zeros, BYTES)) if any(padded) else None
        odd = padded[0] % 2
        if zeros is not None and padded[0] and (odd or not apart):
            count = minimum(left, 1) * channels
            with k.loop("at", count, 0, 16, rolled=True) as at:
                value = k.let("v", bytes_at(row, begin + at))
                k.store(to, (at - channels) * 2, ZIP2(zeros, value))
        if self.layer.meets_right:
            with k.loop("back", channels, 0, 16, rolled=True) as back:
                at = k.let("at", size - 16 - back)
                value = k.let("v", bytes_at(row, begin + at))
                beside = value if zeros is None or not padded[1] else zeros
                k.store(to, at * 2, ZIP2(value, beside))

        def zip_at(at: Expr) -> None:
            here = k.let("v", bytes_at(row, begin + at))
            beside = k.let("beside", bytes_at(row, begin + at + channels))
            k.store(to, at * 2, ZIP2(here, beside))

        if not apart:
            whole = k.let("pairs", size - channels)
            with k.loop("at", whole - 15, 0, 16, rolled=True) as at:
                zip_at(at)
            if self.layer.exact or (self.layer.inside - 1) * w.channels % 16:
                zip_at(k.let("last", whole - 16))
            return
        first = minimum(left, 1) if odd else const(0)
        with k.loop("pixel", pixels - 1, first, 2, rolled=True) as ox:
            start = k.let("start", ox * channels)
            with k.loop("at", channels, 0, 16, rolled=True) as at:
                if w.channels % 16:
                    at = minimum(at, channels - 16)
                zip_at(k.let("from", start + at))

    def _sums(self) -> None:
        """The sums of the row, in a function of their own."""
        k, name = self.k, f"sum_mve_{self.layer.sum_key}"
        given = {
            "words": self.words,
            "weights": self.weights,
            "epilogue": self.ends,
            "y": self.y,
            "channels": self.channels,
            "out_width": self.out_width,
            **({"plane": self.plane} if self.layer.planes > 1 else {}),
            **({"gap": self.gap} if self.layer.wide else {}),
            **self._lack(),
            **(self.finish.values if self.layer.singles else {}),
            **(self.pixel_finish.values if self.layer.in_pixels else {}),
        }
        with k.part(name, self.layer.sum_doc, **given) as params:
            inner = {p.name: p for p in params}
            self.lack = {name: inner[name] for name in self._lack()}
            if self.layer.in_pixels:
                finish = self.pixel_finish.inside(inner)
                PixelSums(k, self.layer, inner, finish).write()
            if self.layer.singles:
                self.finish = self.finish.inside(inner)
                self._row(inner)

    def _lack(self) -> dict[str, Expr]:
        """The way from a table of weights to that of what they lack."""
        if not self.layer.nine:
            return {}
        return {"lack": self.k.arg("lack", self.layer.weight_bytes)}

    def _row(self, given: dict[str, Var]) -> None:
        k, channels = self.k, given["channels"]
        offsets = window_offsets(k, self.layer, given)
        if not self.layer.turned:
            size = size_of(self.layer.epilogue)
            self.fourth = k.let("fourth", LANES(0, size, 2 * size, 3 * size))
        if self.layer.channels_outside:
            with self._channels(given) as (c, w, ends):
                for n, x, y in self._columns(given, c):
                    self._four(n, (x, w, offsets), ends, (y, channels))
            return
        for n, x, y in self._columns(given, const(0)):
            with self._channels(given) as (c, w, ends):
                here = offset(y, c)
                self._four(n, (offset(x, c), w, offsets), ends, (here, channels))

    @contextmanager
    def _channels(self, given: dict[str, Var]) -> Iterator[tuple[Expr, Var, Var]]:
        """Four channels at a time: the first, their weights, their ends."""
        k, channels, size = self.k, given["channels"], 16 * self.layer.steps
        ends = k.let("next_epilogue", given["epilogue"])
        with k.loop("channel", channels, 0, SIDE, rolled=True) as c:
            if self.layer.window.channels % SIDE:
                c = k.let("first", minimum(c, channels - SIDE))
                if not self.layer.turned:
                    of_each = size_of(self.layer.epilogue) // SIDE
                    k.assign(ends, offset(given["epilogue"], c * of_each))
            yield c, k.let("w", offset(given["weights"], c * size)), ends
            k.assign(ends, offset(ends, size_of(self.layer.epilogue)))

    def _columns(
        self, given: dict[str, Var], first: Expr
    ) -> Iterator[tuple[int, Var, Var]]:
        """Loops over the row: columns together, then the rest one by one.

        Yields how many, and where the first of their first channel is read and stored
        """
        k, n, w = self.k, self.layer.together, self.layer.window
        channels, width = given["channels"], given["out_width"]
        begin: Expr = const(0)
        if self.layer.in_pixels:
            n = min(n, self.layer.singles)
            begin = k.let("begin", width - self.layer.singles)
            at = k.let("at", begin * channels)
            x = k.let("x", offset(given["words"], first + at * w.stride_w))
            y = k.let("to", offset(given["y"], first + at))
        else:
            x = k.let("x", offset(given["words"], first))
            y = k.let("to", offset(given["y"], first))
        left = self.layer.singles % n
        whole: Expr = width
        if left:
            whole = k.let(
                "whole", width - (left if self.layer.in_pixels else width % n)
            )
        ways: list[tuple[int, Expr, Expr]] = [(n, begin, whole)]
        if left:
            ways.append((1, whole, width))
        for count, start, stop in ways:
            with k.loop("ox", stop, start, count, rolled=True):
                yield count, x, y
                k.assign(x, offset(x, channels * (count * w.stride_w)))
                k.assign(y, offset(y, channels * count))

    def _four(
        self,
        n: int,
        where: tuple[Expr, Var, list[Var]],
        ends: Var,
        to: tuple[Expr, Expr],
    ) -> None:
        """Computes four channels of n pixels."""
        y, channels = to
        for i, four in enumerate(self._dots(n, *where)):
            numbers = self._numbers(ends)
            value = self.finish.narrow(LANES(*four), numbers)
            self.k.store(offset(y, channels * i), 0, value)

    def _numbers(self, ends: Var) -> list[Expr]:
        """The epilogue numbers of four channels."""
        if self.layer.turned:
            return numbers_of(self.layer.epilogue, ends)
        count = size_of(self.layer.epilogue) // SIDE
        return [GATHER_KNOWN4(offset(ends, i), self.fourth) for i in range(count)]

    def _dots(self, n: int, x: Expr, w: Var, offsets: list[Var]) -> list[list[Expr]]:
        """The sums of four channels, of each of n pixels."""
        k, layer = self.k, self.layer
        sums: list[list[Expr]] = [[] for _ in range(n)]
        for c in range(SIDE):
            totals: list[Expr] = [const(0)] * n
            for step, four in enumerate(offsets):
                values = k.let("values", gathered(layer, offset(x, c), four))
                for i in range(n):
                    at = 16 * (layer.steps * c + step)
                    at += layer.unit * (layer.lead - i * layer.apart)
                    dot = dots(totals[i], values, weights_at(w, at, self.lack))
                    totals[i] = k.let(f"acc{i}", dot)
            for four_sums, total in zip(sums, totals, strict=True):
                four_sums.append(total)
        return sums
