"""Convolution and fully connected layers of int8 on vectors of any length: a lane for
each output channel, a value of the input at a time (vwmacc.vx).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.layers.weights import kernels_of, known_int8
from pybuild.kernels.mve.epilogue import ended_sums
from pybuild.kernels.rvv.conv_code import kernel
from pybuild.kernels.rvv.conv_layer import Layer
from pybuild.kernels.rvv.epilogue import is_served, table
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
    if FEATURE not in target.features or not known_int8(node, graph):
        return []
    if window.groups > 1:
        return []
    kernels = kernels_of(node, graph)
    sums, epilogue = ended_sums(node, graph, kernels)
    if not is_served(epilogue):
        return []
    tables = (_packed(kernels), table(epilogue, sums.bias))
    layers = [Layer(window, epilogue, sums.made.x_zero)]
    if is_row_by_row(window, rows, calls):
        layers.append(replace(layers[0], row=True))
    return [_offer(layer, tables, rows, calls) for layer in layers]


def _offer(
    layer: Layer,
    tables: tuple[Packed, ...],
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k, (images, bands) = kernel(layer), calls
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
        cost=images * bands * layer.instructions,
    )


def _packed(kernels: Array) -> Packed:
    """Weights [O, taps], tap by tap."""
    lie = "of each tap: all output channels"
    return Packed.later("weights", lie, lambda: np.ascontiguousarray(kernels.T))
