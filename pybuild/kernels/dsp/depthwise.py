"""int8 depthwise convolution with pairs of int16 (SMLAD).

Four channels at a time: their rows are widened to int16 into scratch, each channel
for itself, two neighbouring columns a word, padding included. A word of weights
holds two neighbours of a row, so one product does two taps: in scratch for an image; a
row alone reads four bytes, which are two such pairs, and widens them as it goes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.depthwise_code import kernel
from pybuild.kernels.epilogues.affine_end import columns_of, is_signed
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import exact_share, exact_tables
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.depthwise import GROUP, MOST_SCRATCH, Layer
from pybuild.kernels.layers.image import image_of, whole_images
from pybuild.kernels.layers.known_sums import ended_sums
from pybuild.kernels.layers.weights import (
    block_starts,
    kernels_of,
    known_bytes,
    known_int9,
)
from pybuild.targets.target import Target

_MOST = 2**31 - 1
# instructions of a row of a channel, beside its outputs: of one turn, and of more
_ONCE, _ROW = 20, 34
_WHOLE = 8  # of all rows at once
# times an image that is widened a layer's tensors take, where nobody spares it
_SPARED = 15


def pack(kernels: Array, multiplier: int) -> Packed:
    """Weights [O, taps] as words of four output channels: of each four channels,
    of each four outputs, of each tap."""
    inputs = len(kernels) // multiplier
    group = GROUP * multiplier
    of_group = [kernels[s * multiplier :][:group] for s in block_starts(inputs, GROUP)]
    fours = np.stack(of_group).reshape(-1, GROUP, kernels.shape[1])
    bytes_read = np.ascontiguousarray(fours.transpose(0, 2, 1).astype(np.int8))
    order = "of each four channels, of each tap: a word of their bytes"
    return Packed("weights", bytes_read.view("<i4").reshape(-1), order=order)


def pack_pairs(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as words of two pairs of neighbours each, those of the first in
    the odd bytes: of each four channels, of each output, of each row."""
    w, group = layer.window, GROUP * layer.multiplier
    rows = np.zeros((len(kernels), w.kernel_h, 2 * layer.line + 1), kernels.dtype)
    rows[:, :, : w.kernel_w] = kernels.reshape(len(kernels), w.kernel_h, w.kernel_w)
    first, second = rows[:, :, :-1], rows[:, :, 1:]
    parts = [first[..., 1::2], first[..., ::2], second[..., 1::2], second[..., ::2]]
    if layer.nine:
        parts = [first[..., : layer.line], second[..., : layer.line]]
    words = np.stack(parts, axis=-1)
    starts = block_starts(len(kernels) // layer.multiplier, GROUP)
    chosen = [words[s * layer.multiplier :][:group] for s in starts]
    order = "of each channel, of each row: words of two pairs of neighbours"
    if layer.nine:
        order = "of each channel, of each row: words of neighbours"
    made = np.concatenate(chosen).reshape(-1).view("<i4")
    return Packed("weights", made, order=order)


def table(layer: Layer, bias: Array) -> Packed:
    """The start values and epilogue numbers of each output channel, in reading
    order."""
    bits = layer.fraction if layer.starts_sums else FRACTION
    made, order = columns_of(layer.epilogue, bias, bits)
    multiplier, group = layer.multiplier, GROUP * layer.multiplier
    starts = block_starts(len(bias) // multiplier, GROUP)
    rows = [made[s * multiplier :][:group] for s in starts]
    order = f"{EACH}: {order}"
    return Packed("epilogue", np.concatenate(rows).astype(np.int32), order=order)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if "dsp" not in target.features or not known_bytes(node, graph, sums=True):
        return []
    if window.channels < GROUP:
        return []
    kernels = kernels_of(node, graph)
    if 256 * 128 * int(np.abs(kernels.astype(np.int64)).sum(1).max()) > _MOST:
        return []
    sums, epilogue = ended_sums(node, graph, kernels)
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    image = image_of(node, graph)
    copies = window.out_channels // window.channels
    rules = exact_tables(epilogue, sums.bias)
    nine = known_int9(node, graph)
    row = Layer(window, epilogue, sums.made.x_zero, nine=nine)
    bare = isinstance(epilogue, Bare)
    ends = () if bare else (table(row, sums.bias), *rules)
    of_row = (pack_pairs(row, kernels), *ends)
    by_row = _offer(row, rows, of_row, calls)
    if nine or window.dilation_h > 1:  # the rows of an image are neighbours
        return [by_row]
    ring = Layer(window, epilogue, sums.made.x_zero, image)
    whole = replace(ring, whole=True)
    able = [ring, whole] if whole.scratch <= MOST_SCRATCH else [ring]
    if _SPARED * whole.scratch <= x.bytes + y.bytes:
        able = able[-1:]
    ends = () if bare else (table(ring, sums.bias), *rules)
    tables = (pack(kernels, copies), *ends)
    pair, calls = whole_images(node, graph), (calls[0], 1)
    found = [_offer(one, pair, tables, calls) for one in able]
    # no plan by rows is given up for an image that takes more
    return [by_row, *(replace(c, cost=found[0].cost) for c in found)]


def _offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    w, (images, bands) = layer.window, calls
    heights = bands if layer.image is None else layer.image.out_height
    new = w.kernel_h if layer.image is None else min(w.rows, layer.image.stride_h)
    widened = 5 * new * layer.pitch * w.channels
    end = 10 if is_signed(layer.epilogue) else 7
    row = _WHOLE if layer.whole else _ONCE if layer.once else _ROW
    summed = w.out_channels * (w.out_width * (layer.taps + end) + row)
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * heights * (widened + summed),
        rare=exact_share(layer.epilogue),
    )
