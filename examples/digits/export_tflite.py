"""Writes the int8 network as .tflite with the flatbuffer builders of `tflite`.

NHWC, int8 in and out. Knows nothing of training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import flatbuffers
import numpy as np
import tflite
from quantised import Activation, Quantised

SHAPES = {
    "image": (1, 8, 8, 1),
    "conv": (1, 8, 8, 8),
    "depthwise": (1, 8, 8, 8),
    "pointwise": (1, 8, 8, 16),
    "pool": (1, 4, 4, 16),
    "flat": (1, 256),
    "scores": (1, 10),
}
TYPES = {
    "int8": tflite.TensorType.INT8,
    "int32": tflite.TensorType.INT32,
}
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RELU = tflite.ActivationFunctionType.RELU
CODES = (
    (tflite.BuiltinOperator.CONV_2D, 3),
    (tflite.BuiltinOperator.DEPTHWISE_CONV_2D, 3),
    (tflite.BuiltinOperator.MAX_POOL_2D, 2),
    (tflite.BuiltinOperator.RESHAPE, 1),
    (tflite.BuiltinOperator.FULLY_CONNECTED, 4),
)


class _File:
    """Tensors, buffers and operators of one model under construction."""

    def __init__(self) -> None:
        self.b = flatbuffers.Builder(16384)
        self.indices: dict[str, int] = {}
        self.tensors: list[int] = []
        self.operators: list[int] = []
        self.buffers = [self._buffer(b"")]

    def _buffer(self, data: bytes) -> int:
        if data:
            vector = self._bytes(data)
        tflite.BufferStart(self.b)
        if data:
            tflite.BufferAddData(self.b, vector)
        return tflite.BufferEnd(self.b)

    def _bytes(self, data: bytes) -> int:
        """A byte vector on a 16-byte boundary, as the schema wants."""
        self.b.StartVector(1, len(data), 16)
        first = self.b.head - len(data)
        self.b.head = first
        self.b.Bytes[first : first + len(data)] = data
        return self.b.EndVector()

    def offsets(self, items: Sequence[int]) -> int:
        self.b.StartVector(4, len(items), 4)
        for item in reversed(items):
            self.b.PrependUOffsetTRelative(item)
        return self.b.EndVector()

    def numbers(self, values: Sequence[int] | np.ndarray, dtype: str) -> int:
        return self.b.CreateNumpyVector(np.asarray(values, dtype))

    def _quant(self, scale: np.ndarray, zero_point: int, axis: int) -> int:
        scales = self.numbers(scale, "float32")
        zeros = self.numbers([zero_point] * len(scale), "int64")
        tflite.QuantizationParametersStart(self.b)
        tflite.QuantizationParametersAddScale(self.b, scales)
        tflite.QuantizationParametersAddZeroPoint(self.b, zeros)
        tflite.QuantizationParametersAddQuantizedDimension(self.b, axis)
        return tflite.QuantizationParametersEnd(self.b)

    def tensor(
        self, name: str, shape: Sequence[int], dtype: str, quant: int, buffer: int = 0
    ) -> None:
        dims, text = self.numbers(shape, "int32"), self.b.CreateString(name)
        tflite.TensorStart(self.b)
        tflite.TensorAddShape(self.b, dims)
        tflite.TensorAddType(self.b, TYPES[dtype])
        tflite.TensorAddBuffer(self.b, buffer)
        tflite.TensorAddName(self.b, text)
        if quant:
            tflite.TensorAddQuantization(self.b, quant)
        self.indices[name] = len(self.tensors)
        self.tensors.append(tflite.TensorEnd(self.b))

    def activation(self, name: str, act: Activation) -> None:
        quant = self._quant(np.array([act.scale]), act.zero_point, 0)
        self.tensor(name, SHAPES[name], "int8", quant)

    def constant(
        self, name: str, value: np.ndarray, scale: np.ndarray | None, axis: int = 0
    ) -> None:
        self.buffers.append(self._buffer(value.tobytes()))
        quant = 0 if scale is None else self._quant(scale, 0, axis)
        shape, dtype = value.shape, value.dtype.name
        self.tensor(name, shape, dtype, quant, len(self.buffers) - 1)

    def operator(
        self, code: int, inputs: Sequence[str], output: str, kind: int, options: int
    ) -> None:
        reads = self.numbers([self.indices[name] for name in inputs], "int32")
        makes = self.numbers([self.indices[output]], "int32")
        tflite.OperatorStart(self.b)
        tflite.OperatorAddOpcodeIndex(self.b, [c for c, _ in CODES].index(code))
        tflite.OperatorAddInputs(self.b, reads)
        tflite.OperatorAddOutputs(self.b, makes)
        tflite.OperatorAddBuiltinOptionsType(self.b, kind)
        tflite.OperatorAddBuiltinOptions(self.b, options)
        self.operators.append(tflite.OperatorEnd(self.b))

    def bytes(self) -> bytes:
        """The finished file."""
        subgraph = self._subgraph()
        codes = self.offsets([self._code(*code) for code in CODES])
        subgraphs, buffers = self.offsets([subgraph]), self.offsets(self.buffers)
        text = self.b.CreateString("digits, int8")
        tflite.ModelStart(self.b)
        tflite.ModelAddVersion(self.b, 3)
        tflite.ModelAddOperatorCodes(self.b, codes)
        tflite.ModelAddSubgraphs(self.b, subgraphs)
        tflite.ModelAddDescription(self.b, text)
        tflite.ModelAddBuffers(self.b, buffers)
        self.b.Finish(tflite.ModelEnd(self.b), b"TFL3")
        return bytes(self.b.Output())

    def _subgraph(self) -> int:
        tensors, operators = self.offsets(self.tensors), self.offsets(self.operators)
        inputs = self.numbers([self.indices["image"]], "int32")
        outputs = self.numbers([self.indices["scores"]], "int32")
        name = self.b.CreateString("main")
        tflite.SubGraphStart(self.b)
        tflite.SubGraphAddTensors(self.b, tensors)
        tflite.SubGraphAddInputs(self.b, inputs)
        tflite.SubGraphAddOutputs(self.b, outputs)
        tflite.SubGraphAddOperators(self.b, operators)
        tflite.SubGraphAddName(self.b, name)
        return tflite.SubGraphEnd(self.b)

    def _code(self, code: int, version: int) -> int:
        tflite.OperatorCodeStart(self.b)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(self.b, code)
        tflite.OperatorCodeAddBuiltinCode(self.b, code)
        tflite.OperatorCodeAddVersion(self.b, version)
        return tflite.OperatorCodeEnd(self.b)


def _conv_options(b: flatbuffers.Builder, padding: int) -> int:
    tflite.Conv2DOptionsStart(b)
    tflite.Conv2DOptionsAddPadding(b, padding)
    tflite.Conv2DOptionsAddStrideW(b, 1)
    tflite.Conv2DOptionsAddStrideH(b, 1)
    tflite.Conv2DOptionsAddFusedActivationFunction(b, RELU)
    return tflite.Conv2DOptionsEnd(b)


def _depthwise_options(b: flatbuffers.Builder) -> int:
    tflite.DepthwiseConv2DOptionsStart(b)
    tflite.DepthwiseConv2DOptionsAddPadding(b, SAME)
    tflite.DepthwiseConv2DOptionsAddStrideW(b, 1)
    tflite.DepthwiseConv2DOptionsAddStrideH(b, 1)
    tflite.DepthwiseConv2DOptionsAddDepthMultiplier(b, 1)
    tflite.DepthwiseConv2DOptionsAddFusedActivationFunction(b, RELU)
    return tflite.DepthwiseConv2DOptionsEnd(b)


def _pool_options(b: flatbuffers.Builder) -> int:
    tflite.Pool2DOptionsStart(b)
    tflite.Pool2DOptionsAddPadding(b, VALID)
    tflite.Pool2DOptionsAddStrideW(b, 2)
    tflite.Pool2DOptionsAddStrideH(b, 2)
    tflite.Pool2DOptionsAddFilterWidth(b, 2)
    tflite.Pool2DOptionsAddFilterHeight(b, 2)
    return tflite.Pool2DOptionsEnd(b)


def _empty(start: Callable[..., None], end: Callable[..., int]) -> Callable[..., int]:
    def options(b: flatbuffers.Builder) -> int:
        start(b)
        return end(b)

    return options


_reshape_options = _empty(tflite.ReshapeOptionsStart, tflite.ReshapeOptionsEnd)
_dense_options = _empty(
    tflite.FullyConnectedOptionsStart, tflite.FullyConnectedOptionsEnd
)


def _operators(f: _File) -> None:
    op, kind = tflite.BuiltinOperator, tflite.BuiltinOptions
    for layer, reads, padding in (
        ("conv", "image", SAME),
        ("depthwise", "conv", SAME),
        ("pointwise", "depthwise", VALID),
    ):
        inputs = (reads, f"{layer}_w", f"{layer}_b")
        if layer == "depthwise":
            options = _depthwise_options(f.b)
            code, which = op.DEPTHWISE_CONV_2D, kind.DepthwiseConv2DOptions
        else:
            options = _conv_options(f.b, padding)
            code, which = op.CONV_2D, kind.Conv2DOptions
        f.operator(code, inputs, layer, which, options)
    pool, reshape = _pool_options(f.b), _reshape_options(f.b)
    dense = _dense_options(f.b)
    f.operator(op.MAX_POOL_2D, ("pointwise",), "pool", kind.Pool2DOptions, pool)
    f.operator(op.RESHAPE, ("pool", "shape"), "flat", kind.ReshapeOptions, reshape)
    inputs = ("flat", "dense_w", "dense_b")
    f.operator(op.FULLY_CONNECTED, inputs, "scores", kind.FullyConnectedOptions, dense)


def _kernels(layer: str, w: np.ndarray) -> tuple[np.ndarray, int]:
    """Weights in the order of .tflite, and the axis of the output channel."""
    match layer:
        case "conv":
            return w.transpose(3, 0, 1, 2), 0
        case "depthwise":
            return w[None], 3
        case "pointwise":
            return w.T[:, None, None, :], 0
        case _:
            return w.T, 0


def save_int8(path: str, model: Quantised) -> None:
    """Writes the model; the same bytes for the same values."""
    f = _File()
    for name, act in model.activations.items():
        f.activation(name, act)
    for layer, facts in model.layers.items():
        w, axis = _kernels(layer, facts.w)
        f.constant(f"{layer}_w", np.ascontiguousarray(w), facts.scale, axis)
        f.constant(f"{layer}_b", facts.bias, facts.bias_scale)
    f.constant("shape", np.array([1, 256], np.int32), None)
    _operators(f)
    with open(path, "wb") as file:
        file.write(f.bytes())
