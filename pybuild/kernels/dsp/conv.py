"""int8 convolution and fully connected layers with pairs of int16 (SMLAD).

A few pixels are widened to int16 into scratch, in the order in which all output
channels then read them. A lane of a weight word holds two output channels, as
256 * a + b: one product adds to both sums, a second of b alone tells them apart. An
output channel that is alone has words of its own taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.dsp.conv_code import kernel
from pybuild.kernels.dsp.conv_int4 import halves, reach
from pybuild.kernels.epilogues.affine import with_one_factor
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import exact_share, exact_tables
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.layers.conv import (
    INT4_OUTPUTS,
    PIXELS,
    UNROLLED,
    WORD,
    Layer,
)
from pybuild.kernels.layers.known_sums import ended_sums
from pybuild.kernels.layers.weights import (
    WEIGHTS4,
    as_bytes,
    block_starts,
    fits_int4,
    kernels_of,
    known_bytes,
)
from pybuild.kernels.layers.zero_points import HALF
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.chunks import chunks, filled
from pybuild.targets.target import Target

# instructions of products, times those of two pixels at once: weights are unpacked for
# one pixel alone; scratch that is worth a slower kernel
_SINGLE = 17 / 13
_MUCH = 1024
_FEW = 1 << 14  # products: of a layer that has no more, code is a good part
_COPIED = 6  # a byte of a window that is gathered
_MOST = 2**31 - 1
_SPARE = 1 << 24  # of a sum of two channels: the second one

Int32s = npt.NDArray[np.int32]


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as words: pair of output channels, then pair of taps."""
    if layer.int4:
        lie = (
            f"of each {layer.blocks // 2 * 4} output channels: words of two taps, four "
        )
        lie += "channels in each half"
        return Packed.later(WEIGHTS4, lie, _arranged4, layer, kernels)
    lie = f"of each {layer.blocks} pairs of output channels a, b: words of two taps, "
    lie += "of a, then of b" if layer.apart else "256 * a + b in each half"
    if layer.centres:
        lie += f", of a + {layer.zero} - 128 and b + {layer.zero}"
    if layer.lone:
        lie = "words of two taps, as the patch has them"
    return Packed.later("weights", lie, _arranged, layer, kernels)


def _arranged(layer: Layer, kernels: Array) -> Array:
    lanes, blocks = len(layer.order), layer.blocks
    if layer.lone:
        channels = np.arange(len(kernels))
        halves = (_lanes(layer, kernels, c) for c in chunks(channels, lanes))
        words = (_words(half) for half in halves)
        return filled(np.empty(len(kernels) * lanes // 2, np.int32), words)
    first = np.asarray(_first_of_pairs(layer))
    whole, parts = layer.whole // 2, []
    for group in first.reshape(layer.window.groups, layer.pairs):
        parts += [(blocks, few) for few in chunks(group[:whole], 2 * lanes, blocks)]
        parts += [(1, few) for few in chunks(group[whole:], 2 * lanes)]
    size = len(first) * lanes // 2 * (2 if layer.apart else 1)
    made = (_of_pairs(layer, kernels, many, few) for many, few in parts)
    return filled(np.empty(size, np.int32), made)


def _arranged4(layer: Layer, kernels: Array) -> Array:
    """Return the words of four output channels, in blocks of one word or of two side by
    side."""
    first = np.asarray(_first_of_pairs(layer))[::2].reshape(layer.window.groups, -1)
    lanes, whole, parts = len(layer.order), layer.whole // 4, []
    for group in first:
        side = layer.blocks // 2
        parts += [(side, few) for few in chunks(group[:whole], 4 * lanes, side)]
        parts += [(1, few) for few in chunks(group[whole:], 4 * lanes)]

    def words(side: int, few: Ints) -> Array:
        made = _words(halves(_of_fours(layer, kernels, few)))
        return made.reshape(-1, side, made.shape[1]).transpose(0, 2, 1)

    size = first.size * lanes // 2
    return filled(np.empty(size, np.int32), (words(*part) for part in parts))


def _of_fours(layer: Layer, kernels: Array, first: Ints) -> Array:
    """Weights [blocks, 4, lanes] of four output channels each."""
    return np.stack([_lanes(layer, kernels, first + i) for i in range(4)], 1)


def _lanes(layer: Layer, kernels: Array, channels: Ints) -> Int32s:
    """Return the weights of these output channels in the order of the lanes."""
    order = np.asarray(layer.order)
    taken = kernels[channels[:, None], np.maximum(order, 0)]
    made: Int32s = taken.astype(np.int32)
    made[:, order < 0] = 0
    return made


def _low(layer: Layer, lanes: Int32s) -> Int32s:
    """Return the weights of second channels, with their zero point; it is added to
    weights of 0 as well, but not to unused lanes at the end."""
    made = lanes.copy()
    if layer.centres:
        made[:, : len(layer.lanes)] += layer.zero or 0
    return made


def _high(layer: Layer, lanes: Int32s) -> Int32s:
    """The same of first channels, whose lanes have a sign."""
    made = _low(layer, lanes)
    if layer.centres:
        made[:, : len(layer.lanes)] -= HALF
    return made


def _words(lanes: Int32s) -> Int32s:
    made: Int32s = (lanes[:, 1::2] << 16) + (lanes[:, 0::2] & 0xFFFF)
    return made


def _of_pairs(layer: Layer, kernels: Array, blocks: int, first: Ints) -> Array:
    """Return the words of pairs of output channels, with so many pairs side by side."""
    a, b = (_lanes(layer, kernels, first + i) for i in (0, 1))
    a, b = _high(layer, a), _low(layer, b)
    words = np.stack([_words(w) for w in ([a, b] if layer.apart else [256 * a + b])], 2)
    return words.reshape(-1, blocks, *words.shape[1:]).transpose(0, 2, 1, 3)


def _first_of_pairs(layer: Layer) -> list[int]:
    """Return the first output channel of each pair, in order of computation."""
    of_group = block_starts(layer.outputs, layer.last)
    of_group = [c + i for c in of_group for i in range(0, layer.last, 2)]
    groups = range(0, layer.window.out_channels, layer.outputs)
    return [start + c for start in groups for c in of_group]


def table(layer: Layer, bias: Array) -> Packed:
    """The start values and epilogue numbers of each pair of output channels, in reading
    order."""
    made = layer.epilogue
    if isinstance(made, Exact):
        pairs = np.asarray(_first_of_pairs(layer))[:, None] + (0, 1)
        return made.table(bias, None if layer.lone else pairs.reshape(-1))
    wide_bias = made.added(bias)
    ends = made.columns(np.zeros_like(bias), 0)[:, 1:]
    if layer.lone:
        lie = made.row.removeprefix("256 * ")
        if made.below is None:
            ends = np.stack([made.offsets, made.multipliers], axis=1)
            lie = "bias, offset, factor"
        words = np.concatenate([wide_bias[:, None], ends], axis=1)
        return Packed("epilogue", words.astype(np.int32), order=lie)
    rows = []
    for a in _first_of_pairs(layer):
        b = a + 1
        if made.below is None:
            start = made.offsets + 256 * wide_bias
            rows.append([start[a], *ends[a], start[b], *ends[b]])
        else:
            both = wide_bias[a] if layer.separate else 256 * wide_bias[a] + wide_bias[b]
            rows.append([both, wide_bias[b], *ends[a], *ends[b]])
    lie = "of each pair of output channels what it starts with, then of each: "
    lie += "nothing more" if made.joint is not None else "offset and factor"
    return Packed("epilogue", np.asarray(rows, np.int32), order=lie)


def offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    images, bands = calls
    w = layer.window
    outputs = images * bands * w.out_width * w.out_channels
    # every window is widened before its results are written
    over = w.pointwise and w.stride_w == w.groups == 1 and not layer.direct
    over = over and not isinstance(layer.epilogue, Bare)  # sums are longer
    return Candidate(
        func=k.finish(in_place=over),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        in_place=(0,) if over and is_row_by_row(w, rows, calls) else (),
        cost=60 * images * bands + cost(layer, outputs),
        rare=exact_share(layer.epilogue),
    )


def cost(layer: Layer, outputs: int) -> int:
    """Return the estimated instructions for so many outputs, patches included."""
    products = len(layer.order) * (
        _SINGLE if layer.pixels == 1 and not layer.lone else 1
    )
    windows = outputs // layer.outputs
    widened = outputs // 8 if layer.direct else windows * 3
    copied = windows * _COPIED * layer.taps if layer.gathered else 0
    return outputs * (int(products) + 8) + widened * len(layer.order) + copied


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer, the fastest first: none, or one and
    those that need less scratch, have code that other layers may share, or little."""
    if "dsp" not in target.features or not known_bytes(node, graph, sums=True):
        return []
    kernels = kernels_of(node, graph)
    fits, zero = as_bytes(node, graph, kernels)
    if not fits:
        return []
    sums, epilogue = ended_sums(node, graph, kernels)
    count = calls[0] * calls[1] * window.out_width
    pixels = PIXELS if count > 1 else 1
    fewer = replace(window, groups=_fewer_groups(window))
    layers = [
        Layer(one, epilogue, sums.made.x_zero, pixels, zero=zero)
        for one in (window, fewer)
    ]
    able = [one for one in layers if one.run >= WORD]
    best = min(able, key=lambda one: cost(one, window.out_channels), default=None)
    if best is None:
        return []
    whole = [replace(best, turn=best.exact_turn)] if best.exact_turn else []
    wider = _beside_zeros(window, kernels, window.groups // best.window.groups)
    found = list[Candidate]()
    usual = [*whole, best, *_smaller(best), *_short(best, count)]
    packed = _of_int4([best, *_smaller(best)], wider)
    for number, one in enumerate((*usual, *packed)):
        if not one.lone:
            one = replace(one, epilogue=with_one_factor(epilogue))
        layer = within_words(one, wider, sums.made)
        rules = exact_tables(layer.epilogue, sums.bias)
        ends = () if isinstance(epilogue, Bare) else (table(layer, sums.bias), *rules)
        tables = (pack(layer, wider), *ends)
        # of the fastest alone
        if number in (0, len(usual)) and layer.may_be_long:
            found.append(offer(replace(layer, long=True), rows, tables, calls))
        found.append(offer(layer, rows, tables, calls))
    return found


def within_words(layer: Layer, kernels: Array, made: ConvParameters) -> Layer:
    """Return the layer with sums that stay within 32 bits, and weights that fit their
    lanes.

    Shapes  kernels [O, taps]
    """
    if layer.lone:
        return layer
    if layer.int4:
        return _runs_of_int4(layer, kernels)
    if int(kernels.min(initial=0)) < -127 and not layer.centres:
        return replace(layer, apart=True)
    few = chunks(np.arange(len(kernels)), len(layer.order))
    lanes = (np.abs(_high(layer, _lanes(layer, kernels, some))) for some in few)
    each = (w.reshape(len(w), layer.turns, -1).sum(2, dtype=np.int32) for w in lanes)
    # of millions of weights these are millions too
    small = np.min_scalar_type(128 * len(layer.order) // layer.turns)
    room = np.empty(len(kernels) * layer.turns, small)
    turns = filled(room, each).reshape(len(kernels), -1)
    reach = 128 * int(turns.sum(1, dtype=np.int64).max(initial=0))
    spare, least = _SPARE, reach
    if layer.zero is not None:  # the second channel, and what is added to the first
        least = 128 * 255 * len(layer.lanes)
        spare = max(least, 256 * 128 * abs(HALF - layer.zero) * len(layer.lanes))
    if 256 * reach + spare <= _MOST:
        return layer
    if not isinstance(layer.epilogue, Bare):
        layer = replace(layer, epilogue=exact(made, len(kernels)))
    layer = replace(layer, runs=2)
    while 256 * _of_run(layer, turns) + least > _MOST:
        layer = replace(layer, runs=layer.runs + 1)
    return layer


def _of_int4(layers: Sequence[Layer], kernels: Array) -> list[Layer]:
    """The layers that may have weights of 4 bits, with these: four channels in a word,
    and in no turn a lane that no input was written to."""
    if not fits_int4(kernels):
        return []
    turns = (replace(one, turn=_dividing_turn(one), int4=True) for one in layers)
    return [
        one
        for one in turns
        if one.turn and one.outputs >= INT4_OUTPUTS and not one.by_pairs
    ]


def _dividing_turn(layer: Layer) -> int:
    """Return the pairs of taps per iteration with no rest; 0 if no unrolling fits."""
    pairs = len(layer.lanes) // 2
    return next((u for u in (*UNROLLED, 6, 5, 7, 3) if pairs % u == 0), 0)


def _runs_of_int4(layer: Layer, kernels: Array) -> Layer:
    """The layer of weights of 4 bits, with runs of turns that stay within 32 bits."""
    first = np.asarray(_first_of_pairs(layer))[::2]
    few = chunks(first, 4 * len(layer.order))
    lanes = (reach(_of_fours(layer, kernels, some)) for some in few)
    shape = (-1, layer.turns, len(layer.order) // layer.turns)
    turns = np.concatenate([n.reshape(shape).sum(2, dtype=np.int64) for n in lanes])
    while True:
        starts = range(0, layer.turns, layer.run_turns)
        if np.add.reduceat(turns, [*starts], axis=1).max() <= _MOST:
            return layer
        layer = replace(layer, runs=layer.runs + 1)


def _of_run(layer: Layer, turns: Array) -> int:
    """The greatest magnitude of a run's sums; turns: [O, turn] weights of each."""
    starts = range(0, layer.turns, layer.run_turns)
    few = chunks(turns, layer.turns)
    sums = (np.add.reduceat(some, [*starts], axis=1, dtype=np.int64) for some in few)
    return 128 * max(int(one.max()) for one in sums)


def _fewer_groups(window: Window) -> int:
    """Return a number of groups, merged so that each has a word of inputs and two
    outputs; 1 if no number fits."""
    groups, outputs = window.groups, window.group_outputs
    for times in range(1, groups):
        whole = times * window.group_channels >= WORD and times * outputs >= 2
        if whole and groups % times == 0:
            return groups // times
    return 1


def _beside_zeros(window: Window, kernels: Array, times: int) -> Array:
    """Weights [O, taps] as those of groups that are so many times as large, with zeros
    for the neighbours' channels."""
    if times == 1:
        return kernels
    inputs, outputs = window.group_channels, window.group_outputs
    taps = kernels.reshape(len(kernels), -1, inputs)
    wider = np.zeros((*taps.shape[:2], times, inputs), kernels.dtype)
    at = np.arange(len(kernels))
    wider[at, :, at // outputs % times] = taps
    return wider.reshape(len(kernels), -1)


def _short(layer: Layer, pixels: int) -> list[Layer]:
    """Return the same layer in a compact form if it has few products."""
    w = layer.window
    if layer.lone or w.out_channels * w.taps * pixels > _FEW:
        return []
    direct = layer.may_be_direct and pixels == 1
    few = replace(layer, pixels=1, direct=direct, turn=UNROLLED[-1])
    if few.whole == 0 and few.turn == layer.unrolled and few.pixels == layer.pixels:
        return []  # they are done so as it is
    return [replace(few, by_pairs=True)]


def _smaller(layer: Layer) -> list[Layer]:
    """Return the same layer with less scratch if it has much; in place it needs
    some."""
    once = layer.pixels == 1 or layer.lone  # bytes are widened for one use
    if layer.may_be_direct and (once or layer.window.stride_w > 1):
        return [replace(layer, pixels=1, direct=True)]
    if layer.pixels > 1 and layer.scratch >= _MUCH:
        return [replace(layer, pixels=1)]
    return []
