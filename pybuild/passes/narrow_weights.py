"""Layers of int8 whose int16 weights fit int8: what a zero point, or what passes took
away, leaves of them.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.fixed_point.centred import narrowed
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit

LAYERS = ("conv2d", "depthwise_conv2d", "dense")


def narrow_weights(graph: Graph) -> Graph:
    """The graph with int8 weights wherever they are enough and known."""
    edit = Edit(graph)
    for node in graph.nodes:
        edit.keep(_narrow(edit, node))
    return remove_dead(edit.done()) if tuple(edit.nodes) != graph.nodes else graph


def _narrow(edit: Edit, node: Node) -> Node:
    graph = edit.old
    if node.op not in LAYERS or not graph.known(node.inputs[1]):
        return node
    tensor = graph.tensor(node.inputs[1])
    value = narrowed(graph.constants[tensor.name])
    if tensor.dtype is not DType.INT16 or value.dtype == tensor.dtype.numpy:
        return node
    name = edit.constant(f"{tensor.name}.int8", value, tensor.quant)
    x, _, *bias = node.inputs
    return replace(node, inputs=(x, name, *bias))
