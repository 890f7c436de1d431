"""The kernels that serve depthwise_conv2d: those for any core, and those of each
core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, by_rows
from pybuild.kernels.base.window import convolution_window
from pybuild.kernels.compact import depthwise as depthwise_small
from pybuild.kernels.dsp import conv as conv_dsp
from pybuild.kernels.dsp import conv16, depthwise16, fours
from pybuild.kernels.dsp import depthwise as depthwise_dsp
from pybuild.kernels.layers.depthwise import GROUP
from pybuild.kernels.layers.weights import (
    constant,
    epilogue,
    halves,
    kernels_of,
    known_halves,
    widens_each,
    window_rows,
)
from pybuild.kernels.mve import conv as conv_mve
from pybuild.kernels.mve import depthwise as depthwise_mve
from pybuild.kernels.mve import depthwise16 as depthwise16_mve
from pybuild.kernels.mve import depthwise16_planes
from pybuild.kernels.operators.unpacked import unpacked
from pybuild.kernels.portable import depthwise
from pybuild.kernels.rvv import depthwise as depthwise_rvv
from pybuild.kernels.scalar import conv as conv_block
from pybuild.kernels.scalar import depthwise as depthwise_block
from pybuild.kernels.scalar import lines
from pybuild.kernels.wide import float_depthwise
from pybuild.targets.target import Target


def depthwise_conv2d(
    node: Node, graph: Graph, target: Target, optimise: str
) -> list[Candidate]:
    """The candidates for a depthwise_conv2d node.

    Errors  BuildError if the int32 accumulator could overflow
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    weights = constant(node, graph, 1)
    window = convolution_window(node, x, y, (weights.shape[0], weights.shape[1]))
    finish, bias, x_zero = epilogue(node, graph, kernels_of(node, graph))
    layer = depthwise.Layer(window, finish, x_zero, x.dtype, DType.of(bias))
    layer = replace(layer, wide=weights.dtype == np.int16)
    source = window_rows(node, graph, window.rows, layer.x_zero)
    order = "taps row by row, channels"
    others = (
        *(() if layer.is_bare else (Packed("bias", bias, order=EACH),)),
        *layer.tables(),
    )
    tables = (Packed("weights", weights, order=order), *others)
    rows, calls = (by_rows(y), source), (y.shape[0], y.shape[1])
    found = depthwise16.candidates(node, graph, target, window, rows, calls)
    plain = [] if found else [depthwise.offer(layer, by_rows(y), source, tables, y)]
    if widens_each(target, optimise) and known_halves(node, graph):
        tables = (halves(weights, order), *others)
        layer = replace(layer, halves=True)
        plain.append(depthwise.offer(layer, by_rows(y), source, tables, y))
    small = (depthwise_small,) if optimise == "size" else ()
    vectors = (
        *(depthwise_mve, depthwise16_mve, depthwise16_planes, float_depthwise),
        depthwise_rvv,
    )
    for family in (depthwise_dsp, fours, *small, *vectors, depthwise_block, lines):
        found += family.candidates(node, graph, target, window, rows, calls)
    # each channel as a group: of int8 where they do not fill a word of a row
    grouped = replace(window, groups=window.channels)
    if window.channels < GROUP:
        found += conv_dsp.candidates(node, graph, target, grouped, rows, calls)
    if window.out_channels > window.channels or layer.is_bare:
        for family in (conv_mve, conv_block):
            found += family.candidates(node, graph, target, grouped, rows, calls)
    # what any core may have is slow, but takes no scratch: the smallest plans are of it
    found = [
        *plain, *found,
        *conv16.candidates(node, graph, target, grouped, rows, calls),
    ]  # fmt: skip
    return [*found, *unpacked(node, graph, target, optimise, found)]
