"""Writes the network as ONNX: float, and int8 as QuantizeLinear/DequantizeLinear
pairs. NCHW. Knows nothing of training.
"""

from __future__ import annotations

import numpy as np
import onnx
from network import CHANNELS, Parameters
from onnx import helper, numpy_helper
from quantised import Quantised, Weights

OPSET = 13


def flat_order(w: np.ndarray) -> np.ndarray:
    """Dense weights [O, C*H*W] of [H*W*C, O]: ONNX flattens channels first."""
    return w.reshape(4, 4, -1, w.shape[-1]).transpose(3, 2, 0, 1).reshape(10, -1)


def kernels(layer: str, w: np.ndarray) -> np.ndarray:
    """The weights of a layer in ONNX's order, output channel first."""
    match layer:
        case "conv":
            return w.transpose(3, 2, 0, 1)
        case "depthwise":
            return w.transpose(2, 0, 1)[:, None]
        case "pointwise":
            return w.T[:, :, None, None]
        case _:
            return flat_order(w)


def layer_node(layer: str, inputs: list[str], output: str) -> onnx.NodeProto:
    if layer == "dense":
        return helper.make_node("Gemm", inputs, [output], name=layer, transB=1)
    size = 1 if layer == "pointwise" else 3
    return helper.make_node(
        "Conv",
        inputs,
        [output],
        name=layer,
        kernel_shape=[size, size],
        pads=[size // 2] * 4,
        group=CHANNELS if layer == "depthwise" else 1,
    )


def pool_node(reads: str, pooled: str) -> onnx.NodeProto:
    return helper.make_node(
        "MaxPool", [reads], [pooled], name="pool", kernel_shape=[2, 2], strides=[2, 2]
    )


def save(
    path: str,
    nodes: list[onnx.NodeProto],
    constants: dict[str, np.ndarray],
) -> None:
    """Checks the model and writes it; the same bytes for the same values."""
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def save_float(path: str, p: Parameters) -> None:
    constants: dict[str, np.ndarray] = {}
    nodes = []
    reads = "image"
    for layer in ("conv", "depthwise", "pointwise", "dense"):
        constants[f"{layer}_w"] = np.ascontiguousarray(kernels(layer, p[f"{layer}_w"]))
        constants[f"{layer}_b"] = p[f"{layer}_b"]
        if layer == "dense":
            nodes.append(pool_node(reads, "pool"))
            nodes.append(helper.make_node("Flatten", ["pool"], ["flat"], name="flat"))
            inputs, output = ["flat", "dense_w", "dense_b"], "scores"
            nodes.append(layer_node(layer, inputs, output))
            break
        inputs, sums = [reads, f"{layer}_w", f"{layer}_b"], f"{layer}_sums"
        nodes.append(layer_node(layer, inputs, sums))
        relu = helper.make_node("Relu", [sums], [layer], name=f"{layer}_relu")
        nodes.append(relu)
        reads = layer
    save(path, nodes, constants)


class _Pairs:
    """The nodes and constants of the int8 form, in the order of computation."""

    def __init__(self, model: Quantised) -> None:
        self.model = model
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def pair(self, name: str, source: str, output: str = "") -> str:
        """Quantise `source` as activation `name` and back; the float tensor."""
        act = self.model.activations[name]
        self.constants[f"{name}_scale"] = np.array(act.scale, np.float32)
        self.constants[f"{name}_zero"] = np.array(act.zero_point, np.int8)
        facts = [f"{name}_scale", f"{name}_zero"]
        output = output or f"{name}_real"
        self._add("QuantizeLinear", [source, *facts], f"{name}_int8", f"{name}_q")
        self._add("DequantizeLinear", [f"{name}_int8", *facts], output, f"{name}_dq")
        return output

    def constant(self, name: str, value: np.ndarray, scale: np.ndarray) -> str:
        """A quantised constant behind DequantizeLinear; the float tensor."""
        scales = scale if scale.size > 1 else scale[0]
        self.constants[name] = np.ascontiguousarray(value)
        self.constants[f"{name}_scale"] = np.array(scales, np.float32)
        self.constants[f"{name}_zero"] = np.zeros_like(scales, value.dtype)
        inputs = [name, f"{name}_scale", f"{name}_zero"]
        axis = {"axis": 0} if scale.size > 1 else {}
        self._add("DequantizeLinear", inputs, f"{name}_real", f"{name}_dq", **axis)
        return f"{name}_real"

    def layer(self, layer: str, reads: str) -> str:
        """Convolution or dense layer of float tensors; the float tensor of sums."""
        facts: Weights = self.model.layers[layer]
        w = self.constant(f"{layer}_w", kernels(layer, facts.w), facts.scale)
        b = self.constant(f"{layer}_b", facts.bias, facts.bias_scale)
        self.nodes.append(layer_node(layer, [reads, w, b], f"{layer}_sums"))
        return f"{layer}_sums"

    def _add(
        self, op: str, inputs: list[str], output: str, name: str, **attrs: int
    ) -> None:
        self.nodes.append(helper.make_node(op, inputs, [output], name=name, **attrs))


def save_int8(path: str, model: Quantised) -> None:
    made = _Pairs(model)
    reads = made.pair("image", "image")
    for layer in ("conv", "depthwise", "pointwise"):
        sums = made.layer(layer, reads)
        relu = helper.make_node("Relu", [sums], [f"{layer}_relu"], name=f"{layer}_relu")
        made.nodes.append(relu)
        reads = made.pair(layer, f"{layer}_relu")
    made.nodes.append(pool_node(reads, "pool_sums"))
    reads = made.pair("pool", "pool_sums")
    flatten = helper.make_node("Flatten", [reads], ["flat_sums"], name="flat")
    made.nodes.append(flatten)
    reads = made.pair("flat", "flat_sums")
    made.pair("scores", made.layer("dense", reads), "scores")
    save(path, made.nodes, made.constants)
