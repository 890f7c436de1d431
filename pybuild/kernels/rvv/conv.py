"""Convolution and fully connected layers of int8 and int16 on vectors of any length: a
lane for each output channel, a value of the input at a time (vwmacc.vx).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.layers.weights import fixed, in_blocks, kernels_of
from pybuild.kernels.rvv import pixels
from pybuild.kernels.rvv.conv_code import kernel
from pybuild.kernels.rvv.conv_layer import Layer
from pybuild.kernels.rvv.epilogue import ended, table
from pybuild.kernels.rvv.vectors import FEATURE
from pybuild.targets.target import Target


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one, and one that may write
    over what it reads."""
    if FEATURE not in target.features or not fixed(node, graph):
        return []
    kernels = kernels_of(node, graph)
    made = ended(node, graph, target, kernels)
    if made is None:
        return []
    tables = (_packed(kernels, window.groups), table(made.epilogue, made.bias))
    layers = [Layer(window, made.epilogue, made.x_zero, made.elem)]
    if is_row_by_row(window, rows, calls):
        layers.append(replace(layers[0], row=True))
    found = [_offer(layer, tables, rows, calls) for layer in layers]
    if pixels.suits(window):
        few = pixels.Layer(window, made.epilogue, made.x_zero, made.elem)
        tables = (_by_channels(kernels, few.together), tables[1])
        found.append(_offer(few, tables, rows, calls))
    return found


def _offer(
    layer: Layer | pixels.Layer,
    tables: tuple[Packed, ...],
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    over, (images, bands) = isinstance(layer, Layer) and layer.row, calls
    k = kernel(layer) if isinstance(layer, Layer) else pixels.kernel(layer)
    return Candidate(
        func=k.finish(in_place=over),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        in_place=(0,) if over else (),
        cost=images * bands * layer.instructions,
    )


def _packed(kernels: Array, groups: int) -> Packed:
    """Weights [O, taps], group by group, of each tap by tap."""
    lie = "of each group, " * (groups > 1) + "of each tap: all output channels"

    def arranged() -> Array:
        each = kernels.reshape(groups, -1, kernels.shape[1])
        return np.ascontiguousarray(each.transpose(0, 2, 1))

    return Packed.later("weights", lie, arranged)


def _by_channels(kernels: Array, together: int) -> Packed:
    """Weights [O, taps] of some output channels at a time, of these tap by tap."""
    lie = f"of each {together} output channels, of each tap: channels"
    order = in_blocks(len(kernels), together)

    def arranged() -> Array:
        blocks = kernels[order].reshape(-1, together, kernels.shape[1])
        return np.ascontiguousarray(blocks.transpose(0, 2, 1))

    return Packed.later("weights", lie, arranged)
