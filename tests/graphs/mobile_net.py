"""MobileNetV2 with a third of its channels, of seeded int8 weights: a network as large
as people bring, for tests of how long they wait. Knows no kernel and no plan."""

from __future__ import annotations

import numpy as np

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant, Tensor

# expansion, channels, how often, stride of the first
BLOCKS = (
    (1, 8, 1, 1), (6, 8, 2, 2), (6, 16, 3, 2), (6, 24, 4, 2), (6, 32, 3, 1),
    (6, 56, 3, 2), (6, 112, 1, 1),
)  # fmt: skip
_LAST, _CLASSES = 1280, 10
_QUANT = (0.05, -3)


class _Maker:
    def __init__(self) -> None:
        self.net = GraphBuilder("mobile_net")
        self.chance = np.random.default_rng(7)
        self.count = 0

    def layer(self, op: str, x: Tensor, shape: tuple[int, ...], axis: int, stride: int,
              clamp: tuple[float, float] | None) -> Tensor:  # fmt: skip
        number, outs = self.count, shape[axis]
        self.count += 1
        scales = self.chance.uniform(0.002, 0.01, outs).astype(np.float32)
        quant = Quant(tuple(map(float, scales)), (0,) * outs, axis)
        values = self.chance.integers(-127, 128, shape).astype(np.int8)
        w = self.net.constant(f"w{number}", values, quant)
        bias = self.chance.integers(-999, 999, outs).astype(np.int32)
        b = self.net.constant(f"b{number}", bias)
        attrs = {"clamp": clamp} if clamp else {}
        if op == "dense":
            return self.net.op(op, x, w, b, quant=_QUANT, **attrs)
        side = shape[0 if axis else 1]
        after = side // 2
        before = after if stride == 1 else 0
        pads = (before, before, after, after)
        return self.net.op(op, x, w, b, strides=(stride, stride), pads=pads,
                           quant=_QUANT, **attrs)  # fmt: skip

    def conv(self, x: Tensor, outs: int, side: int = 1, stride: int = 1,
             clamp: tuple[float, float] | None = (0.0, 6.0)) -> Tensor:  # fmt: skip
        shape = (outs, side, side, x.shape[3])
        return self.layer("conv2d", x, shape, 0, stride, clamp)

    def block(self, x: Tensor, times: int, outs: int, stride: int) -> Tensor:
        inside = self.conv(x, x.shape[3] * times) if times > 1 else x
        shape = (3, 3, inside.shape[3])
        inside = self.layer("depthwise_conv2d", inside, shape, 2, stride, (0.0, 6.0))
        made = self.conv(inside, outs, clamp=None)
        if stride > 1 or made.shape != x.shape:
            return made
        return self.net.op("add", x, made, quant=_QUANT)


def mobile_net(side: int) -> Graph:
    """For square images of that many pixels a side: 65 layers."""
    maker = _Maker()
    x = maker.net.input("image", (1, side, side, 3), "int8", quant=(1 / 128, 0))
    x = maker.conv(x, 16, 3, 2)
    for times, outs, count, stride in BLOCKS:
        for number in range(count):
            x = maker.block(x, times, outs, stride if number == 0 else 1)
    x = maker.conv(x, _LAST)
    x = maker.net.op("avg_pool2d", x, kernel=x.shape[1:3])
    x = maker.net.op("reshape", x, shape=(1, x.size))
    x = maker.layer("dense", x, (_CLASSES, x.size), 0, 1, None)
    maker.net.output(x)
    return maker.net.build()


def chain(layers: int) -> Graph:
    """Pairs of 3x3 depthwise and 1x1 layers, as in networks for keywords."""
    maker = _Maker()
    x = maker.net.input("image", (1, 25, 5, 16), "int8", quant=_QUANT)
    for _ in range(layers // 2):
        x = maker.layer("depthwise_conv2d", x, (3, 3, 16), 2, 1, (0.0, 6.0))
        x = maker.conv(x, 16)
    maker.net.output(x)
    return maker.net.build()
