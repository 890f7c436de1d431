"""int8 convolution of 3 x 3 taps by Winograd's F(2 x 2, 3 x 3), exactly, on pairs of
int16 (SMLAD).

16 products for 4 outputs instead of 36. Weights are transformed at build, times 2 in
both directions, so that they are integers; sums are then 4 times what they were, which
the requantisation takes as it is. 3.6 times the flash: for `--optimise speed`.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.winograd_code import (
    HEIGHT,
    OUTPUTS,
    SIDE,
    TILES,
    WIDTH,
    Layer,
    kernel,
)
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.image import whole_images
from pybuild.kernels.layers.known_sums import affine_sums
from pybuild.kernels.layers.weights import (
    block_starts,
    constant,
    in_blocks,
    takes_pairs,
)
from pybuild.targets.target import Target

_MOST = 2**31 - 1
# four inputs are added or subtracted
PIXELS = 4 * 128
# 2 * G
_TWICE = np.asarray([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)


def transformed(weights: Array) -> Ints:
    """Return weights [O,3,3,C] transformed to [O,4,4,C], scaled by 4."""
    wide = weights.astype(np.int64)
    made: Ints = np.einsum("iy,oyxc,jx->oijc", _TWICE, wide, _TWICE)
    return made


def fits(weights: Ints, least: Ints, most: Ints, starts: Ints) -> bool:
    """True if no value leaves its type, whatever the inputs are.

    Shapes  weights of `transformed`; least, most [O]: sums without bias; starts [O]:
            what is added to 256 times them
    Source  |inputs, transformed| <= 512; outputs add or subtract 9 of 16 positions
    """
    positions = np.abs(weights).sum(3) * PIXELS
    ends = [(most << FRACTION) + starts, (least << FRACTION) + starts]
    sums = np.concatenate([positions.sum((1, 2)), *np.abs(ends), most << FRACTION,
                           -(least << FRACTION)])  # fmt: skip
    lanes = int(np.abs(weights).max(initial=0))
    return lanes < 1 << 15 and int(sums.max(initial=0)) <= _MOST


def pack(weights: Ints) -> Packed:
    """Transformed weights as words: block of output channels, position, pair of
    channels, output channel.

    Source  a word of four bytes is widened to channels 0 and 2, then 1 and 3
    """
    outputs, channels = len(weights), weights.shape[3]
    groups = weights.reshape(outputs, SIDE * SIDE, channels // 4, 2, 2)
    words = (groups[..., 1, :] << 16) + (groups[..., 0, :] & 0xFFFF)
    words = words.reshape(outputs, SIDE * SIDE, channels // 2)
    starts = np.asarray(block_starts(outputs, OUTPUTS))
    blocks = np.stack([words[starts + b] for b in range(OUTPUTS)], 3)
    order = "blocks of output channels, the 16 positions, pairs of inputs, channels"
    return Packed("transformed", blocks.astype(np.int32).reshape(-1), order=order)


def table(layer: Layer, bias: Array) -> Packed:
    """The start values and epilogue numbers of each output channel, in reading
    order."""
    rows = layer.epilogue.columns(bias)[in_blocks(len(bias), OUTPUTS)]
    order = f"{EACH}: {layer.epilogue.row}"
    return Packed("epilogue", rows.astype(np.int32).reshape(-1), order=order)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernel of this file, if it suits a layer."""
    if not (_suits(window) and takes_pairs(node, graph, target)):
        return []
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if node.attrs.get("strides", (1, 1)) != (1, 1) or y.shape[1] < HEIGHT:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    known = affine_sums(node, graph, kernels)
    if known is None:
        return []
    sums, epilogue = known
    top = node.attrs.get("pads", (0, 0, 0, 0))[0]
    layer = Layer(window, epilogue, sums.made.x_zero, x.shape[1], y.shape[1], top)
    larger, start = transformed(weights), sums.bias.astype(np.int64)
    added = (start << FRACTION) + epilogue.offsets
    if not fits(larger, sums.low - start, sums.high - start, added):
        return []
    k = kernel(layer)
    # an image is one row of the runner's: tiles are of several
    out, source = whole_images(node, graph)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=(out,),
            inputs=(source,),
            constants=(pack(larger), table(layer, sums.bias)),
            images=calls[0],
            scratch=layer.scratch,
            cost=calls[0] * _cost(layer),
        )
    ]


def _suits(w: Window) -> bool:
    taps = (w.kernel_h, w.kernel_w) == (3, 3) and not w.dilated
    whole = w.groups == 1 and w.channels % 4 == 0 and w.out_channels >= OUTPUTS
    return taps and whole and w.out_width >= WIDTH


def _cost(layer: Layer) -> int:
    w = layer.window
    times = -(-w.out_width // WIDTH) * -(-layer.out_height // HEIGHT)
    pairs, blocks = w.channels // 2, -(-w.out_channels // OUTPUTS)
    sums = SIDE * SIDE * (6 * pairs + 13) + OUTPUTS * TILES * 64
    return times * (blocks * sums + 205 * pairs + 100)
