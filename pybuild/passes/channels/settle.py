"""Channels that give one value whatever comes in, but by numbers that no kernel has
room for: a bias at the end of int32, a scale of 0. They get others that give the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import DType, Ints
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant
from pybuild.ops.conv import (
    ConvParameters,
    by_output,
    conv_parameters,
    finish,
    still_channels,
)
from pybuild.ops.fixed_point.quant import sums_by_sign
from pybuild.ops.fixed_point.still import Still
from pybuild.passes.edit import Edit

LAYERS = ("conv2d", "depthwise_conv2d", "dense")
# of the output, what a sum of 1 is where no other channel's scale will do
_STEP = 2.0**-4
# of sums in 64 bits, what every epilogue has room for
_WIDE = 2.0**35
Flags = npt.NDArray[np.bool_]


def settle_channels(graph: Graph) -> Graph:
    """Such channels with weights of 0, the scale of another and a bias in it."""
    edit = Edit(graph)
    for node in graph.nodes:
        edit.nodes.append(_settled(edit, node))
    return edit.done() if tuple(edit.nodes) != graph.nodes else graph


def _settled(edit: Edit, node: Node) -> Node:
    graph = edit.old
    if node.op not in LAYERS or graph.tensor(node.inputs[1]).dtype.is_float:
        return node
    try:
        made = conv_parameters(node, graph)
    except BuildError:  # said with all others when kernels are chosen
        return node
    still = still_channels(node, graph, made)
    if still is None:
        return node
    flags = still.flags & _out_of_reach(node, graph, made)
    return _rewritten(edit, node, made, Still(flags, still.values))


def _out_of_reach(node: Node, graph: Graph, made: ConvParameters) -> Flags:
    """Channels whose sums or multiplier have no place, in some order of summing."""
    up, down = sums_by_sign(by_output(node, graph.constants[node.inputs[1]]))
    x, bias = graph.tensor(node.inputs[0]), _bias_of(node, graph, len(up))
    most = np.abs(bias.astype(np.float64))
    most += (-x.dtype.low + abs(made.x_zero)) * (up - down)
    if x.dtype is DType.INT16 and made.rounding != "double":
        return np.asarray((most >= _WIDE) | (np.asarray(made.multipliers) == 0))
    if made.rounding == "double":
        most = np.ldexp(most, np.maximum(np.asarray(made.shifts), 0))
    return np.asarray((most >= 2.0**31 - 1) | (np.asarray(made.multipliers) == 0))


def _bias_of(node: Node, graph: Graph, count: int) -> Ints:
    name = (*node.inputs, "")[2]
    bias = graph.constants[name] if name else np.zeros(count)
    return np.asarray(bias, np.int64)


def _rewritten(edit: Edit, node: Node, made: ConvParameters, still: Still) -> Node:
    if not still.flags.any():
        return node
    graph = edit.old
    tensor = graph.tensor(node.inputs[1])
    weights = graph.constants[tensor.name].copy()
    axis = weights.ndim - 1 if node.op == "depthwise_conv2d" else 0
    np.moveaxis(weights, axis, 0)[still.flags] = 0
    scales, adds = _ends(node, graph, made, still)
    bias = np.where(still.flags, adds, _bias_of(node, graph, len(adds)))
    alike = tensor.quant is not None and len(tensor.quant.scale) == 1
    alike = alike and len(set(scales)) == 1
    told = scales[:1] if alike else scales
    name = edit.constant(
        f"{tensor.name}.settled", weights, Quant(told, (0,), None if alike else axis)
    )
    return replace(node, inputs=(node.inputs[0], name, *_added(edit, node, name, bias)))


def _added(edit: Edit, node: Node, weights: str, bias: Ints) -> tuple[str, ...]:
    """The input of a bias; (): nothing is added."""
    x, name = edit.old.tensor(node.inputs[0]), (*node.inputs, "")[2]
    if not name and not bias.any():
        return ()
    kind = DType.INT64 if x.dtype is DType.INT16 else DType.INT32
    kind = edit.old.tensor(name).dtype if name else kind
    w = edit.tensors[weights].quant
    assert w is not None
    scale = tuple(x.scale * s for s in w.scale)
    quant = Quant(scale, (0,), 0 if len(scale) > 1 else None)
    text = f"{name or node.inputs[1]}.settled"
    return (edit.constant(text, bias.astype(kind.numpy), quant),)


def _ends(
    node: Node, graph: Graph, made: ConvParameters, still: Still
) -> tuple[tuple[float, ...], Ints]:
    """For each channel: the scale of its weights, and the bias that alone gives its
    value.
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    quant, count = graph.tensor(node.inputs[1]).quant, len(still.flags)
    assert quant is not None
    scales = np.broadcast_to(np.asarray(quant.scale), count).copy()
    steps = still.values - made.y_zero
    scales[still.flags] = _STEP * y.scale / x.scale
    adds = np.rint(steps / _STEP)
    usable = np.flatnonzero(~still.flags)
    if usable.size:
        used = int(usable[0]) if len(made.scales) > 1 else 0
        one = replace(
            made,
            multipliers=made.multipliers[used : used + 1],
            shifts=made.shifts[used : used + 1],
            scales=made.scales[used : used + 1],
        )
        tried = np.rint(np.clip(steps / made.scales[used], -(1 << 24), 1 << 24))
        found = finish(node, graph, tried.astype(np.int64), one)
        fit = still.flags & (found == still.values)
        scales[fit], adds[fit] = scales[usable[0]], tried[fit]
    return tuple(scales.tolist()), adds.astype(np.int64)
