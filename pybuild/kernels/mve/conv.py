"""Convolution and fully connected layers on vectors of 16 bytes or of 8 int16
(VMLADAVA).

Four output channels at a time, or as many as there are, sum over the bytes of a window:
of one tap where it lies, of more taps, or few bytes, from a patch in scratch. Then four
are scaled together.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.epilogues import by_channel
from pybuild.kernels.epilogues.affine import with_one_factor
from pybuild.kernels.epilogues.bare import Bare, bare
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.sums16 import sums16, takes_int16, turns_of_run
from pybuild.kernels.layers.weights import (
    WEIGHTS4,
    as_bytes,
    fits_int4,
    in_blocks,
    is_bare,
    kernels_of,
    known_bytes,
)
from pybuild.kernels.layers.zero_points import half_zero
from pybuild.kernels.mve.conv_code import kernel
from pybuild.kernels.mve.conv_layer import Layer
from pybuild.kernels.mve.epilogue import ended_sums, table
from pybuild.kernels.mve.exact import Exact, exact16
from pybuild.ops.fixed_point.chunks import chunks, filled
from pybuild.targets.target import Target

_CALL = 40  # instructions
_MOST_TAPS = 1 << 16  # 16 times a sum of int4 by int8 fits 32 bits


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as vectors: four channels, of these those of each pass, then
    steps, then channels."""
    lie = f"of each {layer.together} output channels, "
    lie += "the first and the third, then the others, " * (len(layer.passes) > 1)
    lie += f"of each {layer.step} taps: channels{', two in a byte' * layer.int4}"
    return Packed.later(
        WEIGHTS4 if layer.int4 else "weights", lie, _arranged, layer, kernels
    )


def _arranged(layer: Layer, kernels: Array) -> Array:
    order, channels = np.asarray(layer.order), _blocks(layer)
    taps, whole = np.maximum(order, 0), len(order) - len(order) % layer.step

    def vectors(few: Ints) -> Array:
        taken = np.where(order < 0, 0, kernels[few[:, None], taps]) + half_zero(
            layer.zero
        )
        blocks = taken.reshape(-1, layer.together, len(order))
        passes = [
            _steps(part, step)
            for one in (_two_in_a_byte(layer, blocks[:, p]) for p in layer.passes)
            for part, step in (
                (one[..., :whole], layer.step),
                (one[..., whole:], layer.last),
            )
        ]
        return np.concatenate(passes, axis=1)

    parts = map(vectors, chunks(channels, len(order), layer.together))
    size = len(channels) * len(order) // (2 if layer.int4 else 1)
    return filled(np.empty(size, np.int8), parts)


def _two_in_a_byte(layer: Layer, blocks: Array) -> Array:
    """[block, channel, tap] with two channels as one, if they are of 4 bits."""
    if not layer.int4:
        return blocks
    wide = blocks.astype(np.int32)
    high, low = wide[:, 0::2], wide[:, 1::2]
    return (16 * high + (low if layer.joint else low & 15)).astype(np.int8)


def _of_int4(layer: Layer, kernels: Array) -> list[Layer]:
    """The layer with weights of 4 bits, if it has such."""
    few = layer.together < 4 or isinstance(layer.epilogue, End16)
    if few or len(layer.order) > _MOST_TAPS or not fits_int4(kernels):
        return []
    return [replace(layer, int4=True, joint=-8 not in kernels)]


def _steps(blocks: Array, step: int) -> Array:
    """[block, channel, tap] as it is read: of each block, of so many taps, channels."""
    vectors = blocks.reshape(*blocks.shape[:2], -1, step)
    return vectors.transpose(0, 2, 1, 3).reshape(len(blocks), -1)


def _blocks(layer: Layer) -> Ints:
    """Output channels as they are computed, four of a group at a time, or all."""
    each = layer.group_outputs
    blocks = in_blocks(each, layer.together)
    groups = range(layer.window.groups)
    return np.concatenate([blocks + each * group for group in groups])


def _ends(layer: Layer, bias: Array) -> Packed:
    order, epilogue = _blocks(layer), layer.epilogue
    assert not isinstance(epilogue, Bare)
    if isinstance(epilogue, End16):
        return epilogue.table(bias, order)
    if layer.together == 4:
        return table(epilogue, bias, order)
    if isinstance(epilogue, Exact):
        return epilogue.table(bias, order, layer.together)
    return by_channel.table(epilogue, bias.astype(np.int64), order)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    row = is_row_by_row(window, rows, calls)
    if "mve" in target.features and known_bytes(node, graph, sums=True):
        kernels = kernels_of(node, graph)
        fits, zero = as_bytes(node, graph, kernels)
        if not fits:
            return []
        if is_bare(node, graph):
            layer, bias = Layer(window, bare(len(kernels)), 0, zero=zero), kernels
        else:
            sums, epilogue = ended_sums(node, graph, kernels)
            x_zero, bias = sums.made.x_zero, sums.bias
            layer = Layer(window, epilogue, x_zero, row, zero=zero)
            if layer.together == 4:
                layer = replace(layer, epilogue=with_one_factor(epilogue))
    elif "mve" in target.features and takes_int16(node, graph):
        kernels = kernels_of(node, graph)
        layer, bias = _layer16(node, graph, target, window, row, kernels)
    else:
        return []
    ways = [layer]
    if layer.may_have_threes:
        # a patch of three pixels is longer than that of two
        ways = [replace(layer, threes=True), *([] if layer.direct else ways)]
    if layer.long_turn > 1:
        ways = [replace(layer, long=True), layer]
    ways += [packed for one in ways for packed in _of_int4(one, kernels)]
    ends = () if is_bare(node, graph) else (_ends(layer, bias),)
    return [_offer(one, (pack(one, kernels), *ends), rows, calls) for one in ways]


def _layer16(
    node: Node, graph: Graph, target: Target, window: Window, row: bool, kernels: Array
) -> tuple[Layer, Array]:
    """A layer of int16, and its bias; with ends of vectors where they are cheap."""
    epilogue, bias, x_zero = sums16(node, graph, kernels, target)
    layer = Layer(window, epilogue, x_zero, row, elem=DType.INT16)
    if epilogue.long:
        whole = layer.steps - layer.tail
        most = turns_of_run(kernels, whole * layer.step, layer.step)
        return replace(layer, run_steps=most), bias
    four = exact16(epilogue)
    return (layer if four is None else replace(layer, epilogue=four)), bias


def _offer(
    layer: Layer,
    tables: tuple[Packed, ...],
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    window, row, k = layer.window, layer.row, kernel(layer)
    images, bands = calls
    pixels = images * bands * window.out_width
    blocks = window.groups * -(-layer.group_outputs // layer.together)
    gathered = 0 if layer.direct else 3 * layer.steps + 10 * window.kernel_h
    gathered *= window.groups
    gathered += 2 * layer.steps if layer.copied else 0
    return Candidate(
        func=k.finish(in_place=row),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        in_place=(0,) if row else (),
        cost=pixels * (blocks * ((10 + layer.int4) * layer.steps + 24) + gathered)
        + images * bands * _CALL,
    )
