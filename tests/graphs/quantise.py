"""Float graphs for tests of quantising, and samples for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import pybuild
from pybuild.ir.graph import Graph
from pybuild.quantisation.samples import Samples, read_samples


def normal(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def small(scales: np.ndarray | None = None) -> Graph:
    """conv - max pool - reshape - dense; `scales`: of the channels between."""
    scale = np.ones(6, np.float32) if scales is None else scales.astype(np.float32)
    make = pybuild.GraphBuilder("small")
    x = make.input("x", (1, 8, 8, 2))
    w = make.constant("w", normal((6, 3, 3, 2)) * scale[:, None, None, None])
    b = make.constant("b", normal((6,), 1) * scale)
    pads = {"pads": (0, 0, 0, 0)}
    one = {"strides": (1, 1), "dilations": (1, 1), "clamp": (0.0, None), **pads}
    conv = make.op("conv2d", x, w, b, name="conv", **one)
    two = {"kernel": (2, 2), "strides": (2, 2), **pads}
    pool = make.op("max_pool2d", conv, name="pool", **two)
    flat = make.op("reshape", pool, name="flat", shape=(1, 54))
    v = normal((5, 54), 2) / np.tile(scale, 9)
    dense = make.op("dense", flat, make.constant("v", v), name="dense")
    make.output(dense, "y")
    return make.build()


def samples_of(graph: Graph, count: int = 40) -> Samples:
    data = {
        name: normal((count, *graph.tensor(name).shape), 7) for name in graph.inputs
    }
    return read_samples(graph, data, "data")


def report_of(graph: Graph, count: int = 40, **choices: Any) -> Any:
    return pybuild.quantise(graph, samples_of(graph, count).inputs, **choices).report


def mixed() -> Graph:
    """Every operator that has an int8 form, and one that has none."""
    make = pybuild.GraphBuilder("mixed")
    x = make.input("x", (1, 6, 6, 4))
    w = make.constant("w", normal((3, 3, 4)))
    one = make.op("depthwise_conv2d", x, w, name="one", pads=(1, 1, 1, 1))
    two = make.op("pad", x, name="two", pads=((0, 0), (1, 1), (1, 1), (0, 0)))
    two = make.op("slice", two, begin=(0, 1, 1, 0), end=(1, 7, 7, 4), strides=(1,) * 4)
    both = make.op("concat", one, make.op("tanh", two), name="both", axis=3)
    both = make.op("mul", both, make.constant("m", normal((8,), 3)), name="scaled")
    both = make.op("leaky_relu", both, alpha=0.1)
    cut = make.op(
        "clip", make.op("transpose", both, perm=(0, 2, 1, 3)), clamp=(-1.0, 2.0)
    )
    mean = make.op("avg_pool2d", cut, kernel=(2, 2), strides=(2, 2))
    mean = make.op("mean", mean, axes=(1, 2), keepdims=False)
    scores = make.op(
        "dense", mean, make.constant("v", normal((5, 8), 4)), name="scores"
    )
    shares = make.op("softmax", scores, axis=1, beta=1.0)
    gates = make.op("logistic", scores)
    joined = make.op("concat", shares, gates, make.op("sub", shares, gates), axis=1)
    other = make.op("map", joined, name="other", fn="exp")
    make.output(make.op("add", other, joined, name="last"), "y")
    make.output(shares, "shares")
    return make.build()
