"""Random small graphs of layers that go by rows, for hypothesis: chains with residual
connections and branches. Knows operators, no plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.model import Model

_OPS = (
    "conv", "conv", "pointwise", "depthwise", "max_pool", "avg_pool", "relu",
    "residual", "concat", "pad", "global", "tanh",
)  # fmt: skip


class _Maker:
    def __init__(self, draw: Any, kind: str) -> None:
        self.draw, self.is_int8 = draw, kind == "int8"
        self.net = GraphBuilder("rows")
        self.chance = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.count = 0

    def pick(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def quant(self) -> dict[str, Any]:
        if not self.is_int8:
            return {}
        return {"quant": (float(self.chance.choice([0.05, 0.1])), self.pick(-9, 9))}

    def weights(self, shape: tuple[int, ...], axis: int) -> Tensor:
        self.count += 1
        name = f"w{self.count}"
        if not self.is_int8:
            return self.net.constant(
                name, self.chance.normal(0, 0.3, shape).astype(np.float32)
            )
        scales = self.chance.uniform(0.002, 0.01, shape[axis]).astype(np.float32)
        quant = Quant(tuple(map(float, scales)), (0,) * shape[axis], axis)
        values = self.chance.integers(-127, 128, shape).astype(np.int8)
        return self.net.constant(name, values, quant)

    def input(self) -> Tensor:
        shape = (1, self.pick(3, 19), self.pick(1, 7), self.pick(1, 6))
        kind = "int8" if self.is_int8 else "float32"
        return self.net.input("x", shape, kind, **self.quant())

    def window(self, x: Tensor, most: int = 3) -> dict[str, Any]:
        """Kernel, strides, dilations and pads that fit the tensor."""
        kernel, stride, dilation, pads = [], [], [], []
        for size in x.shape[1:3]:
            k = self.pick(1, most)
            d = self.pick(1, 2) if k > 1 else 1
            before, after = self.pick(0, (k - 1) * d), self.pick(0, (k - 1) * d)
            if size + before + after < (k - 1) * d + 1:
                k, d, before, after = 1, 1, 0, 0
            kernel.append(k)
            dilation.append(d)
            stride.append(self.pick(1, 3))
            pads.append((before, after))
        return {
            "kernel": tuple(kernel),
            "strides": tuple(stride),
            "dilations": tuple(dilation),
            "pads": (pads[0][0], pads[1][0], pads[0][1], pads[1][1]),
        }

    def layer(self, x: Tensor, op: str) -> Tensor:
        net, channels = self.net, x.shape[3]
        match op:
            case "conv":
                attrs = self.window(x)
                k = attrs.pop("kernel")
                w = self.weights((self.pick(1, 6), *k, channels), 0)
                return net.op("conv2d", x, w, **self.quant(), **attrs)
            case "pointwise":
                w = self.weights((self.pick(1, 9), 1, 1, channels), 0)
                return net.op("conv2d", x, w, **self.quant())
            case "depthwise":
                attrs = self.window(x)
                k = attrs.pop("kernel")
                w = self.weights((*k, channels), 2)
                return net.op("depthwise_conv2d", x, w, **self.quant(), **attrs)
            case "max_pool" | "avg_pool":
                attrs = self.window(x)
                attrs.pop("dilations")
                k = attrs["kernel"]
                pads = [min(p, k[i % 2] - 1) for i, p in enumerate(attrs["pads"])]
                attrs["pads"] = tuple(pads)
                if any(
                    size + pads[i] + pads[i + 2] < k[i]
                    for i, size in enumerate(x.shape[1:3])
                ):
                    attrs = {"kernel": (1, 1), "strides": (1, 1)}
                return net.op(f"{op}2d", x, **attrs)
            case "relu":
                return net.op("clip", x, clamp=(0.0, None), **self.same(x))
            case "tanh":
                return net.op("tanh", x, **self.quant())
            case "residual":
                attrs = {"pads": (1, 1, 1, 1), "strides": (1, 1)}
                w = self.weights((channels, 3, 3, channels), 0)
                y = net.op("conv2d", x, w, **self.quant(), **attrs)
                if self.pick(0, 1):
                    w = self.weights((channels, 3, 3, channels), 0)
                    y = net.op("conv2d", y, w, **self.quant(), **attrs)
                pair = (x, y) if self.pick(0, 1) else (y, x)
                return net.op("add", *pair, **self.quant())
            case "concat":
                w = self.weights((self.pick(1, 4), 3, 3, channels), 0)
                y = net.op("conv2d", x, w, pads=(1, 1, 1, 1), **self.same(x))
                return net.op("concat", x, y, axis=3)
            case "pad":
                pads = ((0, 0), (self.pick(0, 2), 1), (1, 0), (0, 0))
                return net.op("pad", x, pads=pads)
        return net.op("avg_pool2d", x, kernel=x.shape[1:3])

    def end(self, x: Tensor) -> Tensor:
        """What a classifier ends with, from the rows of a stage."""
        net = self.net
        how = self.pick(0, 3)
        if how == 0:
            return x
        if how == 1:
            x = net.op("mean", x, axes=(1, 2), keepdims=False, **self.quant())
        elif x.shape[1] > 1:
            x = net.op("avg_pool2d", x, kernel=x.shape[1:3])
        if len(x.shape) == 4:
            x = net.op("reshape", x, shape=(1, x.size))
        w = self.weights((self.pick(1, 5), x.shape[1]), 0)
        x = net.op("dense", x, w, **self.quant())
        exact = {"quant": (1 / 256, -128)} if self.is_int8 else {}
        rounding = {"rounding": "double"} if self.is_int8 else {}
        return net.op("softmax", x, axis=1, beta=1.0, **rounding, **exact)

    def same(self, x: Tensor) -> dict[str, Any]:
        return {"quant": x.quant} if self.is_int8 else {}


@st.composite
def row_graphs(draw: Any, kind: str = "int8") -> Graph:
    """A graph of up to eight such layers; sometimes with a second output."""
    maker = _Maker(draw, kind)
    x = maker.input()
    names = [x]
    for op in draw(st.lists(st.sampled_from(_OPS), min_size=2, max_size=8)):
        if op == "global" and names[-1].shape[1] == 1:
            continue
        names.append(maker.layer(names[-1], op))
    if names[-1] is x:
        names.append(maker.layer(x, "relu"))
    end = maker.end(names[-1])
    if end is not names[-1]:
        names.append(end)
    maker.net.output(names[-1])
    if len(names) > 3 and maker.pick(0, 4) == 0:
        maker.net.output(names[len(names) // 2])
    return maker.net.build()


def two_inputs() -> Graph:
    """a and b meet, b at half its pace; of b's 17 rows the last is never read."""
    chance, net = np.random.default_rng(1), GraphBuilder("two")
    a, c = (net.input(n, (1, 8, 5, 4), "float32") for n in "ac")
    b = net.input("b", (1, 17, 5, 3), "float32")
    shapes = {"v": (4, 3, 3, 4), "w": (4, 2, 3, 3)}
    v, w = (net.constant(n, chance.normal(0, 0.3, shape).astype(np.float32))
            for n, shape in shapes.items())  # fmt: skip
    x = net.op("conv2d", a, v, pads=(1, 1, 1, 1))
    y = net.op("conv2d", b, w, pads=(0, 1, 0, 1), strides=(2, 1))
    net.output(net.op("add", net.op("add", x, y), c))
    return net.build()


def narrowing() -> Graph:
    """Three layers that can write over what they read, the first row the longest."""
    chance, net = np.random.default_rng(1), GraphBuilder("narrowing")
    x = net.input("x", (1, 9, 7, 4), "float32")
    for number, channels in enumerate((2, 1, 1)):
        shape = (channels, 1, 1, x.shape[3])
        values = chance.normal(0, 0.3, shape).astype(np.float32)
        x = net.op("conv2d", x, net.constant(f"w{number}", values))
    net.output(x)
    return net.build()


def tiny() -> Graph:
    """Three bytes, whose rows are counted and summed up in more."""
    net = GraphBuilder("tiny")
    x = net.input("x", (1, 3, 1, 1), "int8", quant=(0.1, 0))
    net.output(net.op("avg_pool2d", x, kernel=(3, 1), quant=x.quant))
    return net.build()


def model_of(graph: Graph) -> Model:
    return Model("rows.test", graph, "litert", "0" * 64)
