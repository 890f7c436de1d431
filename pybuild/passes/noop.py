"""No-op removal: nodes whose output is their input, bit for bit."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.fixed_point.quant import quantized_clamp
from pybuild.passes.edit import Edit, renamed


def remove_noops(graph: Graph) -> Graph:
    """Readers of the output read the input; an output of the model keeps its name."""
    edit = Edit(graph)
    taken: dict[str, str] = {}
    made = {name for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        source = edit.name(node.inputs[0]) if node.inputs else ""
        if not is_noop(node, graph):
            edit.keep(node)
        elif node.output not in graph.outputs:
            edit.alias(node.output, source)
        elif source in made and source not in (*graph.outputs, *taken):
            taken[source] = node.output
            edit.alias(node.output, source)
        else:
            edit.keep(Node("copy", node.name, (source,), node.outputs))
    for output in taken.values():
        del edit.tensors[output]
    made_graph = edit.done()
    return renamed(made_graph, taken)


def is_noop(node: Node, graph: Graph) -> bool:
    """True for what neither moves nor changes a byte."""
    if not node.inputs or not node.inputs[0]:
        return False
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if (x.shape, x.dtype, x.quant) != (y.shape, y.dtype, y.quant):
        return False
    match node.op:
        case "copy" | "reshape" | "quantize":
            return True
        case "transpose":
            return tuple(node.attrs["perm"]) == tuple(range(len(x.shape)))
        case "slice":
            return all(stride == 1 for stride in node.attrs["strides"])
        case "pad":
            return True
        case "concat":
            return len(node.inputs) == 1
        case "clip":
            if x.dtype.is_float or x.quant is None:
                return clamp_of(node) == (None, None)
            ends = (x.dtype.low, x.dtype.high)
            return quantized_clamp(clamp_of(node), y) == ends
    return False
