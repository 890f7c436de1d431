"""A quantised graph in real numbers: its weights as they are stored, values cut off
where the integers end, nothing rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.fixed_point.quant import real
from pybuild.ops.interpret import check_types, operator_of
from pybuild.passes.qdq import COMPUTED, PLACES, WEIGHTED, moved_inputs
from pybuild.records import dataclass

_CASTS = ("quantize", "dequantize")
_SAME = (*WEIGHTED, *COMPUTED, *PLACES, "assign", "shift")
# attributes that say how integers are rounded
_ROUNDING = ("rounding", "exact", "wide")


@dataclass(frozen=True)
class RealNumbers:
    """twin: the same nodes and tensors as `graph`, in float32"""

    graph: Graph
    twin: Graph

    def run(
        self, inputs: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, int]]:
        """Every tensor, and of those that have a scale how many values were half a
        step or more beyond what the integers reach, before they were cut off.

        inputs  as the graph's; what is kept from run to run is as at the first
        """
        values = dict(self.twin.constants)
        values |= {name: kept.initial for name, kept in self.twin.state.items()}
        values |= {n: _as_real(self.graph, n, inputs[n]) for n in self.graph.inputs}
        beyond = {}
        for node in self.twin.nodes:
            reads = [values[name] if name else None for name in node.inputs]
            found = operator_of(node, self.twin).reference(node, self.twin, reads)
            for name, value in zip(node.outputs, found, strict=True):
                tensor = self.graph.tensor(name)
                if tensor.quant is None:
                    values[name] = value
                else:
                    values[name], beyond[name] = _cut_off(tensor, value)
        return values, beyond


def in_real_numbers(graph: Graph) -> RealNumbers | None:
    """The graph in real numbers; None: an operator is defined on integers, like a
    table."""
    nodes = []
    biases: dict[str, Array] = {}
    for node in graph.nodes:
        names = [name for name in (*node.inputs, *node.outputs) if name]
        if not any(graph.tensor(name).quant for name in names):
            nodes.append(node)
        elif node.op in _CASTS:
            nodes.append(replace(node, op="copy", attrs={}))
        elif node.op in _SAME or moved_inputs(node):
            nodes.append(_with_bias(graph, _plain(node), biases))
        else:
            return None
    floats = {name: _float(tensor) for name, tensor in graph.tensors.items()}
    floats |= {n: Tensor(n, v.shape, DType.FLOAT32) for n, v in biases.items()}
    made = replace(
        graph,
        nodes=tuple(nodes),
        tensors=floats,
        constants={n: _as_real(graph, n, v) for n, v in graph.constants.items()}
        | biases,
        state={
            name: replace(kept, initial=_as_real(graph, name, kept.initial))
            for name, kept in graph.state.items()
        },
    )
    return None if check_types(made) else RealNumbers(graph, made)


def _as_real(graph: Graph, name: str, value: Array) -> Array:
    """A tensor's value as float32; as it is where it has no scale."""
    tensor = graph.tensor(name)
    if tensor.quant is None:
        return value
    return real(value, tensor).astype(np.float32)


def _float(tensor: Tensor) -> Tensor:
    if tensor.quant is None:
        return tensor
    return replace(tensor, dtype=DType.FLOAT32, quant=None)


def _plain(node: Node) -> Node:
    attrs = {k: v for k, v in node.attrs.items() if k not in _ROUNDING}
    return replace(node, attrs=attrs)


def _with_bias(graph: Graph, node: Node, biases: dict[str, Array]) -> Node:
    """A layer adds its bias to products: it has their scale, whatever the file says."""
    if node.op not in WEIGHTED or len(node.inputs) < 3 or not node.inputs[2]:
        return node
    x, w = (graph.tensor(name).quant for name in node.inputs[:2])
    bias = graph.constants.get(node.inputs[2])
    if x is None or w is None or bias is None or bias.dtype.kind != "i":
        return node
    name = f"bias of {node.output}"
    scales = np.asarray(w.scale) * x.scale[0]
    biases[name] = (bias.astype(np.float64) * scales).astype(np.float32)
    return replace(node, inputs=(*node.inputs[:2], name, *node.inputs[3:]))


def _cut_off(tensor: Tensor, ideal: Array) -> tuple[Array, int]:
    """Integers from 0 that end at 0 are how a file says ReLU: that loses nothing."""
    quant, dtype = tensor.quant, tensor.dtype
    if quant is None or len(quant.scale) > 1:
        return ideal, 0
    step, zero = quant.scale[0], quant.zero_point[0]
    low, high = step * (dtype.low - zero), step * (dtype.high - zero)
    values = ideal.astype(np.float64)
    above = int(np.count_nonzero(values >= high + step / 2))
    below = int(np.count_nonzero(values <= low - step / 2)) if low < 0 else 0
    return np.clip(values, low, high).astype(ideal.dtype), above + below
