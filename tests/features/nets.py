"""Small nets that hear, with weights from a seed, and chains of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import pybuild
from pybuild import GraphBuilder
from pybuild.dtype import Array
from pybuild.features import Decision, Features, log_mel
from pybuild.front import Chain
from pybuild.ir.graph import Graph, Tensor

BANDS, HOP = 10, 80
PLAIN: dict[str, Any] = {"subtract_noise": False, "gain": False}
DECISION = Decision(smooth=3, threshold=0.45, release=0.3, refractory=4, ignore=(0,))


def sound(samples: int, seed: int = 0) -> Array:
    """Noise and tones that come and go."""
    rng, t = np.random.default_rng(seed), np.arange(samples)
    there = np.sin(t / 700) > 0.2
    made = rng.normal(0, 1, samples) * 30 + 6000 * there * np.sin(t * (0.2 + t / 2e4))
    return np.clip(made, -32768, 32767).astype(np.int16)


@cache
def features(**options: Any) -> Features:
    given = {"window": 128, "hop": HOP, "bands": BANDS, **PLAIN, **options}
    return log_mel(**given)


def dense_head(b: GraphBuilder, x: Tensor, count: int, kind: str) -> Tensor:
    rng, size = np.random.default_rng(count), x.shape[-1]
    if kind == "float32":
        w = rng.normal(0, 0.2, (count, size)).astype(np.float32)
        y = b.op("dense", x, b.constant("w", w - w.mean(1, keepdims=True)))
        return b.op("softmax", y, axis=1, beta=1.0)
    w8 = rng.integers(-127, 127, (count, size)).astype(np.int8)
    weights = b.constant("w", w8, (0.002, 0))
    assert x.quant is not None
    bias = b.constant("b", np.zeros(count, np.int32), (0.002 * x.quant.scale[0], 0))
    y = b.op("dense", x, weights, bias, dtype="int8", quant=(0.25, 0))
    return b.op("softmax", y, axis=1, beta=1.0, dtype="int8", quant=(1 / 256, -128))


def dense_net(
    shape: tuple[int, ...], kind: str = "int8", scale: float = 0.08, zero: int = -100
) -> Graph:
    """All of a window at once."""
    b = GraphBuilder("dense_net")
    quant = (scale, zero) if kind == "int8" else None
    x = b.input("x", shape, kind, quant)
    flat = b.op("reshape", x, shape=(1, int(np.prod(shape))))
    b.output(dense_head(b, flat, 4, kind), "scores")
    return b.build()


def conv_net(rows: int) -> Graph:
    """Convolutions over time, which a stream computes row by row."""
    b, rng = GraphBuilder("conv_net"), np.random.default_rng(5)
    x = b.input("x", (1, rows, 1, BANDS), "int8", (17 / 255, -128))
    w = b.constant("d", rng.integers(-99, 99, (3, 1, BANDS)).astype(np.int8), (0.01, 0))
    y = b.op("depthwise_conv2d", x, w, dtype="int8", quant=(0.1, -20))
    w = b.constant(
        "c", rng.integers(-99, 99, (6, 3, 1, BANDS)).astype(np.int8), (0.01, 0)
    )
    y = b.op("conv2d", y, w, dilations=(2, 1), dtype="int8", quant=(0.2, 3))
    y = b.op("mean", y, axes=(1, 2), keepdims=False, dtype="int8", quant=(0.1, 3))
    b.output(dense_head(b, y, 3, "int8"), "scores")
    return b.build()


@cache
def chains() -> dict[str, Chain]:
    """Every way in which a net takes rows."""
    mel = features()
    noisy = features(subtract_noise=True, gain=True, window=100, bands=BANDS)
    wide = dense_net((1, 8, BANDS, 1), scale=0.06)
    return {
        "window": pybuild.chain(mel, wide, DECISION),
        "some_rows": pybuild.chain(mel, wide, DECISION, every=3),
        "all_rows": pybuild.chain(noisy, wide, every=8),
        "time_last": pybuild.chain(mel, dense_net((1, BANDS, 6)), DECISION),
        "one_row": pybuild.chain(noisy, dense_net((1, BANDS)), Decision(smooth=1)),
        "whole": pybuild.chain(mel, conv_net(16), DECISION),
        "stream": pybuild.chain(mel, conv_net(16), DECISION, stream=True),
        "stream_two": pybuild.chain(mel, conv_net(16), stream=True, every=2),
    }


def wakeword() -> Graph:
    """The layers of MLPerf Tiny's streaming wakeword: over 30 rows of 40 bands four
    times a depthwise convolution over time and one over channels; three words.
    """
    b, rng = GraphBuilder("wakeword"), np.random.default_rng(9)
    y = b.input("x", (1, 30, 1, 40), "int8", (10.4 / 255, -128))
    for i, (taps, count) in enumerate(((3, 128), (5, 128), (10, 128), (15, 32))):
        shapes = (taps, 1, y.shape[3]), (count, 1, 1, y.shape[3])
        for op, shape in zip(("depthwise_conv2d", "conv2d"), shapes, strict=True):
            w = b.constant(
                f"{op}{i}", rng.integers(-9, 10, shape).astype(np.int8), (0.02, 0)
            )
            y = b.op(op, y, w, clamp=(0.0, None), dtype="int8", quant=(0.05, -128))
    b.output(dense_head(b, b.op("reshape", y, shape=(1, 32)), 3, "int8"), "scores")
    return b.build()
