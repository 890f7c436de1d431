"""The code of conv.py's kernels: a patch of pixels, then blocks of sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound, InsideRows
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import (
    columns,
    exact_of,
    finish_of,
)
from pybuild.kernels.layers.image import Image
from pybuild.kernels.layers.zero_points import HALF
from pybuild.kernels.scalar.conv_layer import UINT8, Layer
from pybuild.kernels.scalar.conv_sums import Sums


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), a block at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; ends of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.elem = layer.patch_elem
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        bare = isinstance(layer.epilogue, Bare)
        self.y = k.row("y", 0, INT32 if bare else layer.elem, writable=True)
        weight = INT32 if layer.paired else UINT8 if layer.halved else INT8
        rows = g.rows if layer.image is None else const(1)
        self.weights = k.row("weights", rows + 1, weight)
        self.ends = k.row("epilogue", rows + 2, INT32)
        after, rules = rows + (2 if bare else 3), None
        if exact_of(layer.epilogue) is not None:
            rules, after = k.row("exact", after, INT32), after + 1
        self.patch = k.row("patch", after, self.elem, writable=True)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.turns = k.arg("turns", layer.turns)
        self.finish = finish_of(k, layer.epilogue, rules)
        self.x_zero: Expr = const(0)
        self.less: Expr | None = None
        if layer.centred:
            self.less = k.arg("x_zero", layer.x_zero)
        elif layer.window.padded:
            zero = layer.x_zero + (HALF if layer.unsigned else 0)
            self.x_zero = k.arg("x_zero", zero)
        self.less_half: Expr = const(-layer.half)
        if layer.zero is not None:
            self.less_half = k.arg("weights_zero", -layer.zero)
        words = k.row("words", after, INT32, writable=True)
        self.sums = words
        if layer.halved:
            at = k.arg("sums_at", layer.patch // 4 - layer.pixels)
            self.sums = k.let("half_sums", offset(words, at))
        # of a group: its inputs and outputs, and where they begin
        self.inputs: Expr = g.channels
        self.outputs: Expr = self.out_channels
        self.start: Expr = const(0)
        self.base: Expr = const(0)
        if layer.ahead:
            self.patch_bytes = k.arg("patch_bytes", layer.patch)
            self.patch_size: Expr = self.patch_bytes
            if self.elem.bytes > 1:
                self.patch_size = self.patch_bytes >> self.elem.bytes // 2

    def write(self) -> Builder:
        k, layer = self.k, self.layer
        groups = layer.window.groups
        if layer.image is not None:
            self._image(layer.image)
            return k
        if groups == 1:
            self._row()
            return k
        self.inputs = k.arg("group_inputs", layer.window.group_channels)
        self.outputs = k.arg("group_outputs", layer.group_outputs)
        count = layer.blocks * layer.channels
        weights, ends = self.weights, self.ends
        size = count * layer.lanes // (2 if layer.int4 else 1)
        taps = k.arg("group_weights", size)
        words = k.arg("group_ends", count * columns(layer.epilogue))
        with k.loop("group", k.arg("groups", groups)) as group:
            self.start = k.let("start", group * self.inputs)
            self.base = k.let("base", group * self.outputs)
            self.weights = k.let("its_weights", offset(weights, group * taps))
            self.ends = k.let("its_ends", offset(ends, group * words))
            self._row()
        return k

    def _image(self, image: Image) -> None:
        """All rows, each of the rows of its windows that lie in the image."""
        k, g, w = self.k, self.g, self.layer.window
        x, to = k.row("x", 1, self.layer.elem), k.let("line", self.y)
        size, self.y = k.arg("row_size", w.width * w.channels), to
        top, stride = k.arg("top", image.top), k.arg("stride_h", image.stride_h)
        height = k.arg("height", image.height)
        self.row_weights = k.arg("row_weights", w.run * self.layer.loads)
        with k.loop("oy", k.arg("out_height", image.out_height)) as oy:
            above = k.let("above", top - oy * stride)
            self.first = k.let("first", maximum(above, 0))
            last = minimum(above + height, g.kernel_h)
            count = k.let("inside", last - self.first)
            base = k.let("base", offset(x, (self.first - above) * size))
            g.inside_rows = InsideRows(base, count, size)
            self._row()
            k.assign(to, offset(to, g.out_width * self.out_channels))

    def _row(self) -> None:
        """All pixels, of a group."""
        layer = self.layer
        if layer.ahead:
            with self._blocks() as ox:
                self._gather_all(ox)
        with self._blocks() as ox:
            self._pixels(ox)
        if layer.rest is not None:
            self.layer = layer.rest
            self._pixels(self.k.let("rest", self.g.out_width - layer.over))
            self.layer = layer

    def _pixels(self, ox: Expr) -> None:
        """A block of pixels, from the first on."""
        k, g, layer = self.k, self.g, self.layer
        if layer.direct:
            x = k.row("row", 1, layer.elem)
            start = ox * g.stride * g.channels
            self._channels(ox, k.let("x", offset(x, start)))
        else:
            if not layer.ahead:
                self._gather_all(ox)
            self._channels(ox, self.patch)

    @contextmanager
    def _blocks(self) -> Iterator[Expr]:
        """The first pixel of each block, and its patch."""
        k, g, n, ahead = self.k, self.g, self.layer.pixels, self.layer.ahead
        first, sums = self.patch, self.sums
        if ahead:
            self.patch = k.let("its_patch", first)
            self.sums = k.let("its_sums", sums)
        count = g.out_width
        if self.layer.rest is not None:
            count = g.out_width - self.layer.over
        with k.loop("block", count, 0, n) as block:
            ox: Expr = block
            if self.layer.over and not self.layer.apart:
                # the last block may compute pixels of the one before again
                ox = k.let("ox", minimum(block, g.out_width - n))
            yield ox
            if ahead:
                k.assign(self.patch, offset(self.patch, self.patch_size))
                k.assign(self.sums, offset(self.sums, self.patch_bytes >> 2))
        self.patch, self.sums = first, sums

    def _gather_all(self, ox: Expr) -> None:
        """The windows of a block."""
        with self.k.loop("pixel", self.layer.pixels) as pixel:
            self._gather(ox + pixel, pixel)

    def _gather(self, ox: Expr, pixel: Expr) -> None:
        """Copies the window of one pixel into every so many bytes of the patch."""
        k, g, w = self.k, self.g, self.layer.window
        to = k.let("to", offset(self.patch, pixel))
        total = k.let("total", 0) if self.layer.halved else None
        x0 = k.let("x0", ox * g.stride - g.left)
        if self.layer.skips_columns:
            self._cut(x0, to)
            return
        if not w.padded:
            self._inside(x0, to, total)
        else:
            with k.when(g.fits(x0)):
                self._inside(x0, to, total)
            with k.otherwise():
                self._columns(x0, to, total)
        for more in range(self.layer.lanes - self.layer.taps):
            k.store(to, more * self.layer.pixels, const(0, self.elem))
        if total is not None:
            k.store(self.sums, pixel, total * self.less_half)

    def _cut(self, x0: Expr, to: Var) -> None:
        """The columns of a window that lie in the row."""
        k, g = self.k, self.g
        self.columns = g.inside(k, x0)
        first, last = self.columns
        begin = k.let("begin", (x0 + first) * g.channels)
        run = k.let("run", (last - first) * g.channels)
        with g.runs(k, begin, self.layer.elem) as x:
            self._copy(x, run, to, None)

    def _inside(self, x0: Expr, to: Var, total: Var | None) -> None:
        """A window that lies in the row."""
        k, g, w = self.k, self.g, self.layer.window
        begin = k.let("begin", x0 * g.channels + self.start)
        run = self.inputs
        if not w.pointwise and not w.by_taps:
            run = k.let("run", g.channels * g.kernel_w)
        with g.runs(k, begin, self.layer.elem) as x:
            self._copy(x, run, to, total)

    def _columns(self, x0: Expr, to: Var, total: Var | None) -> None:
        """A window that leaves the row, column by column."""
        k, g = self.k, self.g
        with g.columns(k, x0, self.layer.elem) as (inside, source):
            with k.when(inside):
                x = k.let("x", offset(source, self.start))
                self._copy(x, self.inputs, to, total)
            with k.otherwise():
                self._copy(None, self.inputs, to, total)

    def _copy(self, x: Var | None, count: Expr, to: Var, total: Var | None) -> None:
        """`count` bytes into the patch; None: the zero point as often."""
        k, layer = self.k, self.layer
        step = 4 if layer.fours else 1
        with k.loop("at", count, 0, step, rolled=True) as at:
            for i in range(step):
                value: Expr = self.x_zero
                if x is not None:
                    value = cast(load(x, at + i), INT32)
                    value = value + HALF if layer.unsigned else value
                    value = value - self.less if self.less is not None else value
                if total is not None:
                    value = k.let("value", value)
                    k.assign(total, total + value)
                k.store(to, i * layer.pixels, cast(value, self.elem))
            k.assign(to, offset(to, step * layer.pixels))

    def _channels(self, ox: Expr, x: Expr) -> None:
        """Computes all output channels of some pixels, in a separate function."""
        k, layer = self.k, self.layer
        given: dict[str, Expr] = {
            "x": x,
            "weights": self.weights,
            "epilogue": self.ends,
            "y": offset(self.y, ox * self.out_channels + self.base),
            "out_channels": self.out_channels,
            **self._runs(),
            **({"group_outputs": self.outputs} if layer.window.groups > 1 else {}),
        }
        if layer.halved:
            given["half_sums"] = self.sums
        if layer.run_turns:
            given["run_turns"] = k.arg("run_turns", layer.run_turns)
            turns = layer.lanes // layer.unrolled
            given["runs"] = k.arg("runs", -(-turns // layer.run_turns))
        given |= self.finish.values
        with k.part(self._part_name(), layer.part_doc, **given) as params:
            known = {p.name: p for p in params}
            Sums(k, layer, known, self.finish.inside(known)).write()

    def _runs(self) -> dict[str, Expr]:
        """The weights to read: for an image, those of the taps that lie in it."""
        k, g, layer = self.k, self.g, self.layer
        if layer.image is None or g.inside_rows is None:
            return {"turns": self.turns}
        block, count = self.row_weights * g.kernel_h, g.inside_rows.count
        begin = self.first * self.row_weights
        if not layer.skips_columns:
            turns = k.let("turns_inside", count * self.turns)
            return {"turns": turns, "begin": begin, "block": block}
        first, last = self.columns
        column = g.channels * layer.loads
        many = k.let("columns_inside", last - first)
        return {
            "turns": k.let("turns_inside", many * self.turns),
            "begin": begin + first * column,
            "block": block,
            "window_rows": count,
            "gap": self.row_weights - many * column,
        }

    def _part_name(self) -> str:
        """The name of the part, which distinguishes the code of two layers here."""
        layer = self.layer
        parts = (
            f"block{layer.channels}x{layer.pixels}_by{layer.unrolled}",
            layer.types,
            "runs" if layer.run_turns else "",
            "image" if layer.image is not None else "",
            "paired" if layer.paired else "",
            "int4" if layer.int4 else "",
            "unsigned" if layer.unsigned else "",
            "direct" if layer.direct else "",
            "over" if layer.group_outputs % layer.channels else "",
            "grouped" if layer.window.groups > 1 else "",
            layer.epilogue.key,
        )
        return "_".join(p for p in parts if p)
