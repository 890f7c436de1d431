"""Small nets, one for each operator that onnxruntime.quantization knows, and what its
quantisers make of them.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

F = np.float32
Spec = tuple[str, list[str], list[str], dict[str, Any]]


def weights(*shape: int) -> np.ndarray:
    chance = np.random.default_rng(sum(shape))
    return (chance.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(F)


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


def conv(x: str, w: str, y: str, **attrs: Any) -> Spec:
    return ("Conv", [x, w], [y], attrs)


def one(kind: str, more: str = "", **attrs: Any) -> list[Spec]:
    """b = kind(a, more...)"""
    return [(kind, ["a", *more.split()], ["b"], attrs)]


def between(
    mids: list[Spec], channels: int = 8, after: bool = True, **more: Any
) -> tuple[list[Spec], dict[str, np.ndarray], tuple[int, ...]]:
    """A convolution to `a` [1,8,8,8], what is tried, and of its `b` a convolution."""
    nodes = [conv("x", "w", "a", pads=[1] * 4), *mids]
    constants = {"w": weights(8, 4, 3, 3), **more}
    if after:
        nodes.append(conv("b", "last", "y"))
        constants["last"] = weights(6, channels, 1, 1)
    return nodes, constants, (1, 4, 8, 8)


def layers(
    kind: str, first: tuple[int, ...], second: tuple[int, ...], size: int, **attrs: Any
) -> tuple[list[Spec], dict[str, np.ndarray], tuple[int, ...]]:
    """Two convolutions of one or two axes, the second as asked for, and a last one."""
    rank = len(first) - 2
    nodes = [conv("x", "w", "a"), (kind, ["a", "v"], ["b"], attrs)]
    outs = second[1] * attrs["group"] if kind == "ConvTranspose" else second[0]
    nodes.append(conv("b", "last", "y"))
    constants = {"w": weights(*first), "v": weights(*second)}
    constants["last"] = weights(3, outs, *[1] * rank)
    return nodes, constants, (1, first[1], *[size] * rank)


_TWICE = np.asarray([1, 1, 2, 2], F)
_PADS = ints(0, 0, 1, 1, 0, 0, 1, 2)
_NEAREST = {
    "mode": "nearest", "nearest_mode": "floor",
    "coordinate_transformation_mode": "asymmetric",
}  # fmt: skip
_H = 6

# name: nodes, constants, shape of x
NETS: dict[str, Any] = {
    "Relu": between(one("Relu")),
    "MaxPool": between(one("MaxPool", kernel_shape=[2, 2], strides=[2, 2])),
    "AveragePool": between(one("AveragePool", kernel_shape=[2, 2], strides=[2, 2])),
    "GlobalAveragePool": between(one("GlobalAveragePool")),
    "Resize": between([("Resize", ["a", "", "s"], ["b"], _NEAREST)], s=_TWICE),
    "Transpose": between(one("Transpose", perm=[0, 2, 1, 3])),
    "Reshape": between(one("Reshape", "s"), 4, s=ints(1, 4, 16, 8)),
    "Slice": between(one("Slice", "s e ax"), s=ints(1), e=ints(5), ax=ints(2)),
    "Pad": between(one("Pad", "p"), p=_PADS),
    "Pad_reflect": between(one("Pad", "p", mode="reflect"), p=_PADS),
    "Pad_value": between(one("Pad", "p v"), p=_PADS, v=np.asarray(0.5, F)),
    "Gather": between(one("Gather", "i", axis=1), 5, i=ints(0, 3, 2, 2, 7)),
    "GatherElements": between(
        one("GatherElements", "i", axis=3),
        i=np.tile(ints(*range(8))[::-1], (1, 8, 8, 1)),
    ),
    "Concat": between(
        [("Relu", ["a"], ["r"], {}), ("Sigmoid", ["a"], ["s"], {}),
         ("Concat", ["r", "s", "a"], ["b"], {"axis": 1})], 24,
    ),
    "Split": between(
        [("Split", ["a", "k"], ["p", "q"], {"axis": 1}),
         ("Add", ["p", "q"], ["b"], {})], 4, k=ints(4, 4),
    ),
    "LeakyRelu": between(one("LeakyRelu", alpha=0.1)),
    "Clip": between(one("Clip", "lo hi"), lo=np.asarray(0, F), hi=np.asarray(1, F)),
    "Sigmoid": between(one("Sigmoid")),
    "Softmax": between(one("Softmax", axis=-1)),
    "Mul": between([("Sigmoid", ["a"], ["s"], {}), ("Mul", ["a", "s"], ["b"], {})]),
    "Add": between(one("Add", "c"), c=weights(8, 1, 1)),
    "Where": between(
        [("Relu", ["a"], ["s"], {}), ("Where", ["m", "a", "s"], ["b"], {})],
        m=np.random.default_rng(0).random((1, 8, 8, 8)) > 0.5,
    ),
    "ArgMax": between(one("ArgMax", axis=1), after=False),
    "TopK": between([("TopK", ["a", "k"], ["b", "i"], {"axis": 3})], k=ints(3)),
    "CumSum": between(one("CumSum", "k"), k=np.asarray(2)),
    "Squeeze": between(
        [("GlobalAveragePool", ["a"], ["g"], {}), ("Squeeze", ["g", "ax"], ["q"], {}),
         ("Unsqueeze", ["q", "ax"], ["b"], {})], ax=ints(2, 3),
    ),
    "Gemm": between(
        [("Flatten", ["a"], ["f"], {}),
         ("Gemm", ["f", "g", "h"], ["b"], {"transB": 1})],
        after=False, g=weights(10, 512), h=weights(10),
    ),
    "InstanceNormalization": between(
        one("InstanceNormalization", "s t"), s=weights(8) + 1, t=weights(8)
    ),
    "LayerNormalization": between(
        one("LayerNormalization", "s t"), s=weights(8) + 1, t=weights(8)
    ),
    "BatchNormalization": between(
        [("Relu", ["a"], ["r"], {}),
         ("BatchNormalization", ["r", "s", "t", "m", "v"], ["b"], {})],
        s=weights(8) + 1, t=weights(8), m=weights(8), v=np.ones(8, F),
    ),
    "DepthToSpace": between(one("DepthToSpace", blocksize=2), 2),
    "Tile": between(one("Tile", "r"), r=ints(1, 1, 2, 1)),
    "Expand": between(
        [("GlobalAveragePool", ["a"], ["g"], {}), ("Expand", ["g", "s"], ["b"], {})],
        s=ints(1, 8, 4, 4),
    ),
    "MatMul": (
        [("MatMul", ["x", "w"], ["a"], {}),
         ("Transpose", ["a"], ["t"], {"perm": [0, 2, 1]}),
         ("MatMul", ["a", "t"], ["s"], {}), ("Mul", ["s", "c"], ["p"], {}),
         ("Softmax", ["p"], ["q"], {"axis": -1}), ("MatMul", ["q", "a"], ["y"], {})],
        {"w": weights(6, 8), "c": np.asarray(0.3, F)}, (1, 5, 6),
    ),
    "Gemm_of_a_product": (
        [("MatMul", ["x", "w"], ["a"], {}),
         ("Transpose", ["a"], ["t"], {"perm": [0, 2, 1]}),
         ("MatMul", ["a", "t"], ["s"], {}), ("Reshape", ["s", "f"], ["r"], {}),
         ("Gemm", ["r", "g", "h"], ["y"], {})],
        {"w": weights(6, 8), "f": ints(5, 5), "g": weights(5, 3), "h": weights(3)},
        (1, 5, 6),
    ),
    "LSTM": (
        [("LSTM", ["x", "w", "r", "h"], ["a"], {"hidden_size": _H}),
         ("Squeeze", ["a", "ax"], ["s"], {}), ("MatMul", ["s", "v"], ["y"], {})],
        {"w": weights(1, 4 * _H, 5), "r": weights(1, 4 * _H, _H), "ax": ints(1),
         "h": weights(1, 8 * _H), "v": weights(_H, 3)}, (4, 1, 5),
    ),
    "Conv": layers("Conv", (8, 4, 3, 3), (6, 8, 3, 3), 8),
    "Conv_depthwise": layers("Conv", (8, 4, 3, 3), (8, 1, 3, 3), 8, group=8),
    "Conv_depthwise_1d": layers("Conv", (32, 4, 3), (32, 1, 9), 16, group=32),
    "Conv_twice_1d": layers("Conv", (8, 4, 3), (16, 1, 9), 16, group=8),
    "Conv_groups_1d": layers("Conv", (8, 4, 3), (8, 4, 3), 12, group=2),
    "Conv_3d": layers("Conv", (8, 4, 3, 3, 3), (6, 8, 1, 1, 1), 5),
    "ConvTranspose": layers(
        "ConvTranspose", (8, 4, 3, 3), (8, 5, 2, 2), 6, group=1, strides=[2, 2]
    ),
    "ConvTranspose_groups_1d": layers(
        "ConvTranspose", (8, 4, 3), (8, 3, 4), 12, group=2, strides=[2], pads=[1, 1]
    ),
}  # fmt: skip
# operators of the registries that others stand for here
STANDS = {"Flatten": "Gemm", "Unsqueeze": "Squeeze"}


def shape_of(name: str) -> tuple[int, ...]:
    shape: tuple[int, ...] = NETS[name][2]
    return shape


def model(name: str) -> onnx.ModelProto:
    nodes, constants, shape = NETS[name]
    made = [
        helper.make_node(kind, reads, makes, name=f"n{i}", **attrs)
        for i, (kind, reads, makes, attrs) in enumerate(nodes)
    ]
    graph = helper.make_graph(
        made, name, [helper.make_tensor_value_info("x", 1, shape)],
        [onnx.ValueInfoProto(name=nodes[-1][2][0])],
        [numpy_helper.from_array(value, key) for key, value in constants.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    whole = helper.make_model(graph, opset_imports=opset, ir_version=9)
    whole = onnx.shape_inference.infer_shapes(whole)
    types = {v.name: v for v in whole.graph.value_info}
    for value in whole.graph.output:
        if value.name in types:
            value.CopyFrom(types[value.name])
    return whole


@functools.cache
def quantised(name: str, form: str) -> bytes:
    """The net as a quantiser writes it: qdq | qop | dynamic."""
    return by_quantiser(model(name), shape_of(name), form)


def by_quantiser(net: onnx.ModelProto, shape: tuple[int, ...], form: str) -> bytes:
    """A net with the input x, calibrated on normal numbers."""
    from onnxruntime import quantization as q

    class Samples(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            chance = np.random.default_rng(1)
            self.left = [chance.standard_normal(shape).astype(F) for _ in range(4)]

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return {"x": self.left.pop()} if self.left else None

    kinds = q.QuantType
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "float.onnx", Path(folder) / "made.onnx"
        onnx.save(net, given)
        if form == "dynamic":
            q.quantize_dynamic(given, made, weight_type=kinds.QInt8)
        elif form == "qdq":
            q.quantize_static(
                given, made, Samples(), quant_format=q.QuantFormat.QDQ,
                activation_type=kinds.QInt8, weight_type=kinds.QInt8, per_channel=True,
            )  # fmt: skip
        else:
            q.quantize_static(
                given, made, Samples(), quant_format=q.QuantFormat.QOperator,
                activation_type=kinds.QUInt8, weight_type=kinds.QInt8,
            )  # fmt: skip
        return made.read_bytes()
