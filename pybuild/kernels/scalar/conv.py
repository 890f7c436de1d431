"""int8 convolution and fully connected layers on cores that multiply one by one.

The windows of a few pixels are copied side by side into scratch, and the weights of
a few output channels lie side by side in flash: each value loaded meets all of the
others, and every pointer only moves forward.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.epilogues.bare import Bare, bare
from pybuild.kernels.epilogues.by_channel import (
    AnyEpilogue,
    Epilogue,
    exact_share,
    layer_epilogue,
    tables,
)
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.conv import WORD
from pybuild.kernels.layers.known_sums import known_sums
from pybuild.kernels.layers.sums16 import sums16, takes_int16, turns_of_run
from pybuild.kernels.layers.weights import (
    WEIGHTS4,
    as_bytes,
    fits_int4,
    in_blocks,
    is_bare,
    kernels_of,
    known_bytes,
    known_int9,
)
from pybuild.kernels.layers.zero_points import HALF
from pybuild.kernels.scalar import conv_image
from pybuild.kernels.scalar.conv_code import kernel
from pybuild.kernels.scalar.conv_layer import Layer
from pybuild.ops.fixed_point.chunks import chunks, filled
from pybuild.targets.target import Target

_MOST_TAPS = 1 << 15  # so many products of two uint8 fit 31 bits
_GAINS = 0.95  # of a block for one layer
_APART = 0.97  # of one whose pixels left over are a block of their own
# bytes of scratch for which a slower kernel may be worth it: that of few pixels
_MUCH, _FEW = 1024, 2
_ROOM = 2  # copying a byte into the patch


def _order(layer: Layer) -> Ints:
    blocks = in_blocks(layer.group_outputs, layer.channels)
    groups = range(layer.window.groups)
    return np.concatenate([blocks + layer.group_outputs * g for g in groups])


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as blocks of output channels, in each: taps, then channels."""
    paired = ", two in a word" if layer.paired else ""
    if layer.int4:
        paired = ", two in a byte"
    order = f"of each {layer.channels} output channels: taps, then channels{paired}"
    role = WEIGHTS4 if layer.int4 else "weights"
    return Packed.later(role, order, _arranged, layer, kernels)


def _arranged(layer: Layer, kernels: Array) -> Array:
    order, dtype = _order(layer), DType.UINT8 if layer.halved else DType.INT8
    if layer.paired:
        dtype = DType.INT32

    def blocks(few: Ints) -> Array:
        lanes = np.zeros((len(few), layer.lanes), np.int32)
        lanes[:, : layer.taps] = kernels[few]
        if layer.paired:
            lanes = lanes[::2] + (lanes[1::2] << 16)
        elif layer.halved:
            lanes += layer.half
        if layer.int4:
            lanes = (lanes[::2] << 4) + (lanes[1::2] & 15)
        return lanes.reshape(-1, layer.loads, layer.lanes).transpose(0, 2, 1)

    size = len(order) * layer.lanes // (2 if layer.paired or layer.int4 else 1)
    parts = map(blocks, chunks(order, layer.lanes, layer.channels))
    return filled(np.empty(size, dtype.numpy), parts)


def start(layer: Layer, kernels: Array, bias: Array) -> Ints:
    """The bias less what the pixels' HALF adds to each sum, and with what their zero
    point would add, of which a centred patch has none."""
    wide = bias.astype(np.int64)
    if layer.unsigned:
        wide = wide - HALF * kernels.sum(1, dtype=np.int64)
    if layer.centred:
        wide = wide + layer.x_zero * kernels.sum(1, dtype=np.int64)
    return wide


def cost(layer: Layer) -> int:
    """Estimated instructions of a call: loads, products, loops, ends, the patch."""
    if layer.image is not None:
        return conv_image.cost(layer)
    rest = layer.rest
    if rest is not None:
        whole = replace(layer.window, out_width=layer.window.out_width - layer.over)
        last = replace(rest.window, out_width=layer.over)
        return cost(replace(layer, window=whole)) + cost(replace(rest, window=last))
    w = layer.window
    blocks = -(-w.out_width // layer.pixels) * layer.blocks * w.groups
    sums = layer.words * layer.pixels
    tap = layer.words + layer.pixels + 2 * sums + layer.int4 * layer.loads
    turns = layer.lanes // layer.unrolled * 4
    ends = (16 + 2 * layer.paired) * layer.channels * layer.pixels
    block = layer.lanes * tap + turns + ends + 8 * layer.channels
    copied = 0 if layer.direct else -(-w.out_width // layer.pixels) * layer.pixels
    return blocks * block + copied * w.groups * (_ROOM * layer.taps + 20)


def offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    images, bands = calls
    return Candidate(
        func=k.finish(in_place=layer.row),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        in_place=(0,) if layer.row else (),
        cost=images * bands * cost(layer),
        rare=exact_share(layer.epilogue),
    )


def _best(
    window: Window, epilogue: AnyEpilogue, x_zero: int, target: Target, paired: bool,
    blocks: Iterable[tuple[int, int]], row: bool, apart: bool = False,
) -> Layer | None:  # fmt: skip
    """The block that fits the layer best; apart: of those that leave pixels over."""
    few, held = "signed_bytes" not in target.features, None
    if isinstance(epilogue, Bare):
        few = False  # HALF is taken out by what sums start with
    if isinstance(epilogue, End16):
        few, held = False, DType.INT32 if few else None
    layers = [
        Layer(window, epilogue, x_zero, channels * (1 + paired), pixels, few, paired,
              row, held, apart=apart)
        for channels, pixels in blocks
        if pixels <= window.out_width and not (apart and window.out_width % pixels == 0)
        and channels * (1 + paired) <= window.group_outputs
    ]  # fmt: skip
    return min(layers, key=cost, default=None)


def _odd_blocks(window: Window, target: Target) -> list[tuple[int, int]]:
    """Of fewer output channels, where blocks of the usual ones would be computed in
    part twice, or are more than there are; in as many registers: sums, and a value of
    each pixel."""
    least = min(channels for channels, _ in target.sums)
    most = max(channels * pixels + pixels for channels, pixels in target.sums)
    if window.group_outputs % least == 0:
        return []
    sizes = range(1, min(least, window.group_outputs + 1))
    return [(c, n) for c in sizes for n in range(1, most // (c + 1) + 1)]


def _layers(
    window: Window, epilogue: AnyEpilogue, x_zero: int, target: Target, paired: bool,
    row: bool,
) -> list[Layer]:  # fmt: skip
    """None, one, or one that other layers may share and a faster one."""
    usual, odd = (
        _best(window, epilogue, x_zero, target, paired, blocks, row)
        for blocks in (target.sums, _odd_blocks(window, target))
    )
    layers = [usual] if usual is not None else []
    if odd is not None and (usual is None or cost(odd) < _GAINS * cost(usual)):
        layers.append(odd)
    apart = _best(window, epilogue, x_zero, target, paired, target.sums, row, True)
    if apart is not None and all(cost(apart) < _APART * cost(one) for one in layers):
        layers.append(apart)
    if any(one.scratch >= _MUCH and one.pixels > _FEW for one in layers):
        few = [(c, n) for c, n in target.sums if n <= _FEW]
        less = _best(window, epilogue, x_zero, target, paired, few, row)
        layers += [less] if less is not None else []
    return layers + [replace(one, pixels=1) for one in layers if one.ahead]


def _of_int16(node: Node, graph: Graph, target: Target, window: Window,
              rows: tuple[RowAccess, RowAccess], calls: tuple[int, int],
              kernels: Array, paired: bool) -> list[Candidate]:  # fmt: skip
    """The same of int16."""
    pairs = "dsp" in target.features and kernels.shape[1] >= WORD and len(kernels) > 1
    if paired or pairs:
        return []  # dsp/conv16.py's are faster
    epilogue, bias, x_zero = sums16(node, graph, kernels, target)
    row = is_row_by_row(window, rows, calls)
    found = []
    for layer in _layers(window, epilogue, x_zero, target, False, row):
        if epilogue.long:
            most = turns_of_run(kernels, layer.lanes, layer.unrolled)
            layer = replace(layer, run_turns=most)
        made = pack(layer, kernels), epilogue.table(bias, _order(layer))
        found.append(offer(layer, rows, made, calls))
    return found


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
    paired: bool = False,
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, one, or one that other layers
    may share and a faster one."""
    wide, is_int8 = known_int9(node, graph), known_bytes(node, graph, sums=True)
    known = takes_int16(node, graph) or is_int8
    if not (target.sums and known) or (paired and window.groups > 1):
        return []
    kernels = kernels_of(node, graph)
    if not is_int8:
        return _of_int16(node, graph, target, window, rows, calls, kernels, paired)
    if "dsp" in target.features and kernels.shape[1] >= WORD:
        return []  # dsp/conv.py's are faster
    fits, zero = as_bytes(node, graph, kernels)
    if not fits:
        return []
    if paired and not fits_pairs(kernels):
        return []
    if kernels.shape[1] >= _MOST_TAPS:
        return []
    sums = known_sums(node, graph, kernels)
    epilogue: Epilogue = bare(len(kernels))
    if not is_bare(node, graph):
        epilogue = layer_epilogue(sums.made, sums.low, sums.high, target)
    row = is_row_by_row(window, rows, calls) and not is_bare(node, graph)
    layers = _layers(window, epilogue, sums.made.x_zero, target, paired, row)
    made = [(layer, rows, calls) for layer in layers]
    if wide:
        # of plain sums none starts with what the pixels' HALF adds
        half = not is_bare(node, graph)
        made = [
            (replace(layer, unsigned=half, zero=zero), rows, calls) for layer in layers
        ]
    elif layers and not paired:
        most = calls[1] * min(map(cost, layers)), max(one.scratch for one in layers)
        image = conv_image.image_layer(layers[0], node, graph, target, most)
        made += [] if image is None else [image]
    if fits_int4(kernels) and not paired:
        made += [
            (replace(layer, int4=True), accesses, its_calls)
            for layer, accesses, its_calls in made
            if layer.channels % 2 == 0
        ]
    return [
        offer(
            layer,
            accesses,
            (
                pack(layer, kernels),
                *tables(epilogue, start(layer, kernels, sums.bias), _order(layer)),
            ),
            its_calls,
        )
        for layer, accesses, its_calls in made
    ]


def fits_pairs(kernels: Array) -> bool:
    """True if any sum of products with int8, or with uint8, stays within int16.

    Both halves of a word then are sums of their own: below 2^15 * (2^16 + 1), and
    a product of 255 and two weights is below 2^31.
    Shapes  [O, taps]
    """
    wide = kernels.astype(np.int64)
    up, down = np.maximum(wide, 0).sum(1), np.maximum(-wide, 0).sum(1)
    # uint8: as stored; int8: -128 times the one and 127 times the other sign
    reach = (255 * up, 255 * down, 128 * (up + down))
    return max(int(r.max(initial=0)) for r in reach) < 1 << 15
