"""Dense layers of int8 weights and float32 inputs, computed in int8: each row of the
input is made int8 by its own greatest number, as LiteRT does (pybuild/ops/hybrid.py).

Files of any format mean such a layer as a dequantize of the weights before a float
product. Without this pass its weights are float32, four times the flash.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node, Tensor
from pybuild.ops.fixed_point.centred import centred
from pybuild.ops.hybrid import most_taps
from pybuild.passes.edit import Edit


def dense_in_int8(graph: Graph) -> Graph:
    """The graph with sums of int8 products for such layers."""
    makers, edit = graph.producers(), Edit(graph)
    for node in graph.nodes:
        weights = makers.get(node.inputs[1]) if node.op == "dense" else None
        if weights is not None and _fits(graph, node, weights):
            name = weights.inputs[0]
            value = _known(graph, makers, name)
            if value is not None:
                tensor, value = centred(graph.tensor(name), value)
                if most_taps(value.shape, 0, tensor.dtype):
                    _write(edit, graph, node, (tensor, value))
                    continue
        edit.keep(node)
    return edit.done()


def _known(graph: Graph, makers: Mapping[str, Node], name: str) -> Array | None:
    """The value of weights, which a file may have in another order."""
    if name in graph.constants:
        return None if name in graph.parameters else graph.constants[name]
    node = makers.get(name)
    if node is None or node.op not in ("transpose", "reshape"):
        return None
    value = _known(graph, makers, node.inputs[0])
    if value is None or node.op == "transpose":
        return value if value is None else value.transpose(node.attrs["perm"])
    return value.reshape(graph.tensor(name).shape)


def _fits(graph: Graph, node: Node, weights: Node) -> bool:
    """True if the weights are int8 with one scale, or one for each output; a zero point
    is taken out."""
    if weights.op != "dequantize":
        return False
    w, x = graph.tensor(weights.inputs[0]), graph.tensor(node.inputs[0])
    quant = w.quant
    if quant is None or w.dtype is not DType.INT8:
        return False
    by_output = len(quant.scale) == 1 or quant.axis == 0
    return x.dtype is DType.FLOAT32 and by_output and x.size > 0


def _write(edit: Edit, graph: Graph, node: Node, known: tuple[Tensor, Array]) -> None:
    w, value = known
    x, y, weights = graph.tensor(node.inputs[0]), graph.tensor(node.output), w.name
    rows = x.size // x.shape[-1]
    assert w.quant is not None
    factor = edit.constant(f"{weights}.scale", np.asarray(w.quant.scale, np.float32))
    plain = edit.constant(f"{weights}.plain", value)
    q, scale, sums = (edit.fresh(f"{y.name}.{n}") for n in ("int8", "scale", "sums"))
    attrs: dict[str, Attr] = {"batches": rows, "rule": "symmetric"}
    source = (edit.name(x.name),)
    edit.tensors[scale] = Tensor(scale, (rows,), DType.FLOAT32)
    made = Node("quantize_dynamic", q, source, (q, scale), attrs)
    edit.emit(made, shape=x.shape, dtype=DType.INT8)
    made = Node("dense_sums", node.name, (q, plain), (sums,))
    edit.emit(made, shape=y.shape, dtype=DType.INT32)
    bias = [edit.name(name) for name in node.inputs[2:] if name]
    ends: dict[str, Attr] = {"sums_first": False, "axis": 0}
    if "clamp" in node.attrs:
        ends["clamp"] = node.attrs["clamp"]
    names = (sums, scale, factor, *bias)
    edit.emit(Node("scale_sums", node.name, names, node.outputs, ends), shape=y.shape)
