"""One layer in two spellings: as a .tflite file and as an ONNX file, of float32, or of
int8 with the same scales. Knows both formats, no operator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pybuild.dtype import Array
from tests.ops.tflite_writer import FileOperator, FileTensor, write

Shape = tuple[int, ...]
Scale = tuple[float, int]  # a scale, a zero point
USUAL: Scale = (0.1, -4)
IMAGE: Shape = (1, 12, 10, 16)
KINDS = {"float32": "FLOAT32", "int32": "INT32"}


def first(shape: Shape) -> Shape:
    """The shape of an image with its channels first."""
    return (shape[0], shape[3], shape[1], shape[2]) if len(shape) == 4 else shape


def rows(weights: Array, axis: int) -> tuple[Array, Array]:
    """(weights as int8, their scale by output channel)"""
    lines = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    scales = (np.abs(lines).max(1) / 127).astype(np.float32)
    shape = [1] * weights.ndim
    shape[axis] = -1
    return np.rint(weights / scales.reshape(shape)).astype(np.int8), scales


def whole(values: Array) -> tuple[Array, np.float32]:
    """(values as int8, their scale)"""
    scale = np.float32(np.abs(values).max() / 127)
    return np.rint(values / scale).astype(np.int8), scale


@dataclass
class Tflite:
    """A .tflite file that is being written; its tensors are numbers.

    image  the shape of what its layers of images read
    """

    int8: bool
    image: Shape = IMAGE
    tensors: list[FileTensor] = field(default_factory=list)
    operators: list[FileOperator] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)

    def _tensor(self, shape: Shape, kind: str, data: Array | None = None,
                scales: Any = (), axis: int = 0, zero: int = 0,
                name: str = "") -> int:  # fmt: skip
        scale = tuple(map(float, np.atleast_1d(scales)))
        made = FileTensor(
            name or f"t{len(self.tensors)}", shape, kind, data, scale,
            (zero,) * len(scale), axis,
        )  # fmt: skip
        self.tensors.append(made)
        return len(self.tensors) - 1

    def computed(self, shape: Shape, scale: Scale = USUAL, name: str = "") -> int:
        if not self.int8:
            return self._tensor(shape, "FLOAT32", name=name)
        return self._tensor(shape, "INT8", None, scale[0], 0, scale[1], name)

    def input(self, shape: Shape) -> int:
        self.inputs.append(self.computed(shape, name=f"x{len(self.inputs)}"))
        return self.inputs[-1]

    def known(self, value: Array) -> int:
        """A constant; numbers are int8 in a file of int8."""
        if not self.int8 or value.dtype != np.float32:
            return self._tensor(value.shape, KINDS[value.dtype.name], value)
        data, scale = whole(value)
        return self._tensor(value.shape, "INT8", data, scale)

    def op(self, code: str, reads: list[int], shape: Shape, table: str = "",
           scale: Scale = USUAL, **options: Any) -> int:  # fmt: skip
        made = self.computed(shape, scale)
        known = {
            "".join(part.capitalize() for part in key.split("_")): value
            for key, value in options.items()
        }
        self.operators.append(FileOperator(code, tuple(reads), (made,), table, known))
        return made

    def weighted(self, weights: Array, axis: int, bias: Array) -> list[int]:
        """The weights and the bias of a layer."""
        if not self.int8:
            return [self.known(weights), self.known(bias)]
        data, scales = rows(weights, axis)
        steps = scales * np.float32(USUAL[0])
        held = np.rint(bias / steps).astype(np.int32)
        return [
            self._tensor(weights.shape, "INT8", data, scales, axis),
            self._tensor(bias.shape, "INT32", held, steps),
        ]

    def file(self, output: int) -> bytes:
        return write(self.tensors, self.operators, self.inputs, [output])


@dataclass
class Onnx:
    """An ONNX file that is being written, of int8 between Q and DQ nodes; its tensors
    are names, its images have their channels first."""

    int8: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    held: dict[str, Array] = field(default_factory=dict)
    inputs: dict[str, Shape] = field(default_factory=dict)

    def node(self, kind: str, reads: list[str], **attrs: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, reads, [name], **attrs))
        return name

    def plain(self, value: Any) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(value)
        return name

    def through(self, x: str, scale: Scale = USUAL) -> str:
        """A tensor as its integers have it."""
        if not self.int8:
            return x
        given = [self.plain(np.float32(scale[0])), self.plain(np.int8(scale[1]))]
        integers = self.node("QuantizeLinear", [x, *given])
        return self.node("DequantizeLinear", [integers, *given])

    def input(self, shape: Shape) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = first(shape)
        return self.through(name)

    def _of(self, data: Array, scales: Array, axis: int) -> str:
        zeros = self.plain(np.zeros(scales.shape, data.dtype))
        given = [self.plain(data), self.plain(scales), zeros]
        return self.node("DequantizeLinear", given, axis=axis)

    def known(self, value: Array) -> str:
        if not self.int8 or value.dtype != np.float32:
            return self.plain(value)
        return self._of(*whole(value), 0)

    def op(self, kind: str, reads: list[str], scale: Scale = USUAL,
           **attrs: Any) -> str:  # fmt: skip
        return self.through(self.node(kind, reads, **attrs), scale)

    def weighted(self, weights: Array, axis: int, bias: Array) -> list[str]:
        if not self.int8:
            return [self.plain(weights), self.plain(bias)]
        data, scales = rows(weights, axis)
        steps = scales * np.float32(USUAL[0])
        held = np.rint(bias / steps).astype(np.int32)
        return [self._of(data, scales, axis), self._of(held, steps, 0)]

    def file(self, output: str) -> bytes:
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "g",
            [info(n, TensorProto.FLOAT, s) for n, s in self.inputs.items()],
            [info(output, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(v, n) for n, v in self.held.items()],
        )  # fmt: skip
        opset = [helper.make_opsetid("", 20)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=9)
        data: bytes = onnx.shape_inference.infer_shapes(model).SerializeToString()
        return data
