"""Computes in float32 what a file has in float16, as ONNX Runtime does on a CPU: values
are rounded where they enter or leave the model and where the file casts them.

For example x (float16) -> Conv -> Relu -> y (float16) becomes Cast to float32, Conv,
Relu, Cast to float16. The weights are float32 that float16 holds exactly, so kernels
keep two bytes of each in flash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.onnx.reader.lift import array_of
from pybuild.frontends.onnx.reader.op import Boundary
from pybuild.frontends.onnx.reader.order import bodies

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

_FLOAT, _HALF = 1, 10  # of onnx.TensorProto
# attributes that name the element type of a result or of a sum
_KINDS = ("dtype", "output_dtype", "output_datatype", "softmax_precision", "stash_type")


def widen(
    model: ModelProto, large: dict[str, Array], told: dict[str, Boundary]
) -> tuple[dict[str, Array], dict[str, Boundary]]:
    """Make the model's float16 nodes float32. A model with BitCast stays as it is: the
    bits of float16 may matter.

    large  values of constants that the model names as inputs
    told   types of intermediate tensors
    Returns  both for the model in float32
    """
    graph = model.graph
    parts = list(_graphs(graph))
    if any(node.op_type == "BitCast" for part in parts for node in part.node):
        return large, told
    halves = {name for name, one in told.items() if one.dtype == "float16"}
    halves |= {v.name for v in (*graph.input, *graph.output) if _is_half(v.type)}
    halves |= {
        t.name for part in parts for t in part.initializer if t.data_type == _HALF
    }
    constants = {*large, *(tensor.name for tensor in graph.initializer)}
    inputs = [v.name for v in graph.input if _is_half(v.type)]
    inputs = [name for name in inputs if name not in constants]
    outputs = [v.name for v in graph.output if _is_half(v.type)]
    outputs = [name for name in outputs if name not in inputs]
    inner = _inner_names(parts, (*inputs, *outputs))
    for part in reversed(parts):  # before the node around it is written anew
        _widen(part, halves, inner)
        if part is not graph:
            for value in (*part.input, *part.output, *part.value_info):
                _widen_type(value.type)
    first = [_cast(name, inner[name], _FLOAT) for name in inputs]
    last = [_cast(inner[name], name, _HALF) for name in outputs]
    body = [*first, *graph.node, *last]
    del graph.node[:]
    graph.node.extend(body)
    wide = {inner.get(name, name): _as_float32(v) for name, v in large.items()}
    return wide, {inner.get(n, n): _wide_type(one) for n, one in told.items()}


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and the graphs inside its nodes."""
    yield graph
    for inner in bodies(graph.node):
        yield from _graphs(inner)


def _is_half(kind: TypeProto) -> bool:
    return bool(kind.tensor_type.elem_type == _HALF)


def _inner_names(parts: list[GraphProto], names: tuple[str, ...]) -> Mapping[str, str]:
    """Return an unused name for the float32 values of each tensor."""
    taken = {
        name
        for part in parts
        for node in part.node
        for name in (*node.input, *node.output)
    }
    inner = {}
    for name in names:
        made = f"{name}.float32"
        while made in taken:
            made += "_"
        taken.add(made)
        inner[name] = made
    return inner


def _widen(part: GraphProto, halves: set[str], inner: Mapping[str, str]) -> None:
    """Make the constants and nodes of one graph float32."""
    for tensor in part.initializer:
        _widen_tensor(tensor)
        tensor.name = inner.get(tensor.name, tensor.name)
    nodes: list[NodeProto] = []
    for node in part.node:
        to_half = node.op_type == "CastLike" and not halves.isdisjoint(node.input[1:])
        for attribute in node.attribute:
            _widen_tensor(attribute.t)
            if attribute.name in _KINDS and attribute.i == _HALF:
                attribute.i = _FLOAT
            if node.op_type == "Cast" and attribute.name == "to":
                to_half = attribute.i == _HALF
        for names in (node.input, node.output):
            names[:] = [inner.get(name, name) for name in names]
        whole = node.input and node.output  # else it is refused by what reads it
        nodes += _rounded(node) if to_half and whole else [node]
    del part.node[:]
    part.node.extend(nodes)


def _rounded(node: NodeProto) -> list[NodeProto]:
    """Return a cast to float16 whose result is float32."""
    name = node.output[0]
    half = f"{name}.float16"
    return [_cast(node.input[0], half, _HALF), _cast(half, name, _FLOAT)]


def _cast(x: str, y: str, to: int) -> NodeProto:
    from onnx import helper

    return helper.make_node("Cast", [x], [y], name=y, to=to)


def _widen_tensor(tensor: TensorProto) -> None:
    """Make a constant float32. One whose bytes do not fit its shape stays as it is, to
    be refused by what reads it."""
    from onnx import numpy_helper

    if tensor.data_type != _HALF:
        return
    try:
        values = array_of(tensor)
    except (ValueError, TypeError, OverflowError, MemoryError):
        return
    tensor.CopyFrom(numpy_helper.from_array(_as_float32(values), tensor.name))


def _as_float32(values: Array) -> Array:
    return values.astype(np.float32) if values.dtype == np.float16 else values


def _widen_type(kind: TypeProto) -> None:
    """Make a type of tensors, or of lists or options of them, float32."""
    match kind.WhichOneof("value"):
        case "tensor_type":
            if _is_half(kind):
                kind.tensor_type.elem_type = _FLOAT
        case "sequence_type":
            _widen_type(kind.sequence_type.elem_type)
        case "optional_type":
            _widen_type(kind.optional_type.elem_type)


def _wide_type(told: Boundary) -> Boundary:
    return replace(told, dtype="float32") if told.dtype == "float16" else told
