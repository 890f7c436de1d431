"""The kernels that serve conv2d and dense: those for any core, and those of each core.

A fully connected layer is a pointwise convolution whose pixels are the batch.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, RowAccess, whole
from pybuild.kernels.base.window import Window, convolution_window
from pybuild.kernels.compact import conv as conv_small
from pybuild.kernels.dsp import conv as conv_dsp
from pybuild.kernels.dsp import conv16, winograd
from pybuild.kernels.layers.weights import widens, widens_each, window_rows
from pybuild.kernels.mve import conv as conv_mve
from pybuild.kernels.portable import conv_float, conv_half, conv_scaled, dense4
from pybuild.kernels.portable.conv import offer, plain, weighted
from pybuild.kernels.rvv import conv as conv_rvv
from pybuild.kernels.scalar import conv as conv_block
from pybuild.kernels.scalar import conv_paired
from pybuild.kernels.wide import conv as conv_wide
from pybuild.kernels.wide import floats as conv_wide_floats
from pybuild.targets.target import Target

# those whose kernels go row by row where pixels of all rows are alike, too
_BY_ROWS = (
    *(conv_dsp, conv_small, conv_mve, conv_wide, conv_wide_floats, conv_rvv),
    *(conv_block, conv_float, conv_half, conv_scaled),
)


# times the instructions of the cheapest kernel, from which one that works in place is
# for little memory alone
_DEAR = 1.25


def families(target: Target, optimise: str) -> tuple[ModuleType, ...]:
    """Whose kernels a layer may have besides this file's; dense layers, too."""
    small = (conv_small, dense4) if optimise == "size" else ()
    large = (winograd, conv_paired) if optimise == "speed" else ()
    vectors = (conv_mve, conv_wide, conv_wide_floats, conv_rvv)
    floats = (conv_float, conv_half) if widens(target, optimise) else (conv_float,)
    # vectors of real weights take far less than integers one by one
    if widens(target, optimise) and (
        "mve" not in target.features or optimise == "size"
    ):
        floats = (*floats, conv_scaled)
    return (conv16, conv_dsp, *small, *vectors, conv_block, *floats, *large)


def conv2d(node: Node, graph: Graph, target: Target, optimise: str) -> list[Candidate]:
    """The candidates for a conv2d node.

    Errors  BuildError if the int32 accumulator could overflow
    """
    x, w = graph.tensor(node.inputs[0]), graph.tensor(node.inputs[1])
    y = graph.tensor(node.output)
    window = convolution_window(node, x, y, (w.shape[1], w.shape[2]))
    layer, tables = weighted(node, graph, window, target)
    source = window_rows(node, graph, window.rows, layer.x_zero)
    out = RowAccess(y.name, y.shape[1], y.bytes // (y.shape[0] * y.shape[1]))
    calls = (x.shape[0], y.shape[1])
    rows = (out, source)
    found = plain(layer, rows, tables, calls, target)
    if widens_each(target, optimise):
        found += conv_half.plain(node, graph, target, window, rows, calls)
    if window.pointwise and node.attrs.get("strides", (1, 1)) == (1, 1):
        # all inputs of a pixel are read before one is written
        if window.groups == 1 and not layer.is_bare:
            found.append(offer(replace(layer, over=True), rows, tables, calls, target))
        for family in families(target, optimise):
            if family in _BY_ROWS:
                found += family.candidates(node, graph, target, window, rows, calls)
        # pixels of all rows are alike
        pixels = y.size // y.shape[3]
        window = replace(window, width=pixels, out_width=pixels)
        rows, calls = (whole(y), whole(x)), (1, 1)
    for family in families(target, optimise):
        found += family.candidates(node, graph, target, window, rows, calls)
    return _sparing(found)


def _sparing(offers: list[Candidate]) -> list[Candidate]:
    """The candidates; what works in place far more slowly is marked as `spare`."""
    most = _DEAR * min(one.cost for one in offers)
    return [
        replace(one, spare=one.spare or (bool(one.in_place) and one.cost > most))
        for one in offers
    ]


def dense(node: Node, graph: Graph, target: Target, optimise: str) -> list[Candidate]:
    """The candidates for a dense node.

    Errors  BuildError if the int32 accumulator could overflow
    """
    x, w = graph.tensor(node.inputs[0]), graph.tensor(node.inputs[1])
    y = graph.tensor(node.output)
    outputs, inputs = w.shape
    batch = x.size // inputs
    window = Window(batch, batch, inputs, outputs, 1, 1)
    layer, tables = weighted(node, graph, window, target)
    rows = (whole(y), whole(x))
    found = plain(layer, rows, tables, (1, 1), target)
    if widens_each(target, optimise):
        found += conv_half.plain(node, graph, target, window, rows, (1, 1))
    for family in families(target, optimise):
        found += family.candidates(node, graph, target, window, rows, (1, 1))
    return found
