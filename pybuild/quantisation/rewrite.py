"""A float graph and a scheme as one graph of int8, int16 and float operators.

The integer ones are those of quantised files, so boards need nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant
from pybuild.ops.fixed_point.quant import dequantized
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.curves import points
from pybuild.quantisation.ranges import magnitudes
from pybuild.quantisation.regions import NORM, Region
from pybuild.quantisation.scheme import SHARES, Scheme, moved
from pybuild.quantisation.transformer import is_move

# axis of the output channels of the weights
CHANNEL_AXIS = {"conv2d": 0, "depthwise_conv2d": 2, "dense": 0}
_MOST_BIAS = 1 << 30
_CURVES = ("softmax", "logistic", "tanh")
_SUFFIX = {DType.FLOAT32: "float", DType.INT8: "int8", DType.INT16: "int16"}


def least_scales(w: Array, axis: int) -> npt.NDArray[np.float64]:
    """One for each output channel, by which int8 holds its greatest weight."""
    scale = np.maximum(magnitudes(w, axis) / 127, 1e-30)
    return scale.astype(np.float32).astype(np.float64)


def quantised_weights(
    node: Node, graph: Graph, scheme: Scheme
) -> tuple[npt.NDArray[np.int8], Quant]:
    """int8 around zero, one scale for each output channel.

    A channel of small weights under a large bias has a greater scale: its bias must
    fit int32, but for int16 activations.
    """
    w, axis = graph.constants[node.inputs[1]], CHANNEL_AXIS[node.op]
    fitted = scheme.fitted.get(node.output)
    scale = first = least_scales(w, axis) if fitted is None else fitted.scale
    narrow = scheme.kind(node) is DType.INT8
    if len(node.inputs) > 2 and node.inputs[2] and narrow:
        x_scale = scheme.quants[node.inputs[0]].scale[0]
        bias = np.abs(graph.constants[node.inputs[2]].astype(np.float64))
        scale = np.maximum(scale, bias / (x_scale * _MOST_BIAS))
        scale = scale.astype(np.float32).astype(np.float64)
    shape = [-1 if i == axis else 1 for i in range(w.ndim)]
    whole = np.rint(w.astype(np.float64) / scale.reshape(shape))
    if fitted is not None:
        whole = np.where((scale == first).reshape(shape), fitted.steps, whole)
    quant = Quant(tuple(map(float, scale)), (0,) * len(scale), axis)
    return np.clip(whole, -127, 127).astype(np.int8), quant


def weight_error(node: Node, graph: Graph, scheme: Scheme) -> Array:
    """The error that rounding adds to the weights: float32, in their arrangement."""
    whole, quant = quantised_weights(node, graph, scheme)
    w = graph.constants[node.inputs[1]].astype(np.float32)
    return np.asarray(w - dequantized(whole, quant), np.float32)


class _Rewrite:
    """forms   by type, what a tensor of the float graph is called in it
    origin  the type that a tensor is made in
    whole   inputs and outputs that are int8
    """

    def __init__(self, graph: Graph, scheme: Scheme, boundary: str) -> None:
        self.graph, self.scheme, self.edit = graph, scheme, Edit(graph)
        self.forms: dict[DType, dict[str, str]] = {kind: {} for kind in _SUFFIX}
        self.origin: dict[str, DType] = {}
        ends = (*graph.inputs, *graph.outputs) if boundary == "int8" else ()
        self.whole = {name for name in ends if name in scheme.quants}
        for name in graph.inputs:
            self._make(name, DType.INT8 if name in self.whole else DType.FLOAT32)

    def _make(self, name: str, dtype: DType) -> str:
        """Adds a tensor of this type; returns its name."""
        self.origin[name] = dtype
        return self._named(name, dtype)

    def _named(self, name: str, dtype: DType) -> str:
        """Its own name, unless that is another form's: of a boundary, the user's."""
        plain = self.origin[name]
        if name in (*self.graph.inputs, *self.graph.outputs):
            plain = DType.INT8 if name in self.whole else DType.FLOAT32
        made = name
        if dtype is not plain:
            made = self.edit.fresh(f"{name}.{_SUFFIX[dtype]}")
        if dtype is DType.FLOAT32:
            self.edit.tensors[made] = replace(self.graph.tensor(name), name=made)
        else:
            self._typed(made, name, dtype, self.scheme.quant(name, dtype))
        self.forms[dtype][name] = made
        return made

    def _typed(self, made: str, name: str, dtype: DType, quant: Quant) -> None:
        tensor = self.graph.tensor(name)
        self.edit.tensors[made] = replace(tensor, name=made, dtype=dtype, quant=quant)

    def form(self, name: str, dtype: DType) -> str:
        """A tensor in a type, converted here if it has not been."""
        if name in self.graph.constants and dtype is DType.FLOAT32:
            return name
        if name not in self.forms[dtype]:
            if name in self.graph.constants:
                self.forms[dtype][name] = self._constant(name, dtype)
            else:
                source = self.forms[self.origin[name]][name]
                made = self._named(name, dtype)
                op = "dequantize" if dtype is DType.FLOAT32 else "quantize"
                self.edit.nodes.append(Node(op, made, (source,), (made,)))
        return self.forms[dtype][name]

    def _constant(self, name: str, dtype: DType) -> str:
        quant, value = self.scheme.quant(name, dtype), self.graph.constants[name]
        steps = np.rint(value.astype(np.float64) / quant.scale[0]) + quant.zero_point[0]
        whole = np.clip(steps, dtype.low, dtype.high).astype(dtype.numpy)
        return self.edit.constant(f"{name}.{dtype.value}", whole, quant)

    def keep(self, node: Node) -> None:
        """Keeps a node unchanged; values that are not float in an integer graph are
        converted, too."""
        inputs = tuple(self.form(n, DType.FLOAT32) if n else n for n in node.inputs)
        outputs = tuple(self._make(name, DType.FLOAT32) for name in node.outputs)
        self.edit.nodes.append(replace(node, inputs=inputs, outputs=outputs))

    def convert(self, node: Node) -> None:
        dtype, output = self.scheme.kind(node), node.output
        if node.op in WEIGHTED:
            inputs = self._weights(node, dtype)
        else:
            inputs = [self._fitting(node, name, dtype) for name in node.inputs]
        if node.op == "matmul":
            rule = "wide" if dtype is DType.INT16 else "even"
            node = node.with_attrs(rounding=rule)
        made = self._make(output, dtype)
        shares = SHARES[dtype]
        fixed = ("softmax",) if dtype is DType.INT8 else _CURVES
        if node.op in fixed and self.scheme.quant(output, dtype) != shares:
            # LiteRT's gives nothing else
            first = self.edit.fresh(f"{made}.shares")
            self._typed(first, output, dtype, shares)
            node = replace(node, inputs=tuple(inputs), outputs=(first,))
            self.edit.nodes.append(node)
            node, inputs = Node("quantize", made, (), ()), [first]
        node = replace(node, inputs=tuple(inputs), outputs=(made,))
        self.edit.nodes.append(node)

    def region(self, region: Region) -> None:
        """Several nodes as one of int16, called as the last of them."""
        x, last = self.form(region.source, DType.INT16), region.nodes[-1]
        made = self._make(region.output, DType.INT16)
        before = self.edit.tensors[x]
        if region.op == NORM:
            rows = [self.edit.constant(f"{made}.{name}", value)
                    for name, value in zip(("gamma", "beta"), region.constants,
                                           strict=False)]  # fmt: skip
        else:
            table = points(self.graph, region, before, self.edit.tensors[made])
            rows = [self.edit.constant(f"{made}.points", table)]
        clamp, whole = last.attrs.get("clamp"), made
        if region.op == NORM and clamp:
            whole = self.edit.fresh(f"{made}.unclamped")
            quant = self.edit.tensors[made].quant
            assert quant is not None
            self._typed(whole, region.output, DType.INT16, quant)
        node = Node(region.op, last.name, (x, *rows), (whole,), region.attrs)
        self.edit.nodes.append(node)
        if whole != made:
            clip = Node("clip", made, (whole,), (made,), {"clamp": clamp})
            self.edit.nodes.append(clip)

    def _fitting(self, node: Node, name: str, dtype: DType) -> str:
        """An operand; of what moves values, in the quantisation of its output."""
        if name not in moved(node):
            return name
        made = self.form(name, dtype)
        wanted = self.scheme.quant(node.output, dtype)
        if is_move(node, self.graph) and self.edit.tensors[made].quant != wanted:
            again = self.edit.fresh(f"{made}.requantised")
            self._typed(again, name, dtype, wanted)
            self.edit.nodes.append(Node("quantize", again, (made,), (again,)))
            return again
        return made

    def _weights(self, node: Node, dtype: DType) -> list[str]:
        """x, weights, bias: int32, or int64 for int16, whose steps are finer."""
        x = self.form(node.inputs[0], dtype)
        scale = self.edit.tensors[x].scale
        whole, quant = quantised_weights(node, self.graph, self.scheme)
        inputs = [x, self.edit.constant(f"{node.inputs[1]}.int8", whole, quant)]
        if len(node.inputs) > 2 and node.inputs[2]:
            kind = DType.INT32 if dtype is DType.INT8 else DType.INT64
            scales = np.asarray(quant.scale) * scale
            real = self.graph.constants[node.inputs[2]].astype(np.float64)
            steps = np.rint(real / scales).astype(kind.numpy)
            of = Quant(tuple(map(float, scales)), (0,) * len(scales), 0)
            name = f"{node.inputs[2]}.{kind.value}"
            inputs.append(self.edit.constant(name, steps, of))
        return inputs


def rewritten(
    graph: Graph, scheme: Scheme, boundary: str
) -> tuple[Graph, Mapping[str, str]]:
    """The quantised graph, and by float tensor the one that stands for it.

    boundary  "float": inputs and outputs are as they were; "int8": of int8 where
              they are read or made as integers
    """
    work = _Rewrite(graph, scheme, boundary)
    inside = {n.output for one in scheme.regions.values() for n in one.nodes}
    for node in graph.nodes:
        if node.output in scheme.regions:
            work.region(scheme.regions[node.output])
        elif node.output in inside:
            continue
        elif node.output in scheme.integers:
            work.convert(node)
        else:
            work.keep(node)
    for name in graph.outputs:
        if name not in graph.constants:
            work.form(name, DType.INT8 if name in work.whole else DType.FLOAT32)
    stands = {name: work.forms[kind][name] for name, kind in work.origin.items()}
    return work.edit.done(), stands
