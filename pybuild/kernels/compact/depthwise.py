"""int8 depthwise convolution by one kernel of little code: for `--optimise size`.

Rows are copied into scratch with their padding. Four neighbouring channels of a pixel
are a word, and so are their weights of one tap: four products by halves of their
widened bytes. The last four channels may be computed twice. One code for all sizes of
a window; of a whole image, or of a row whose rows need not be neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT32, Expr, Var, const, load, minimum, offset, wide
from pybuild.kernels.base.builder import Builder, Named, have_room, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.intrin import EVEN_BYTES, MLA_HIGH, MLA_LOW, ODD_BYTES
from pybuild.kernels.base.window import Window
from pybuild.kernels.compact.epilogue import columns, ended, forms, kind_of, read_end
from pybuild.kernels.compact.lines import blank, copy, lanes, whole_words
from pybuild.kernels.epilogues.affine import Affine, told_form
from pybuild.kernels.epilogues.affine_end import AffineFinish
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.image import Image, image_of, whole_images
from pybuild.kernels.layers.known_sums import affine_sums
from pybuild.kernels.layers.weights import constant, in_blocks, takes_pairs
from pybuild.records import dataclass
from pybuild.targets.target import Target

GROUP = 4  # channels done together
UNROLLED = 3  # taps in one turn of the innermost loop
MOST = 1 << 8  # taps: their products alone stay within REACH of staircase.py


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it.

    image   None: a call makes one row, of rows that need not be neighbours
    signed  what a sum's sign adds is there, be it 0
    """

    window: Window
    epilogue: Affine
    x_zero: int
    image: Image | None
    signed: bool

    @property
    def turns(self) -> int:
        """Taps of a row, padded to whole iterations; the weights of added taps are
        0."""
        return self.window.kernel_w + -self.window.kernel_w % UNROLLED

    @property
    def pitch(self) -> int:
        """Bytes of a line: all columns, and padding that windows reach."""
        w = self.window
        reach = (w.out_width - 1) * w.stride_w + w.kernel_w
        return whole_words(max(w.left + w.width, reach) * w.channels)

    @property
    def scratch(self) -> int:
        """Bytes of the lines, and of the bytes after them that are read with weights of
        0."""
        w = self.window
        return w.kernel_h * self.pitch + (self.turns - w.kernel_w) * w.channels

    @property
    def arguments(self) -> tuple[tuple[Named, Named], ...]:
        """Two by two, as the kernel takes them."""
        w, image = self.window, self.image
        heights = (image.out_height, image.height, image.top) if image else (0, 0, 0)
        return (
            (("out_width", w.out_width), ("channels", w.channels)),
            (("width", w.width), ("pitch", self.pitch)),
            (("stride_left", w.left << 8 | w.stride_w), ("top", heights[2])),
            (("out_height", heights[0]), ("height", heights[1])),
        )

    @property
    def has_room(self) -> bool:
        """True if all numbers fit their halves and quarters of arguments."""
        w = self.window
        return have_room(self.arguments) and max(w.stride_w, w.left) < 1 << 7

    @property
    def name(self) -> str:
        parts = ("depthwise_small", self.kind, "image" * (self.image is not None))
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        lines = "rows under the window are"
        if self.image is not None:
            lines = "output row by output row: the rows under the window are"
        return told(
            "depthwise convolution, int8, int32 sums: windows of any size",
            f"{lines} copied with what stands beside them; then pixel by pixel, four "
            "channels at a time; weights and epilogues are one stream, read forward",
            told_form(self.signed, self.epilogue.clamped),
        )

    @property
    def kind(self) -> str:
        """The key that distinguishes the sums of two layers."""
        wide = "wide" if self.turns > UNROLLED else ""
        return "_".join(p for p in (wide, kind_of(self.epilogue, self.signed)) if p)


def pack(layer: Layer, kernels: Array, bias: Array) -> Packed:
    """Weights in reading order: for each four channels, their weights [C, taps] for
    each tap, and their epilogue numbers."""
    w = layer.window
    read = in_blocks(w.channels, GROUP)
    whole = np.zeros((w.channels, w.kernel_h, layer.turns), np.int8)
    whole[..., : w.kernel_w] = kernels.reshape(w.channels, w.kernel_h, w.kernel_w)
    fours = whole[read].reshape(len(read) // GROUP, GROUP, -1)
    words = np.ascontiguousarray(fours.transpose(0, 2, 1)).view("<i4")
    ends = columns(layer.epilogue, bias, layer.signed)
    rows = [part.reshape(len(fours), -1) for part in (words, ends[read])]
    order = "of each four channels: words of each tap, then their epilogue"
    made = np.concatenate(rows, axis=1).astype(np.int32).reshape(-1)
    return Packed("weights", made, order=order)


def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum(x * w))), four channels at a time.

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`
    Source  what is outside counts as x_zero
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of the kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        (
            (self.out_width, channels),
            (width, self.pitch),
            (beside, self.top),
            (self.out_height, self.height),
        ) = (k.halves(*pair) for pair in layer.arguments)
        self.channels, self.stride = channels, k.let("stride", beside & 0xFF)
        self.inside = k.let("inside", width * channels)
        self.before = k.let("before", (beside >> 8) * channels)
        # alike in most models: constants then
        self.kernel_h, self.turns = (
            k.arg("kernel_h", w.kernel_h),
            k.arg("turns", layer.turns),
        )
        self.outside = k.arg("outside", lanes(layer.x_zero))
        after = const(1) if layer.image is not None else self.kernel_h
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", after + 1, INT32)
        self.lines = k.row("lines", after + 2, INT8, writable=True)
        self.finish = AffineFinish(k, layer.epilogue, False, together=True)

    def write(self) -> Builder:
        k = self.k
        blank(k, self.lines, self.kernel_h * self.pitch, self.outside)
        if self.layer.image is None:
            with k.loop("ky", self.kernel_h) as ky:
                self._line(ky, k.row("row", ky + 1, INT8))
            self._pixels(self.y)
            return k
        x, y = k.row("x", 1, INT8), k.let("to", self.y)
        with k.loop("oy", self.out_height) as oy:
            with k.loop("ky", self.kernel_h) as ky:
                row = k.let("row", oy * self.stride - self.top + ky)
                with k.when(const(0) <= minimum(row, self.height - 1 - row)):
                    self._line(ky, offset(x, row * self.inside))
                with k.otherwise():
                    line = offset(self.lines, ky * self.pitch)
                    blank(k, k.let("line", line), self.pitch, self.outside)
            self._pixels(y)
            k.assign(y, offset(y, self.out_width * self.channels))
        return k

    def _line(self, ky: Expr, row: Expr) -> None:
        to = offset(self.lines, ky * self.pitch + self.before)
        copy(self.k, to, row, self.inside)

    def _pixels(self, y: Expr) -> None:
        """Computes all pixels of a row, whose lines are in scratch."""
        k = self.k
        with (
            k.loop("ox", self.out_width) as ox,
            k.part(
                f"sum_small_{self.layer.kind}".rstrip("_"),
                "All channels of a pixel, four at a time: a word of x and one of "
                "weights for each tap.",
                lines=offset(self.lines, ox * self.stride * self.channels),
                weights=self.weights,
                y=offset(y, ox * self.channels),
                channels=self.channels,
                pitch=self.pitch,
                kernel_h=self.kernel_h,
                turns=self.turns,
                **self.finish.values,
            ) as params,
        ):
            self._channels({p.name: p for p in params})

    def _channels(self, given: Mapping[str, Var]) -> None:
        """Computes all channels of a pixel."""
        k, channels = self.k, given["channels"]
        finish = self.finish.inside(given)
        w = k.let("w", given["weights"])
        with k.loop("group", channels, 0, GROUP) as group:
            first = k.let("first", minimum(group, channels - GROUP))
            sums = [k.let("acc", 0) for _ in range(GROUP)]
            line = k.let("line", offset(given["lines"], first))
            with k.loop("ky", given["kernel_h"], rolled=True):
                if self.layer.turns > UNROLLED:
                    x = k.let("x", line)
                    with k.loop("turn", given["turns"], 0, UNROLLED, rolled=True):
                        _turn(k, sums, x, channels, w)
                        k.assign(x, offset(x, channels * UNROLLED))
                else:
                    _turn(k, sums, line, channels, w)
                k.assign(line, offset(line, given["pitch"]))
            to = k.let("to", offset(given["y"], first))
            for i, acc in enumerate(sums):
                ends = read_end(k, w, self.layer.signed)
                product = acc * (1 << FRACTION)
                k.store(to, i, ended(k, finish, product, ends))
                k.assign(w, offset(w, len(ends)))


def _turn(k: Builder, sums: list[Var], x: Var, channels: Expr, w: Var) -> None:
    """Adds some neighbouring taps of four channels."""
    for tap in range(UNROLLED):
        _multiply(k, sums, wide(x, channels * tap), load(w, tap))
    k.assign(w, offset(w, UNROLLED))


def _multiply(k: Builder, sums: list[Var], x: Expr, w: Expr) -> None:
    """Adds one tap of four channels."""
    values, weights = k.let("values", x), k.let("four", w)
    for first, halves in enumerate((EVEN_BYTES, ODD_BYTES)):
        a, b = k.let("a", halves(values)), k.let("b", halves(weights))
        k.assign(sums[first], MLA_LOW(a, b, sums[first]))
        k.assign(sums[first + 2], MLA_HIGH(a, b, sums[first + 2]))


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """Return the kernels of this file that suit a layer."""
    taps = window.kernel_h * window.kernel_w
    plain = window.out_channels == window.channels >= GROUP and not window.dilated
    if not plain or taps > MOST or not takes_pairs(node, graph, target):
        return []
    kernels = constant(node, graph, 1).reshape(-1, window.channels).T
    known = affine_sums(node, graph, kernels)
    if known is None:
        return []
    sums, epilogue = known
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    strides = node.attrs.get("strides", (1, 1))
    ways: list[tuple[Image | None, tuple[RowAccess, RowAccess], tuple[int, int]]]
    ways = [(None, rows, calls)]
    if strides[0] == strides[1]:
        image = image_of(node, graph)
        ways.append((image, whole_images(node, graph), (x.shape[0], 1)))
    found = []
    for signed in forms(epilogue):
        for at_once, met, (images, bands) in ways:
            layer = Layer(window, epilogue, sums.made.x_zero, at_once, signed)
            if not layer.has_room:
                continue
            k = kernel(layer)
            found.append(
                Candidate(
                    func=k.finish(),
                    args=tuple(k.values),
                    outputs=met[:1],
                    inputs=met[1:],
                    constants=(pack(layer, kernels, sums.bias),),
                    images=images,
                    bands=bands,
                    scratch=layer.scratch,
                    small=True,
                    cost=50 * images * bands + y.size * (3 * taps + 12),
                )
            )
    return found
