"""Resize of images, in all spellings of one interpolation: resize_bilinear where it is
one, and ONNX Runtime's numbers everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.ops.interpret import interpret
from pybuild.quantisation.transformer import MOVES

TRANSFORMS = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _file(shape: list[int], to: Array, by_sizes: bool, **attrs: Any) -> bytes:
    """One Resize. to: the new sizes, or the scales"""
    kind = np.int64 if by_sizes else np.float32
    names = ["x", "", "", "to"] if by_sizes else ["x", "", "to"]
    node = helper.make_node("Resize", names, ["y"], mode="linear", **attrs)
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor_value_info(
                "y", TensorProto.FLOAT, [*"abcd"[: len(shape)]]
            )
        ],
        [numpy_helper.from_array(np.asarray(to).astype(kind), "to")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return bytes(model.SerializeToString())


def _must_be_equal(file: bytes, shape: list[int], seed: int) -> list[str]:
    """The operators of the graph."""
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    graph = pybuild.load(file).graph
    made = interpret(graph, {"x": x})["y"]
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=2e-6)
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("last", [False, True])
def test_an_image_between_its_pixels(transform: str, last: bool) -> None:
    for seed in range(8):
        chance = np.random.default_rng((last, seed))
        sizes = chance.integers(2, 9, 4)
        to, axes = sizes.copy(), [1, 2] if last else [2, 3]
        to[axes] = chance.integers(2, 17, 2)
        by_sizes = bool(seed % 2) or transform == "align_corners"
        wanted = to if by_sizes else to / sizes
        shape = [int(size) for size in sizes]
        how = {"coordinate_transformation_mode": transform}
        ops = _must_be_equal(_file(shape, wanted, by_sizes, **how), shape, seed)
        assert ops.count("resize_bilinear") == 1 and "matmul" not in ops, seed


@pytest.mark.parametrize(
    ("shape", "to", "by_sizes", "attrs"),
    [
        ([1, 2, 8, 8], [1, 1, 0.5, 0.5], False, {"antialias": 1}),
        ([1, 2, 5, 5], [1, 1, 1.5, 1.5], False, {}),  # 7 of 7.5: another scale
        ([2, 3, 7], [2, 3, 14], True, {}),
        (
            [1, 2, 6, 6], [1, 2, 1, 12], True,
            {"coordinate_transformation_mode": "pytorch_half_pixel"},
        ),
    ],
)  # fmt: skip
def test_what_is_another_interpolation(
    shape: list[int], to: list[float], by_sizes: bool, attrs: dict[str, Any]
) -> None:
    ops = _must_be_equal(_file(shape, np.asarray(to), by_sizes, **attrs), shape, 5)
    assert "resize_bilinear" not in ops


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_where_we_quantise_it_is_int8(backend: str) -> None:
    """Between convolutions, with the scale of what it reads; nothing is float."""
    assert "resize_bilinear" in MOVES
    chance = np.random.default_rng(6)
    w = [chance.normal(0, 0.3, (4, n, 3, 3)).astype(np.float32) for n in (2, 4)]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
        helper.make_node("Resize", ["a", "", "to"], ["b"], mode="linear"),
        helper.make_node("Conv", ["b", "w1"], ["y"], pads=[1] * 4),
    ]
    held = [numpy_helper.from_array(v, f"w{i}") for i, v in enumerate(w)]
    held.append(numpy_helper.from_array(np.asarray([1, 1, 2, 2], np.float32), "to"))
    shape = [1, 2, 6, 6]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 12, 12])],
        held,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    x = chance.normal(size=(16, *shape[1:])).astype(np.float32)
    made = pybuild.quantise(pybuild.load(model.SerializeToString()), {"x": x})
    library = made.build(target="cortex-m4")
    steps = {step.node.op: step.node for step in library.plan.steps}
    node = steps["resize_bilinear"]
    assert library.plan.graph.tensor(node.output).dtype.value == "int8"
    net = bind_lazy(library.host(backend))
    net.run(x=x[:1])
    (y,) = net.outputs().values()
    net.close()
    real = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = real.run(None, {"x": x[:1]})
    assert np.abs(y - wanted).max() < 0.05 * np.abs(wanted).max()
