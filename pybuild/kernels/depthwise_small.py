"""int8 depthwise convolution by one kernel of little code: for `--optimise size`.

Four neighbouring channels of a pixel are a word, and so are their weights of one tap:
four products by halves of their widened bytes. The last four channels may be computed
twice. One code for all sizes of a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array
from pybuild.graph import Graph, Node
from pybuild.kernels.affine import FRACTION, Affine
from pybuild.kernels.affine_finish import AffineFinish, corrected
from pybuild.kernels.builder import Builder, Named, have_room
from pybuild.kernels.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.intrin import EVEN_BYTES, MLA_HIGH, MLA_LOW, ODD_BYTES
from pybuild.kernels.known_sums import affine_sums
from pybuild.kernels.weights import (
    constant,
    in_blocks,
    takes_pairs,
)
from pybuild.kernels.window import Window
from pybuild.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    const,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.targets.target import Target

GROUP = 4  # channels done together
FEWEST = 64  # channels; below, gathering a window takes longer than its products
UNROLLED = 3  # taps in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it."""

    window: Window
    ending: Affine
    x_zero: int

    @property
    def head(self) -> int:
        """Words before the weights, which stand for a column outside the row."""
        return -(-self.window.channels // GROUP) if self.window.padded else 0

    @property
    def taps(self) -> int:
        """Up to whole turns: of those behind the window the weight is 0."""
        taps = self.window.kernel_h * self.window.kernel_w
        return taps + -taps % UNROLLED

    @property
    def arguments(self) -> tuple[tuple[Named, Named], ...]:
        """Two by two, as the kernel takes them."""
        w = self.window
        return (
            (("out_width", w.out_width), ("channels", w.channels)),
            (("width", w.width), ("head", self.head)),
            (("kernel_h", w.kernel_h), ("kernel_w", w.kernel_w)),
            (("stride", w.stride_w), ("left", w.left)),
        )


def pack(layer: Layer, kernels: Array, bias: Array) -> Packed:
    """Words in reading order: what stands for a column outside the row; then of each
    four channels what their sums begin with, their weights [C, taps] of each tap,
    and what they end with."""
    made, read = layer.ending, in_blocks(layer.window.channels, GROUP)
    fours = kernels[read].reshape(-1, GROUP, kernels.shape[1])
    whole = np.zeros((*fours.shape[:2], layer.taps), np.int8)
    whole[..., : kernels.shape[1]] = fours
    words = np.ascontiguousarray(whole.transpose(0, 2, 1))
    below = np.zeros_like(made.offsets) if made.below is None else made.below
    ends = np.stack([made.offsets, below, made.multipliers], axis=1)
    parts = (bias[read], words.view("<i4"), ends[read])
    rows = [part.reshape(len(fours), -1).astype(np.int32) for part in parts]
    outside = np.full(GROUP * layer.head, layer.x_zero, np.int8).view(np.int32)
    blocks = np.concatenate(rows, axis=1).reshape(-1)
    return Packed("weights", np.concatenate((outside, blocks)))


def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum(x * w))), four channels at a time.

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    kind = "_clamped" * layer.ending.clamped
    k = Builder(f"depthwise_small{kind}")
    (out_width, channels), (width, head), (kernel_h, kernel_w), (stride, left) = (
        k.halves(*pair) for pair in layer.arguments
    )
    y = k.row("y", 0, INT8, writable=True)
    outside = k.row("outside", kernel_h + 1, INT8)
    weights = k.row("weights", kernel_h + 1, INT32)
    patch = k.row("patch", kernel_h + 2, INT32, writable=True)
    finish = AffineFinish(k, layer.ending, False)
    with k.loop("ox", out_width) as ox:
        to = k.let("to", patch)
        with k.loop("ky", kernel_h) as ky, k.loop("kx", kernel_w) as kx:
            x = k.let("x", outside)
            column = k.let("column", ox * stride - left + kx)
            with k.when(const(0) <= minimum(column, width - 1 - column)):
                row = k.row("row", ky + 1, INT8)
                k.assign(x, offset(row, column * channels))
            with k.loop("c", channels - (GROUP - 1), 0, GROUP, rolled=True) as c:
                k.store(to, 0, wide(x, c))
                k.assign(to, offset(to, 1))
            with k.when(const(0) < channels % GROUP):
                k.store(to, 0, wide(x, channels - GROUP))
                k.assign(to, offset(to, 1))
        with k.part(
            f"sum_small{kind}",
            patch=patch,
            weights=offset(weights, head),
            y=offset(y, ox * channels),
            channels=channels,
            taps=kernel_h * kernel_w,
            **finish.values,
        ) as params:
            _channels(k, {p.name: p for p in params}, finish)
    return k


def _channels(k: Builder, given: Mapping[str, Var], whole: AffineFinish) -> None:
    """All channels of a pixel, whose window is in the patch."""
    finish, channels = whole.inside(given), given["channels"]
    pitch = k.let("pitch", (channels + (GROUP - 1)) / GROUP)
    w, first = k.let("w", given["weights"]), k.let("first", given["patch"])
    with k.loop("group", channels, 0, GROUP) as group:
        sums = [k.let("acc", load(w, i)) for i in range(GROUP)]
        k.assign(w, offset(w, GROUP))
        x = k.let("x", first)
        with k.loop("tap", given["taps"], 0, UNROLLED, rolled=True):
            for tap in range(UNROLLED):
                _multiply(k, sums, load(x), load(w, tap))
                k.assign(x, offset(x, pitch))
            k.assign(w, offset(w, UNROLLED))
        to = k.let("to", offset(given["y"], minimum(group, channels - GROUP)))
        for i, acc in enumerate(sums):
            plus, minus, factor = (k.let("end", load(w, n)) for n in range(3))
            k.assign(w, offset(w, 3))
            scaled = k.let("scaled", acc * (1 << FRACTION))
            k.store(to, i, finish.narrow(corrected(scaled, plus, minus), factor))
        k.assign(first, offset(first, 1))


def _multiply(k: Builder, sums: list[Var], x: Expr, w: Expr) -> None:
    """One tap of four channels."""
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
    """The kernel of this file where it suits a layer."""
    plain = window.out_channels == window.channels >= FEWEST and not window.dilated
    if not plain or not takes_pairs(node, graph, target):
        return []
    kernels = constant(node, graph, 1).reshape(-1, window.channels).T
    known = affine_sums(node, graph, kernels)
    if known is None:
        return []
    sums, ending = known
    layer = Layer(window, ending, sums.made.x_zero)
    if not have_room(layer.arguments):
        return []
    k, (images, bands), taps = kernel(layer), calls, window.kernel_h * window.kernel_w
    outputs = images * bands * window.out_width * window.channels
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(pack(layer, kernels, sums.bias),),
            images=images,
            bands=bands,
            scratch=layer.taps * 4 * -(-window.channels // GROUP),
            small=True,
            cost=50 * images * bands + outputs * (5 * taps + 16),
        )
    ]
