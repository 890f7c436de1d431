"""Nets that go on over time, with weights from a seed: residual dilated convolutions
(a TCN) in int8, and a GRU in float32 and quantised.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pybuild
from pybuild import GraphBuilder
from pybuild.dtype import Array
from pybuild.features import Features
from pybuild.ir.graph import Graph
from pybuild.model import Model
from tests.features.nets import dense_head
from tests.frontends.onnx.models import model

KEPT = {"h": "h_next"}


def tcn(
    bands: int = 40,
    wide: int = 32,
    dilations: tuple[int, ...] = (1, 2, 4, 8),
    scale: float = 10.4 / 255,
) -> Graph:
    """Three taps each, rows added to what went in: what it looks back on is its window,
    [1, 1 + 2 * sum(dilations), 1, bands], to three words."""  # fmt: skip
    b, rng = GraphBuilder("tcn"), np.random.default_rng(11)
    rows = 1 + 2 * sum(dilations)
    y = b.input("x", (1, rows, 1, bands), "int8", (scale, -128))
    for i, step in enumerate(dilations):
        shape = (wide, 3, 1, y.shape[3])
        w = b.constant(
            f"w{i}", rng.integers(-60, 61, shape).astype(np.int8), (0.002, 0)
        )
        z = b.op(
            "conv2d", y, w, dilations=(step, 1), clamp=(0.0, None), dtype="int8",
            quant=(0.05, -128),
        )  # fmt: skip
        if i:
            y = b.op(
                "slice", y, begin=(0, 2 * step, 0, 0), end=y.shape, strides=(1, 1, 1, 1)
            )
            z = b.op("add", y, z, dtype="int8", quant=(0.08, -128))
        y = z
    last = b.op("reshape", y, shape=(1, wide))
    b.output(dense_head(b, last, 3, "int8"), "scores")
    return b.build()


def gru(steps: int = 1, bands: int = 40, hidden: int = 32) -> bytes:
    """An ONNX file: x [steps, 1, bands] and h [1, 1, hidden] to scores [1, 3] of the
    last step, and h_next."""
    rng = np.random.default_rng(3)

    def weights(*shape: int) -> Array:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    values = {
        "w": weights(1, 3 * hidden, bands), "r": weights(1, 3 * hidden, hidden),
        "d": weights(hidden, 3), "flat": np.array([1, hidden], np.int64),
    }  # fmt: skip
    inputs = {
        "x": np.zeros((steps, 1, bands), np.float32),
        "h": np.zeros((1, 1, hidden), np.float32),
    }
    nodes = [
        ("GRU", ["x", "w", "r", "", "", "h"], ["", "h_next"], {"hidden_size": hidden}),
        ("Reshape", ["h_next", "flat"], ["last"], {}),
        ("MatMul", ["last", "d"], ["logits"], {}),
        ("Softmax", ["logits"], ["scores"], {"axis": 1}),
    ]
    return model(nodes, inputs, ["scores", "h_next"], values)


def kept_gru(bands: int = 40, hidden: int = 32) -> Model:
    """One step, which knows what it was."""
    return pybuild.load(gru(1, bands, hidden), state=KEPT)


def quantised_gru(bands: int = 40, hidden: int = 32) -> Model:
    """The same in int8; what is kept, in float32."""
    rng = np.random.default_rng(0)
    data = {
        "x": rng.uniform(0, 10, (40, 1, 1, bands)).astype(np.float32),
        "h": rng.uniform(-1, 1, (40, 1, 1, hidden)).astype(np.float32),
    }
    made = pybuild.quantise(pybuild.load(gru(1, bands, hidden)), data)
    return made.model.with_state(KEPT)


def real_rows(features: Features, pcm: Array) -> Array:
    """Of each hop, as a net of floats is asked them: float32 [hops, bands]."""
    made = features(pcm).astype(np.float32) - features.zero_point
    return made * np.float32(features.scale)


def windows(rows: Array, count: int) -> Iterator[Array]:
    """The newest `count` rows from the first full one on."""
    for end in range(count, len(rows) + 1):
        yield rows[end - count : end]
