"""2-D convolution by rows: int8 and int16 with requantisation, and float32.

One builder serves grouped, dilated and pointwise layers and, as an image of one
row, fully connected ones (dense.py).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.operands import short
from pybuild.kernels.base.reals import FROM_HALF
from pybuild.kernels.base.window import Bound, Window
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.int8 import Finish, FloatClamp
from pybuild.kernels.layers.weights import (
    WEIGHTS16,
    constant,
    epilogue,
)
from pybuild.records import dataclass
from pybuild.targets.target import Target

# output channels whose integer sums a Cortex-M holds; 16 on vectors take 1.3 to 2.4
# times as long on a host
_INTEGER_SUMS = (4, 1)
# blocks of at least so many output channels have their weights interleaved
_INTERLEAVED = 8


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    x_zero  input zero point (0 for float)
    sizes   output channels computed together, largest first, the last one 1
    over    a pixel is copied before it is used: its row may be written over
    elem    of activations; the weights are float32 or int8
    total   of the sums
    halves  float32 weights are float16
    wide    int8 weights are int16: of nine bits
    """

    window: Window
    finish: Finish
    sizes: tuple[int, ...]
    x_zero: int = 0
    over: bool = False
    elem: DType = INT8
    total: DType = INT32
    halves: bool = False
    wide: bool = False

    @property
    def is_float(self) -> bool:
        return isinstance(self.finish, FloatClamp)

    @property
    def is_bare(self) -> bool:
        """True if sums are stored directly, without a bias."""
        return isinstance(self.finish, Bare)

    @property
    def out(self) -> DType:
        """The type of what is stored."""
        return INT32 if self.is_bare else self.elem

    @property
    def stored(self) -> DType:
        """The type of weights; of float16 their bits."""
        if self.halves:
            return UINT16
        whole = INT16 if self.wide else INT8
        return FLOAT32 if self.is_float else whole

    @property
    def counts_outside(self) -> bool:
        """Columns outside the row are added, as zero points."""
        shifted = self.elem is INT8 or self.x_zero != 0
        return self.window.padded and shifted and not self.is_float

    @property
    def group_outputs(self) -> int:
        return self.window.group_outputs

    @property
    def blocks(self) -> tuple[tuple[int, int, int], ...]:
        """(block, first, last): which channels of a group go in blocks of a size."""
        found, start = [], 0
        for size in self.sizes:
            stop = self.group_outputs - self.group_outputs % size
            if stop > start:
                found.append((size, start, stop))
                start = stop
        return tuple(found)

    @property
    def name(self) -> str:
        kind = short(self.elem) + ("_s64" if self.total is INT64 else "")
        tail = "_".join(str(size) for size, _, _ in self.blocks)
        over = "over" if self.over else ""
        kind += "_f16" * self.halves + "_w16" * self.wide
        kind += "_zero" * (self.counts_outside and self.elem is not INT8)
        parts = ("conv2d", kind, self.window.key, self.finish.key, tail, over)
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        real = "float32" + " x float16" * self.halves
        kinds = real if self.is_float else f"{self.elem.value} x {self.stored.value}"
        sums = "" if self.is_float else f", {self.total.value} sums"
        blocks = " then ".join(str(size) for size, _, _ in self.blocks)
        copied = "each pixel is copied first; " if self.over else ""
        return told(
            f"convolution, {kinds}{sums}: {self.window.words}",
            f"{copied}pixel by pixel; output channels in blocks of {blocks}, for each "
            "block all taps, row by row; weights from the first to the last",
            self.finish.words,
        )


def kernel(layer: Layer) -> Builder:
    """y[ox,o] = finish(bias[o] + sum(x * w)), a few output channels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; bias [O]
            (int8: int32, with -x_zero * sum(w) folded in)
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


def pack(layer: Layer, weights: Array) -> Packed:
    """Weights [O,KH,KW,C/groups] in reading order: large blocks interleaved."""
    order = "output channels, taps row by row, inputs"
    role = WEIGHTS16 if layer.halves else "weights"
    if any(size >= _INTERLEAVED for size, _, _ in layer.blocks):
        order = "blocks of output channels: taps, then the channels of the block"
    return Packed.later(role, order, _arranged, layer, weights)


def _arranged(layer: Layer, weights: Array) -> Array:
    grouped = weights.reshape(layer.window.groups, layer.group_outputs, -1)
    parts = []
    for size, start, stop in layer.blocks:
        part = grouped[:, start:stop]
        if size >= _INTERLEAVED:
            part = part.reshape(len(grouped), -1, size, grouped.shape[2])
            part = part.transpose(0, 1, 3, 2)
        parts.append(part.reshape(len(grouped), -1))
    made = parts[0] if len(parts) == 1 else np.concatenate(parts, 1)
    if layer.halves:
        made = made.astype(np.float16).view(np.uint16)
    return made.reshape(weights.shape)


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        w = layer.window
        self.elem, self.total = layer.elem, layer.total
        self.factor = FLOAT32 if layer.is_float else INT32
        self.y = k.row("y", 0, layer.out, writable=True)
        self.weights = k.row("weights", g.rows + 1, layer.stored)
        self.bias = k.row("bias", g.rows + 2, self.total)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.group_inputs, self.group_outputs = g.channels, self.out_channels
        if w.groups > 1:
            self.group_inputs = k.arg("group_inputs", w.channels // w.groups)
            self.group_outputs = k.arg("group_outputs", layer.group_outputs)
        self.x_zero: Expr = const(0)
        if layer.counts_outside:
            self.x_zero = k.arg("x_zero", layer.x_zero)
        after = g.rows + (2 if layer.is_bare else 3)
        self.finish = layer.finish.bind(k, after)
        self.pixel: Var | None = None
        if layer.over:
            after = after + len(layer.finish.tables())
            self.pixel = k.row("pixel", after, self.elem, writable=True)
        self.row_taps = k.let("row_taps", g.kernel_w * self.group_inputs)
        self.patch = self.row_taps
        if not w.pointwise:
            self.patch = k.let("patch", self.row_taps * g.kernel_h)

    def write(self) -> Builder:
        k, g = self.k, self.g
        with k.loop("ox", g.out_width) as ox:
            x0 = k.let("x0", ox * g.stride - g.left)
            first, last = g.inside(k, x0)
            inside = (first, last)
            if self.pixel is not None:
                pixel = k.let("at_pixel", x0 * g.channels)
                row = k.row("from", 1, self.elem)
                with k.loop("c", g.channels) as c:
                    k.store(self.pixel, c, load(row, pixel + c))
                self._channels(ox, x0, inside, const(0), const(0))
            elif self.layer.window.groups == 1:
                self._channels(ox, x0, inside, const(0), x0 * g.channels)
            else:
                with k.loop(
                    "group", k.arg("groups", self.layer.window.groups)
                ) as group:
                    base = k.let("base", group * self.group_outputs)
                    start = x0 * g.channels + group * self.group_inputs
                    self._channels(ox, x0, inside, base, start)
        return k

    def _channels(
        self, ox: Expr, x0: Expr, inside: tuple[Expr, Expr], base: Expr, start: Expr
    ) -> None:
        k, blocks = self.k, self.layer.blocks
        begin = k.let("begin", start)
        low: Expr = const(0)
        for block, _, stop in blocks:
            high = self.group_outputs
            if stop != self.layer.group_outputs:
                high = k.let(f"whole_{block}", high - high % block)
            with k.loop("channel", base + high, base + low, block) as channel:
                accs = self._accumulate(block, channel, begin, inside)
                y = k.let("to", ox * self.out_channels + channel)
                for j, acc in enumerate(accs):
                    k.store(self.y, y + j, self.finish.apply(acc, channel + j))
            low = high

    def _accumulate(
        self, block: int, channel: Expr, begin: Expr, inside: tuple[Expr, Expr]
    ) -> list[Var]:
        k, g = self.k, self.g
        accs = [k.let(f"acc{j}", self._start(channel + j)) for j in range(block)]
        at = k.let("at", channel * self.patch)
        step = block if block >= _INTERLEAVED else 1
        with k.loop("ky", g.kernel_h) as ky:
            x = self.pixel
            if x is None:
                x = k.row("x", ky * g.dilation_h + 1, self.elem)
            w = k.let("w", offset(self.weights, at + ky * self.row_taps * step))
            self._taps(accs, x, w, begin, inside)
        return accs

    def _start(self, channel: Expr) -> Expr:
        return const(0) if self.layer.is_bare else load(self.bias, channel)

    def _taps(
        self, accs: list[Var], x: Expr, w: Var, begin: Expr, inside: tuple[Expr, Expr]
    ) -> None:
        k, g, window = self.k, self.g, self.layer.window
        first, last = inside
        if window.dilation_w == 1 and window.groups == 1:
            low = (
                k.let("from", first * self.group_inputs) if window.padded else const(0)
            )
            high = last * self.group_inputs
            with k.loop("tap", high, low) as tap:
                self._multiply(accs, load(x, begin + tap), w, tap)
        else:
            with k.loop("kx", last, first) as kx:
                pixel = k.let("pixel", begin + kx * g.dilation_w * g.channels)
                at = k.let("tap_at", kx * self.group_inputs)
                with k.loop("c", self.group_inputs) as c:
                    self._multiply(accs, load(x, pixel + c), w, at + c)
        if self.layer.counts_outside:
            with k.loop("tap", first * self.group_inputs) as tap:
                self._multiply(accs, self.x_zero, w, tap)
            with k.loop("tap", self.row_taps, last * self.group_inputs) as tap:
                self._multiply(accs, self.x_zero, w, tap)

    def _multiply(self, accs: list[Var], x: Expr, w: Expr, tap: Expr) -> None:
        k = self.k
        value = k.let("value", cast(x, self.factor)) if len(accs) > 1 else x
        for j, acc in enumerate(accs):
            where = tap + self.patch * j
            if len(accs) >= _INTERLEAVED:
                where = tap * len(accs) + j
            weight = load(w, where)
            if self.layer.halves:
                weight = FROM_HALF(i32(weight))
            product = cast(value, self.factor) * cast(weight, self.factor)
            k.assign(acc, acc + cast(product, self.total))


def weighted(
    node: Node, graph: Graph, window: Window, target: Target, halves: bool = False
) -> tuple[Layer, tuple[Packed, ...]]:
    """The layer of a node with weights and bias, and its tables in order."""
    weights = constant(node, graph, 1)
    kernels = weights.reshape(weights.shape[0], -1)
    finish, bias, x_zero = epilogue(node, graph, kernels)
    is_float = isinstance(finish, FloatClamp)
    sizes = target.float_blocks if is_float else _INTEGER_SUMS
    if node.inputs[1] in graph.parameters:  # stay row-major: for all to share
        sizes = tuple(size for size in sizes if size < _INTERLEAVED)
        sizes = sizes if len(sizes) > 1 else (_INTERLEAVED // 2, 1)
    elem, total = graph.tensor(node.inputs[0]).dtype, DType.of(bias)
    wide = weights.dtype == np.int16
    layer = Layer(window, finish, sizes, x_zero, False, elem, total, halves, wide)
    added = () if layer.is_bare else (Packed("bias", bias, order=EACH),)
    tables = (pack(layer, weights), *added, *layer.finish.tables())
    return layer, tables


def plain(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
    target: Target,
) -> list[Candidate]:
    """The kernel of blocks of outputs, and for int8, whose weights lie alike for both,
    one that has half its code: an output at a time."""
    found = [offer(layer, rows, tables, calls, target)]
    if layer.elem is INT8:
        found.append(offer(replace(layer, sizes=(1,)), rows, tables, calls, target))
    return found


def cost(layer: Layer, target: Target) -> int:
    """Estimated instructions of a pixel: products, and the ends of sums."""
    w = layer.window
    taps = w.kernel_h * w.kernel_w * (w.channels // w.groups)
    several, alone = 4, 7
    # without high products; less for what is in place, since that is worth memory
    slow = bool(target.sums) and "mulhi" not in target.features
    end = (36 if layer.over else 78) if slow else 24
    sizes = [(size, stop - start) for size, start, stop in layer.blocks]
    if layer.is_float and any(size > 1 for size, _ in sizes):
        alone = several
    each = (n * ((several if size > 1 else alone) * taps + end) for size, n in sizes)
    return w.groups * sum(each)


def offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
    target: Target,
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    images, bands = calls
    w = layer.window
    pixels = images * bands * w.out_width
    pixel = w.channels * layer.elem.bytes if layer.over else 0
    return Candidate(
        func=k.finish(in_place=layer.over),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=pixel,
        in_place=(0,) if layer.over else (),
        cost=pixels * (cost(layer, target) + 8 * pixel),
    )
