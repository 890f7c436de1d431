"""A float graph and a scheme as one graph of int8 and float operators.

The int8 ones are those of quantised files, so boards need nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.graph import Graph, Node, Quant
from pybuild.ops.quant import dequantized
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import MOVEMENT, WEIGHTED
from pybuild.quantisation.ranges import magnitudes
from pybuild.quantisation.scheme import SHARES, Scheme

# axis of the output channels of the weights
CHANNEL_AXIS = {"conv2d": 0, "depthwise_conv2d": 2, "dense": 0}
_MOST_BIAS = 1 << 30


def quantised_weights(
    node: Node, graph: Graph, x_scale: float
) -> tuple[npt.NDArray[np.int8], Quant]:
    """int8 around zero, one scale for each output channel.

    A channel of small weights under a large bias has a greater scale: its bias must
    fit int32.
    """
    w, axis = graph.constants[node.inputs[1]], CHANNEL_AXIS[node.op]
    scale = np.maximum(magnitudes(w, axis) / 127, 1e-30)
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = np.abs(graph.constants[node.inputs[2]].astype(np.float64))
        scale = np.maximum(scale, bias / (x_scale * _MOST_BIAS))
    scale = scale.astype(np.float32).astype(np.float64)
    shape = [-1 if i == axis else 1 for i in range(w.ndim)]
    whole = np.rint(w.astype(np.float64) / scale.reshape(shape))
    quant = Quant(tuple(map(float, scale)), (0,) * len(scale), axis)
    return np.clip(whole, -127, 127).astype(np.int8), quant


def weight_error(node: Node, graph: Graph, x_scale: float) -> Array:
    """What rounding takes from the weights: float32, as they are arranged."""
    whole, quant = quantised_weights(node, graph, x_scale)
    w = graph.constants[node.inputs[1]].astype(np.float32)
    return np.asarray(w - dequantized(whole, quant), np.float32)


class _Rewrite:
    """ints, floats  what a tensor of the float graph is called in each form"""

    def __init__(self, graph: Graph, scheme: Scheme, boundary: str) -> None:
        self.graph, self.scheme, self.edit = graph, scheme, Edit(graph)
        self.ints: dict[str, str] = {}
        self.floats: dict[str, str] = {}
        taken = boundary == "int8"
        self.int_names = {
            name for name in (*graph.inputs, *graph.outputs)
            if taken and name in scheme.quants
        }  # fmt: skip
        for name in graph.inputs:
            if name in self.int_names:
                self._typed(name, name)
                self.ints[name] = name
            else:
                self.floats[name] = name

    def _typed(self, name: str, of: str, quant: Quant | None = None) -> None:
        """`name` holds the int8 form of the float tensor `of`."""
        tensor = self.graph.tensor(of)
        quant = quant or self.scheme.quants[of]
        made = replace(tensor, name=name, dtype=DType.INT8, quant=quant)
        self.edit.tensors[name] = made

    def int_name(self, name: str) -> str:
        """Of a tensor that is made now: its own, unless users know that as float."""
        boundary = {*self.graph.inputs, *self.graph.outputs}
        if name in self.int_names or name not in boundary:
            return name
        return self.edit.fresh(f"{name}.int8")

    def float_name(self, name: str) -> str:
        return self.edit.fresh(f"{name}.float") if name in self.int_names else name

    def as_int(self, name: str) -> str:
        """The int8 form of any tensor, quantised here if it is only known as float."""
        if name not in self.ints and name in self.graph.constants:
            self.ints[name] = self._constant(name)
        if name not in self.ints:
            source, made = self.floats[name], self.int_name(name)
            made = made if made != source else self.edit.fresh(f"{name}.int8")
            self._typed(made, name)
            self.edit.nodes.append(Node("quantize", made, (source,), (made,)))
            self.ints[name] = made
        return self.ints[name]

    def _constant(self, name: str) -> str:
        quant, value = self.scheme.quants[name], self.graph.constants[name]
        steps = np.rint(value.astype(np.float64) / quant.scale[0]) + quant.zero_point[0]
        whole = np.clip(steps, -128, 127).astype(np.int8)
        return self.edit.constant(f"{name}.int8", whole, quant)

    def as_float(self, name: str) -> str:
        if name in self.graph.constants:
            return name
        if name not in self.floats:
            made = name
            if self.ints[name] == name:
                made = self.edit.fresh(f"{name}.float")
            tensor = self.graph.tensor(name)
            self.edit.tensors[made] = replace(tensor, name=made)
            node = Node("dequantize", made, (self.ints[name],), (made,))
            self.edit.nodes.append(node)
            self.floats[name] = made
        return self.floats[name]

    def keep(self, node: Node) -> None:
        inputs = tuple(self.as_float(n) if n else n for n in node.inputs)
        outputs = tuple(self.float_name(n) for n in node.outputs)
        for old, new in zip(node.outputs, outputs, strict=True):
            self.edit.tensors[new] = replace(self.graph.tensor(old), name=new)
            self.floats[old] = new
        self.edit.nodes.append(replace(node, inputs=inputs, outputs=outputs))

    def convert(self, node: Node) -> None:
        if node.op in WEIGHTED:
            inputs = self._weights(node)
        else:
            inputs = [self._fitting(node, name) for name in node.inputs]
        output = node.output
        made = self.int_name(output)
        self.ints[output] = made
        self._typed(made, output)
        if node.op == "softmax" and self.scheme.quants[output] != SHARES:
            # LiteRT's softmax gives nothing else
            first = self.edit.fresh(f"{made}.shares")
            self._typed(first, output, SHARES)
            node = replace(node, inputs=tuple(inputs), outputs=(first,))
            self.edit.nodes.append(node)
            node, inputs = Node("quantize", made, (), ()), [first]
        node = replace(node, inputs=tuple(inputs), outputs=(made,))
        self.edit.nodes.append(node)

    def _fitting(self, node: Node, name: str) -> str:
        """An operand; of what moves values, in the quantisation of its output."""
        made = self.as_int(name)
        wanted = self.scheme.quants[node.output]
        if node.op in MOVEMENT and self.edit.tensors[made].quant != wanted:
            again = self.edit.fresh(f"{made}.requantised")
            self._typed(again, name, wanted)
            self.edit.nodes.append(Node("quantize", again, (made,), (again,)))
            return again
        return made

    def _weights(self, node: Node) -> list[str]:
        x = self.as_int(node.inputs[0])
        scale = self.edit.tensors[x].scale
        whole, quant = quantised_weights(node, self.graph, scale)
        inputs = [x, self.edit.constant(f"{node.inputs[1]}.int8", whole, quant)]
        if len(node.inputs) > 2 and node.inputs[2]:
            scales = np.asarray(quant.scale) * scale
            real = self.graph.constants[node.inputs[2]].astype(np.float64)
            steps = np.rint(real / scales).astype(np.int32)
            of = Quant(tuple(map(float, scales)), (0,) * len(scales), 0)
            inputs.append(self.edit.constant(f"{node.inputs[2]}.int32", steps, of))
        return inputs


def rewritten(
    graph: Graph, scheme: Scheme, boundary: str
) -> tuple[Graph, Mapping[str, str]]:
    """The quantised graph, and by float tensor the int8 one that stands for it.

    boundary  "float": inputs and outputs are as they were; "int8": of int8 where
              they are read or made as such
    """
    work = _Rewrite(graph, scheme, boundary)
    for node in graph.nodes:
        if node.output in scheme.integers:
            work.convert(node)
        else:
            work.keep(node)
    for name in graph.outputs:
        if name in work.int_names:
            work.as_int(name)
        elif name not in graph.constants:
            work.as_float(name)
    return work.edit.done(), dict(work.ints)
