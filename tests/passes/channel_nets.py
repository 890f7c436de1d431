"""Integer nets with channels that never change, for the test of the pass."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Quant, Tensor
from tests.passes.passes_graph import ONES, Small

X, Y = Quant((0.05,), (-128,)), Quant((0.1,), (-128,))
SAME = {**ONES, "pads": (1, 1, 1, 1)}


def scales(count: int, axis: int = 0) -> Quant:
    return Quant(tuple(0.004 + 0.001 * c for c in range(count)), (0,) * count, axis)


class Net(Small):
    """Layers of int8; `dead` channels of a layer have no weights and this bias."""

    def layer(
        self,
        op: str,
        x: str,
        name: str,
        shape: tuple[int, ...],
        dead: dict[int, int],
        low: float | None = 0.0,
        high: float | None = None,
        attrs: dict[str, tuple[int, ...]] | None = None,
        rule: str = "double",
    ) -> str:
        chance = np.random.default_rng(len(name))
        last = op == "depthwise_conv2d"
        count = shape[-1] if last else shape[0]
        w: Array = chance.integers(-127, 128, shape).astype(np.int8)
        bias = chance.integers(-2000, 2000, count).astype(np.int32)
        for channel, value in dead.items():
            w[(..., channel) if last else channel] = 0
            bias[channel] = value
        self.constant(f"{name}_w", w, scales(count, len(shape) - 1 if last else 0))
        self.constant(f"{name}_b", bias, Quant((1.0,)))
        return self.node(op, f"{x} {name}_w {name}_b", name, quant=Y, rounding=rule,
                         clamp=(low, high), **(attrs or ONES))  # fmt: skip

    def start(self, dead: dict[int, int], name: str = "first") -> str:
        """Eight channels of which some are dead."""
        if "x" not in self.tensors:
            self.input("x", 1, 6, 6, 8, quant=X)
        return self.layer("conv2d", "x", name, (8, 1, 1, 8), dead)

    def end(self, x: str, attrs: dict[str, tuple[int, ...]] | None = None) -> Graph:
        depth = self.tensors[x].shape[-1]
        self.layer("conv2d", x, "last", (5, 1, 1, depth), {}, attrs=attrs)
        return self.graph("last")


class _Random(Net):
    """Any operators that keep channels, in any order; all tensors one scale."""

    def __init__(self, seed: int, rule: str) -> None:
        super().__init__()
        self.chance = np.random.default_rng((seed, len(rule)))
        self.rule, self.wide = rule, rule == "wide"
        zero = 0 if self.wide else int(self.pick(-128, -128, -7, 100))
        self.quant = Quant((0.001 if self.wide else 0.1,), (zero,))
        self.clamp = (0.0, None) if self.pick(0, 1) else (None, None)
        kind = DType.INT16 if self.wide else DType.INT8
        self.tensors["x"] = Tensor("x", (1, 6, 5, 4), kind, self.quant)
        self.inputs.append("x")

    def pick(self, *values: int) -> int:
        return int(self.chance.choice(values))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def made(self, op: str, reads: str, shape: tuple[int, ...] = (), **attrs: object
             ) -> str:  # fmt: skip
        name = f"{op}_{len(self.nodes)}"
        rule = self.rule
        if self.wide:
            rule = {"conv2d": rule, "depthwise_conv2d": rule, "dense": "away"}.get(
                op, "double"
            )
        return self.node(op, reads, name, shape, self.quant, rounding=rule, **attrs)

    def layer_of(self, name: str, *shape: int, axis: int = 0) -> str:
        """Some outputs are dead, some saturated."""
        count = shape[axis]
        w: Array = self.chance.integers(-20, 21, shape).astype(np.int8)
        bias = self.chance.integers(-300, 301, count)
        some = self.chance.random(count)
        w[(slice(None),) * axis + (some < 0.5,)] = 0
        bias[(some < 0.1) | (some > 0.9)] *= 100
        self.constant(f"{name}_w", w, scales(count, axis))
        kind = np.int64 if self.wide else np.int32
        self.constant(f"{name}_b", bias.astype(kind), Quant((1.0,)))
        return f"{name}_w {name}_b"

    def conv(self, x: str, size: int) -> str:
        pad = self.pick(0, 1) if size == 3 else 0
        size = min(size, min(self.shape(x)[1:3]) + 2 * pad)
        stride = self.pick(1, 1, 2)
        w = self.layer_of(f"c{len(self.nodes)}", self.pick(8, 12, 16), size, size,
                         self.shape(x)[-1])  # fmt: skip
        return self.made("conv2d", f"{x} {w}", clamp=self.clamp, pads=(pad,) * 4,
                         strides=(stride, stride), dilations=(1, 1))  # fmt: skip

    def deep(self, x: str) -> str:
        w = self.layer_of(f"d{len(self.nodes)}", 3, 2,
                         self.shape(x)[-1] * self.pick(1, 1, 2), axis=2)  # fmt: skip
        pads = (1, self.pick(0, 1), 1, 1)
        return self.made("depthwise_conv2d", f"{x} {w}", clamp=self.clamp,
                         **{**ONES, "pads": pads})  # fmt: skip

    def joined(self, x: str) -> str:
        """With another layer of the same size, or with constants."""
        op = ("add", "sub", "mul", "concat")[self.pick(0, 1, 2, 3)]
        if self.pick(0, 1):
            other = self.conv(x, 1)
            x = self.conv(x, 1)
            if self.shape(x) != self.shape(other):
                op = "concat" if self.shape(x)[1:3] == self.shape(other)[1:3] else ""
        else:
            kind = self.tensors[x].dtype.numpy
            some = self.chance.integers(-9, 9, self.shape(x)[-1]).astype(kind)
            shape = self.shape(x) if op == "concat" else (1, 1, 1, len(some))
            other = f"k{len(self.nodes)}"
            values = np.broadcast_to(some, shape).copy()
            self.constant(other, values, self.quant)
        if op == "concat":
            return self.made(op, f"{x} {other}", axis=3)
        return self.made(op, f"{x} {other}", clamp=(None, None)) if op else x

    def pooled(self, x: str) -> str:
        op = ("max_pool2d", "avg_pool2d")[self.pick(0, 1)]
        include = {"count_include_pad": bool(self.pick(0, 1))} if op[0] == "a" else {}
        return self.made(op, x, kernel=(2, 2), strides=(1, 1), pads=(1, 0, 0, 1),
                         clamp=(None, None), **include)  # fmt: skip

    def moved(self, x: str) -> str:
        n, height, width, depth = self.shape(x)
        match self.pick(0, 1, 2, 3, 4):
            case 0:
                pads = ((0, 0), (1, 0), (0, 1), (0, 0))
                return self.made("pad", x, pads=pads, value=float(self.pick(0, 1)))
            case 1:
                return self.made("transpose", x, perm=(0, 2, 1, 3))
            case 2:
                return self.made("reshape", x, (n, 1, height * width, depth))
            case 3 if not self.wide:
                return self.made("leaky_relu", x, alpha=0.3)
        return self.made("slice", x, begin=(0, 0, 0, 2), strides=(1, 1, 1, 1),
                         end=(n, height, width, depth))  # fmt: skip


def random_net(seed: int, rule: str) -> Graph:
    """Up to nine layers, and one that reads them all."""
    net = _Random(seed, rule)
    x = net.conv("x", 1)
    for _ in range(net.pick(2, 4, 6)):
        match net.pick(0, 1, 2, 3, 4, 5):
            case 0 | 1:
                x = net.conv(x, net.pick(1, 3))
            case 2:
                x = net.deep(x)
            case 3:
                x = net.joined(x)
            case 4:
                x = net.pooled(x)
            case _:
                x = net.moved(x)
    if net.pick(0, 1):
        x = net.made("mean", x, axes=(1, 2), keepdims=False)
    else:
        x = net.made("reshape", x, (1, int(np.prod(net.shape(x)))))
    w = net.layer_of("last", 3, net.shape(x)[-1])
    return net.graph(net.made("dense", f"{x} {w}", clamp=(None, None)))
