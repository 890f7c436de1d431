"""int8 depthwise convolution on cores that multiply one by one.

A channel's pixels are copied side by side into scratch, padding included; then the
sums of several pixels of a row are computed together.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.by_channel import (
    AnyEpilogue,
    exact_share,
    layer_epilogue,
    tables,
)
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.depthwise import GROUP
from pybuild.kernels.layers.image import image_of, whole_images
from pybuild.kernels.layers.known_sums import known_sums
from pybuild.kernels.layers.sums16 import sums16, takes_int16
from pybuild.kernels.layers.weights import constant, fixed
from pybuild.kernels.layers.zero_points import HALF
from pybuild.kernels.scalar import depthwise_rows
from pybuild.kernels.scalar.depthwise_code import Layer, kernel
from pybuild.targets.target import Target

_MOST_TAPS = 1 << 12  # unrolled in part: no window is that large
_WIDEST = 7  # taps of a row that are written out
_MOST_SCRATCH = 1 << 14  # bytes of a channel that are worth a copy


def cost(layer: Layer) -> int:
    """Estimated instructions of a call."""
    w = layer.window
    blocks = layer.out_rows * -(-w.out_width // layer.pixels)
    block = layer.taps * (3 * layer.pixels + 1) + 18 * layer.pixels + 8
    copied = layer.lines * (layer.inside * (3 + 2 // layer.copied) + 6)
    return w.channels * (blocks * block + copied + 30)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, by rows, and by images."""
    is_int8 = graph.tensor(node.output).dtype is DType.INT8
    wide = takes_int16(node, graph)
    if not (target.row_sums and (wide or (is_int8 and fixed(node, graph)))):
        return []
    if window.out_channels != window.channels or window.kernel_w > _WIDEST:
        return []
    kernels = constant(node, graph, 1).reshape(-1, window.channels).T
    if kernels.shape[1] > _MOST_TAPS:
        return []
    features = target.features
    unsigned = "signed_bytes" not in features
    epilogue, start, x_zero = _ended(node, graph, kernels, target)
    lie, taps = "channels, taps row by row", np.ascontiguousarray(kernels)
    packed = Packed("weights", taps, order=lie), *tables(epilogue, start)
    found, elem = [], DType.of(kernels)
    if not isinstance(epilogue, End16) and not unsigned and "mve" not in features:
        most = target.row_sums
        found = depthwise_rows.candidates(
            window, epilogue, kernels, x_zero, rows, calls, packed, most
        )
    if (
        elem is DType.INT8
        and is_int8
        and window.channels >= GROUP
        and features & {"dsp", "mve"}
    ):
        return found  # those of four channels are faster
    for shape, access, count in (
        (None, rows, calls),
        (image_of(node, graph), whole_images(node, graph), (calls[0], 1)),
    ):
        layer = min(
            (
                Layer(window, epilogue, x_zero, n, shape, unsigned, elem)
                for n in range(1, min(target.row_sums, window.out_width) + 1)
            ),
            key=cost,
        )
        if layer.scratch <= _MOST_SCRATCH:
            found.append(_offer(layer, access, packed, count))
    return found


def _ended(
    node: Node, graph: Graph, kernels: Array, target: Target
) -> tuple[AnyEpilogue, Ints, int]:
    """The epilogue of the sums, their start values, and the zero point of the input.

    Shapes  kernels [C, taps]
    """
    if takes_int16(node, graph):
        wide, bias, x_zero = sums16(node, graph, kernels, target)
        return wide, bias.astype(np.int64), x_zero
    sums = known_sums(node, graph, kernels)
    start = sums.bias.astype(np.int64)
    if "signed_bytes" not in target.features:
        start = start - HALF * kernels.astype(np.int64).sum(1)
    epilogue = layer_epilogue(sums.made, sums.low, sums.high, target)
    return epilogue, start, sums.made.x_zero


def _offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    images, bands = calls
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * bands * cost(layer),
        rare=exact_share(layer.epilogue),
    )
