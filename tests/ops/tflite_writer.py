"""Writes small .tflite files for tests: any tensors and operators, or a Graph.

Knows the file format, and how a Graph of the tests maps to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from tests.ops.tflite_tables import (
    NEWER_TYPES,
    Blocks,
    Flat,
    Sparse,
    buffer,
    ints,
    offsets,
    quantisation,
    signature,
    sparsity,
    table,
)


class Inexpressible(Exception):
    """The format has no such operator."""


@dataclass(frozen=True)
class FileTensor:
    """A tensor as the file will have it; `data` None where it is computed."""

    name: str
    shape: tuple[int, ...]
    kind: str = "FLOAT32"
    data: Array | None = None
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    axis: int = 0
    signature: tuple[int, ...] = ()
    variable: bool = False
    sparse: Sparse | None = None
    blocks: Blocks | None = None


@dataclass(frozen=True)
class FileOperator:
    """An operator; `options` is the name of a table and its fields."""

    code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    intermediates: tuple[int, ...] = ()
    custom: bytes = b""
    late: bool = False  # its options are in the second union


# of which LiteRT has no first version
_VERSIONS = {"BROADCAST_TO": 2}


def write(
    tensors: Sequence[FileTensor],
    operators: Sequence[FileOperator],
    inputs: Sequence[int],
    outputs: Sequence[int],
    subgraphs: int = 1,
    called: Sequence[tuple[Any, ...]] = (),
    old_codes: bool = True,
    signatures: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of a model of one subgraph (or of several equal ones).

    called  tensors and operators of further subgraphs, and their inputs and outputs
    old_codes  operators' numbers stand in the field of old, too
    signatures  name -> number of a subgraph
    """
    b = flatbuffers.Builder(1 << 12)
    every = [*operators, *(o for parts in called for o in parts[1])]
    codes = sorted({o.code for o in every})
    buffers = [buffer(b, None)]

    def subgraph(
        tensors: Sequence[FileTensor],
        operators: Sequence[FileOperator],
        inputs: Sequence[int] = (),
        outputs: Sequence[int] = (),
    ) -> int:
        made = []
        for tensor in tensors:
            at = 0
            if tensor.data is not None:
                at = len(buffers)
                buffers.append(buffer(b, tensor.data))
            made.append(_tensor(b, tensor, at))
        return table(
            b, "SubGraph",
            Tensors=offsets(b, made),
            Inputs=ints(b, inputs),
            Outputs=ints(b, outputs),
            Operators=offsets(b, [_operator(b, o, codes) for o in operators]),
        )  # fmt: skip

    graph = subgraph(tensors, operators, inputs, outputs)
    others = [subgraph(*parts) for parts in called]
    parts_of = [(tensors, operators, inputs, outputs), *called]
    signed = [
        signature(b, name, number, parts_of[number])
        for name, number in (signatures or {}).items()
    ]
    model = table(
        b, "Model",
        Version=3,
        OperatorCodes=offsets(b, [_code(b, c, old_codes) for c in codes]),
        Subgraphs=offsets(b, [*[graph] * subgraphs, *others]),
        Buffers=offsets(b, buffers),
        **({"SignatureDefs": offsets(b, signed)} if signed else {}),
    )  # fmt: skip
    b.Finish(model, b"TFL3")
    return bytes(b.Output())


def _tensor(b: Flat, tensor: FileTensor, buffer: int) -> int:
    fields: dict[str, Any] = {"Name": b.CreateString(tensor.name)}
    fields["Shape"] = ints(b, tensor.shape)
    if tensor.signature:
        fields["ShapeSignature"] = ints(b, tensor.signature)
    if tensor.scale or tensor.blocks:
        fields["Quantization"] = quantisation(b, tensor)
    if tensor.sparse:
        fields["Sparsity"] = sparsity(b, tensor.sparse)
    if tensor.variable:
        fields["IsVariable"] = True
    kind = NEWER_TYPES.get(tensor.kind) or getattr(tflite.TensorType, tensor.kind)
    return table(b, "Tensor", Type=kind, Buffer=buffer, **fields)


def _operator(b: Flat, operator: FileOperator, codes: list[str]) -> int:
    fields: dict[str, Any] = {
        "OpcodeIndex": codes.index(operator.code),
        "Inputs": ints(b, operator.inputs),
        "Outputs": ints(b, operator.outputs),
    }
    if operator.intermediates:
        fields["Intermediates"] = ints(b, operator.intermediates)
    if operator.table:
        options = {
            key: ints(b, value)
            if isinstance(value, tuple)
            else b.CreateString(value)
            if isinstance(value, str)
            else b.CreateByteVector(value)
            if isinstance(value, bytes)
            else value
            for key, value in operator.options.items()
        }
        field, union = "BuiltinOptions", tflite.BuiltinOptions
        if operator.late:
            field, union = "BuiltinOptions2", tflite.BuiltinOptions2
        fields[field] = table(b, operator.table, **options)
        fields[f"{field}Type"] = getattr(union, operator.table)
    if operator.custom:
        fields["CustomOptions"] = b.CreateByteVector(operator.custom)
    return table(b, "Operator", **fields)


def _code(b: Flat, code: str, old: bool) -> int:
    known = tflite.BuiltinOperator
    number = getattr(known, code, known.CUSTOM)
    custom = {} if hasattr(known, code) else {"CustomCode": b.CreateString(code)}
    return table(
        b, "OperatorCode", DeprecatedBuiltinCode=min(number, 127) if old else 0,
        BuiltinCode=number, Version=_VERSIONS.get(code, 1), **custom,
    )  # fmt: skip


def to_tflite(graph: Graph) -> bytes:
    """A Graph as a file.

    Errors  Inexpressible for what the format cannot say
    """
    tensors = [_file_tensor(graph, t) for t in graph.tensors.values()]
    index = {name: i for i, name in enumerate(graph.tensors)}
    operators = []
    for node in graph.nodes:
        code, table, options, extra = _OPERATORS[node.op](node, graph)
        inputs = [index[n] for n in node.inputs if n]
        for values in extra:
            inputs.append(len(tensors))
            name, kind = f"{node.name}_{len(tensors)}", values.dtype.name.upper()
            tensors.append(FileTensor(name, values.shape, kind, values))
        outputs = tuple(index[n] for n in node.outputs)
        operators.append(FileOperator(code, tuple(inputs), outputs, table, options))
    return write(
        tensors,
        operators,
        [index[n] for n in graph.inputs],
        [index[n] for n in graph.outputs],
    )


def _file_tensor(graph: Graph, tensor: Tensor) -> FileTensor:
    data = graph.constants.get(tensor.name)
    shape, axis = tensor.shape, 0
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    if tensor.quant is not None:
        scale, axis = tensor.quant.scale, tensor.quant.axis or 0
        zero = tensor.quant.zero_point
        zero = zero * len(scale) if len(zero) == 1 else zero
    readers = [n for n in graph.nodes if tensor.name in n.inputs[1:2]]
    if data is not None and any(n.op == "depthwise_conv2d" for n in readers):
        shape, data = (1, *shape), data[None]
        axis += 1 if len(scale) > 1 else 0
    kind = tensor.dtype.value.upper()
    return FileTensor(tensor.name, shape, kind, data, scale, zero, axis)


Made = tuple[str, str, dict[str, Any], list[Array]]
_CLAMPS = {(None, None): 0, (0.0, None): 1, (-1.0, 1.0): 2, (0.0, 6.0): 3}


def _fused(node: Node) -> int:
    clamp = node.attrs.get("clamp", (None, None))
    if clamp not in _CLAMPS:
        raise Inexpressible(f"clamp {clamp}")
    return _CLAMPS[clamp]


def _window(node: Node, graph: Graph, kernel: tuple[int, ...]) -> dict[str, Any]:
    strides, pads = node.attrs["strides"], node.attrs["pads"]
    dilations = node.attrs.get("dilations", (1, 1))
    x = graph.tensor(node.inputs[0]).shape
    same = []
    for i in (0, 1):
        span = (kernel[i] - 1) * dilations[i] + 1
        outs = math.ceil(x[i + 1] / strides[i])
        total = max((outs - 1) * strides[i] + span - x[i + 1], 0)
        same.append((total // 2, total - total // 2))
    if pads == (same[0][0], same[1][0], same[0][1], same[1][1]):
        padding = 0
    elif any(pads):
        raise Inexpressible(f"pads {pads}")
    else:
        padding = 1
    return {"Padding": padding, "StrideH": strides[0], "StrideW": strides[1]}


def _bias_type(node: Node, graph: Graph) -> dict[str, Any]:
    """LiteRT reads an int32 bias of an int16 layer as int64 unless it is told."""
    kinds = [graph.tensor(n).dtype.value for n in node.inputs[2:] if n]
    if "int32" not in kinds:
        return {}
    return {"QuantizedBiasType": tflite.TensorType.INT32}


def _conv(node: Node, graph: Graph) -> Made:
    kernel = graph.tensor(node.inputs[1]).shape[1:3]
    options = _window(node, graph, kernel) | _bias_type(node, graph)
    options |= dict(
        zip(("DilationHFactor", "DilationWFactor"), node.attrs["dilations"],
            strict=True), FusedActivationFunction=_fused(node),
    )  # fmt: skip
    return "CONV_2D", "Conv2DOptions", options, []


def _depthwise(node: Node, graph: Graph) -> Made:
    w, x = graph.tensor(node.inputs[1]).shape, graph.tensor(node.inputs[0]).shape
    options = _window(node, graph, w[:2])
    options |= dict(
        zip(("DilationHFactor", "DilationWFactor"), node.attrs["dilations"],
            strict=True), FusedActivationFunction=_fused(node),
        DepthMultiplier=w[2] // x[3],
    )  # fmt: skip
    return "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options, []


def _dense(node: Node, graph: Graph) -> Made:
    keep = len(graph.tensor(node.inputs[0]).shape) != 2
    options = {"FusedActivationFunction": _fused(node), "KeepNumDims": keep}
    options |= _bias_type(node, graph)
    return "FULLY_CONNECTED", "FullyConnectedOptions", options, []


def _pool(node: Node, graph: Graph) -> Made:
    if node.attrs.get("count_include_pad"):
        raise Inexpressible("count_include_pad")
    kernel = node.attrs["kernel"]
    options = _window(node, graph, kernel)
    options |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    options["FusedActivationFunction"] = _fused(node)
    code = {"avg_pool2d": "AVERAGE_POOL_2D", "max_pool2d": "MAX_POOL_2D"}[node.op]
    return code, "Pool2DOptions", options, []


def _binary(code: str, table: str) -> Callable[[Node, Graph], Made]:
    def made(node: Node, graph: Graph) -> Made:
        options: dict[str, Any] = {"FusedActivationFunction": _fused(node)}
        if code != "MUL" and graph.tensor(node.output).dtype is DType.INT16:
            options["PotScaleInt16"] = bool(node.attrs.get("exact"))
        return code, table, options, []

    return made


def _plain(code: str) -> Callable[[Node, Graph], Made]:
    return lambda node, graph: (code, "", {}, [])


def _clip(node: Node, graph: Graph) -> Made:
    codes = {1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}
    kind = _fused(node)
    if kind not in codes:
        raise Inexpressible("no clamp")
    return codes[kind], "", {}, []


def _softmax(node: Node, graph: Graph) -> Made:
    if node.attrs["axis"] != len(graph.tensor(node.inputs[0]).shape) - 1:
        raise Inexpressible("softmax over another axis than the last")
    return "SOFTMAX", "SoftmaxOptions", {"Beta": node.attrs["beta"]}, []


def _int32(values: Any) -> Array:
    return np.asarray(values, np.int32)


def _pad(node: Node, graph: Graph) -> Made:
    if node.attrs.get("value", 0.0) != 0.0:
        raise Inexpressible("a padding value in a tensor of its own")
    return "PAD", "PadOptions", {}, [_int32(node.attrs["pads"])]


def _slice(node: Node, graph: Graph) -> Made:
    begin, end, strides = (node.attrs[k] for k in ("begin", "end", "strides"))
    mask = sum(1 << i for i, e in enumerate(end) if e < 0)
    extra = [_int32(begin), _int32(end), _int32(strides)]
    return "STRIDED_SLICE", "StridedSliceOptions", {"EndMask": mask}, extra


def _reshape(node: Node, graph: Graph) -> Made:
    shape = graph.tensor(node.output).shape
    return "RESHAPE", "ReshapeOptions", {"NewShape": shape}, [_int32(shape)]


def _resize(node: Node, graph: Graph) -> Made:
    a = node.attrs
    options = {"AlignCorners": a["corners"], "HalfPixelCenters": a["half"]}
    return "RESIZE_BILINEAR", "ResizeBilinearOptions", options, [_int32(a["sizes"])]


_OPERATORS: dict[str, Callable[[Node, Graph], Made]] = {
    "conv2d": _conv,
    "depthwise_conv2d": _depthwise,
    "dense": _dense,
    "add": _binary("ADD", "AddOptions"),
    "sub": _binary("SUB", "SubOptions"),
    "mul": _binary("MUL", "MulOptions"),
    "prelu": _plain("PRELU"),
    "avg_pool2d": _pool,
    "max_pool2d": _pool,
    "mean": lambda node, graph: (
        "MEAN", "ReducerOptions", {"KeepDims": node.attrs["keepdims"]},
        [_int32(node.attrs["axes"])],
    ),
    "resize_bilinear": _resize,
    "softmax": _softmax,
    "logistic": _plain("LOGISTIC"),
    "tanh": _plain("TANH"),
    "clip": _clip,
    "leaky_relu": lambda node, graph: (
        "LEAKY_RELU", "LeakyReluOptions", {"Alpha": node.attrs["alpha"]}, []
    ),
    "pad": _pad,
    "concat": lambda node, graph: (
        "CONCATENATION", "ConcatenationOptions", {"Axis": node.attrs["axis"]}, []
    ),
    "reshape": _reshape,
    "transpose": lambda node, graph: (
        "TRANSPOSE", "TransposeOptions", {}, [_int32(node.attrs["perm"])]
    ),
    "slice": _slice,
    "quantize": _plain("QUANTIZE"),
    "dequantize": _plain("DEQUANTIZE"),
}  # fmt: skip
