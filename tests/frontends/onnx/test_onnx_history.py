"""Attributes and defaults of other operator sets, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.frontends.onnx.models import NodeSpec, assert_equal, model

_CHANCE = np.random.default_rng(23)


def _float(*shape: int) -> np.ndarray:
    return _CHANCE.normal(size=shape).astype(np.float32)


_IMAGE, _ROWS = _float(1, 1, 3, 4), _float(2, 1, 4)
_MORE, _LESS = (np.array([1, 1, *s], np.float32) for s in ((2, 2.5), (0.7, 0.5)))
_LINEAR, _NEAREST = {"mode": "linear"}, {"mode": "nearest"}
_RNN = {"w": _float(2, 3, 4), "r": _float(2, 3, 3)}
_LSTM = {"w": _float(1, 12, 4), "r": _float(1, 12, 3)}
_WINDOW = {"w": _float(1, 1, 3, 3)}
_LARGER = {"strides": [2, 2], "output_shape": [6, 8]}
_UPPER = {"auto_pad": "SAME_UPPER"}
_BOTH = {
    "hidden_size": 3, "direction": "bidirectional",
    "activations": ["Tanh", "LeakyRelu"], "activation_alpha": [0.3],
}  # fmt: skip
_THREE = {
    "hidden_size": 3, "activations": ["Sigmoid", "Affine", "HardSigmoid"],
    "activation_alpha": [0.3, 0.7], "activation_beta": [0.1, 0.2],
}  # fmt: skip
_SCALE = {"s": np.asarray(0.02, np.float32)}


@pytest.mark.parametrize(
    ("kind", "reads", "x", "constants", "attrs", "opset"),
    [
        ("Hardmax", "x", _float(2, 3, 4), {}, {"axis": 1}, 11),
        ("Hardmax", "x", _float(2, 3, 4), {}, {"axis": 1}, 13),
        ("Upsample", "x s", _IMAGE, {"s": _MORE}, _LINEAR, 9),
        ("Resize", "x s", _IMAGE, {"s": _MORE}, _LINEAR, 10),
        ("Resize", "x s", _IMAGE, {"s": _LESS}, _NEAREST, 10),
        ("RNN", "x w r", _ROWS, _RNN, _BOTH, 14),
        ("LSTM", "x w r", _ROWS, _LSTM, _THREE, 14),
        ("ConvTranspose", "x w", _IMAGE[:, :, :2, :3], _WINDOW, _LARGER, 13),
        ("ConvTranspose", "x w", _IMAGE[:, :, :2, :3], _WINDOW, _LARGER | _UPPER, 13),
        ("QuantizeLinear", "x s", _ROWS, _SCALE, {"output_dtype": 3}, 21),
        ("QuantizeLinear", "x s", _ROWS, _SCALE, {"output_dtype": 5}, 21),
    ],
)
def test_what_the_operator_set_says(
    kind: str, reads: str, x: np.ndarray, constants: Mapping[str, np.ndarray],
    attrs: Mapping[str, Any], opset: int,
) -> None:  # fmt: skip
    nodes: list[NodeSpec] = [(kind, reads.split(), ["y"], attrs)]
    assert_equal(model(nodes, {"x": x}, ["y"], constants, opset), {"x": x})


def test_the_type_that_a_dequantized_tensor_is_told() -> None:
    nodes: list[NodeSpec] = [
        ("DequantizeLinear", ["x", "s"], ["half"], {"output_dtype": 10}),
        ("Add", ["half", "more"], ["y"], {}),
    ]
    x = _CHANCE.integers(-9, 9, (3, 4)).astype(np.int8)
    constants = {**_SCALE, "more": np.asarray(0.01, np.float16)}
    assert_equal(model(nodes, {"x": x}, ["y"], constants, 23), {"x": x})


def test_no_axes_of_a_known_product() -> None:
    nodes: list[NodeSpec] = [
        ("ReduceProd", ["c", "axes"], ["r"], {"noop_with_empty_axes": 1}),
        ("Mul", ["x", "r"], ["y"], {}),
    ]
    x, none = _float(2, 3), np.zeros(0, np.int64)
    data = model(nodes, {"x": x}, ["y"], {"c": _float(3), "axes": none}, 18)
    assert_equal(data, {"x": x})
