"""Weights of .onnx files as parameters: by the file's names, in the file's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pybuild.frontends.onnx import load
from pybuild.host.parameter_image import Weights
from pybuild.model import Model
from tests.frontends.onnx.models import NodeSpec, expected, model

_CHANCE = np.random.default_rng(19)
Shapes = Mapping[str, tuple[int, ...]]
_STEPS = {name: np.array([n]) for name, n in (("one", 1), ("two", 2), ("four", 4))}
_WIDE = {"strides": [2, 1], "pads": [1, 0, 0, 1]}
_BOTH = {"hidden_size": 3, "direction": "bidirectional"}


def _float(shape: tuple[int, ...]) -> np.ndarray:
    return _CHANCE.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("nodes", "x", "weights"),
    [
        (
            [("ConvTranspose", ["x", "w", "b"], ["y"], _WIDE)],
            (1, 2, 4, 3), {"w": (2, 3, 3, 2), "b": (3,)},
        ),
        (
            [("ConvTranspose", ["x", "w"], ["y"], {"group": 2})],
            (1, 4, 4, 3), {"w": (4, 3, 3, 2)},
        ),
        (
            [("RNN", ["x", "w", "r", "b"], ["", "y"], _BOTH)],
            (1, 1, 4), {"w": (2, 3, 4), "r": (2, 3, 3), "b": (2, 6)},
        ),
        (
            [
                ("Transpose", ["w"], ["t"], {}),
                ("Identity", ["b"], ["c"], {}),
                ("Cast", ["t"], ["same"], {"to": 1}),
                ("Gemm", ["x", "same", "c"], ["y"], {}),
            ],
            (2, 5), {"w": (4, 5), "b": (4,)},
        ),
        (
            [
                ("MatMul", ["x", "w"], ["whole"], {}),
                ("Slice", ["w", "two", "four", "one"], ["part"], {}),
                ("MatMul", ["x", "part"], ["some"], {}),
                ("Concat", ["whole", "some"], ["y"], {"axis": 1}),
            ],
            (1, 4), {"w": (4, 6)},
        ),
    ],
    ids=["transposed", "groups", "recurrent", "turned", "pieces"],
)  # fmt: skip
def test_weights_have_the_names_and_the_order_of_the_file(
    nodes: Sequence[NodeSpec], x: tuple[int, ...], weights: Shapes
) -> None:
    kept, inputs = {**_STEPS, **{n: _float(s) for n, s in weights.items()}}, _float(x)
    data = model(nodes, {"x": inputs}, ["y"], kept)
    net_of = Model("a.onnx", load("a.onnx", data, {}), "onnx", "0" * 64)
    library = net_of.build(params=list(weights))
    net = library.host()
    for _ in range(2):
        new = {name: _float(shape) for name, shape in weights.items()}
        net.load_params(Weights(library.image(new)))
        net.run(x=inputs)
        wanted = expected(
            model(nodes, {"x": inputs}, ["y"], {**kept, **new}), {"x": inputs}
        )
        np.testing.assert_allclose(net.get_output("y"), wanted["y"], atol=1e-5)
