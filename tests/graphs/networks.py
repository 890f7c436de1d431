"""Small seeded networks as Graphs, for tests that need a whole model."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor, verify
from pybuild.model import Model


class Network:
    """Collects tensors, constants and nodes; every layer takes the last tensor."""

    def __init__(self, name: str, shape: tuple[int, ...], kind: str, seed: int) -> None:
        self.name = name
        self.chance = np.random.default_rng(seed)
        self.is_int8 = kind == "int8"
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.nodes: list[Node] = []
        self.input = self.last = self._tensor("image", shape, 0.05, 3)

    def _tensor(
        self, name: str, shape: tuple[int, ...], scale: float, zero: int
    ) -> str:
        if self.is_int8:
            quant = Quant((float(np.float32(scale)),), (zero,))
            self.tensors[name] = Tensor(name, shape, DType.INT8, quant)
        else:
            self.tensors[name] = Tensor(name, shape, DType.FLOAT32)
        return name

    def _weights(self, name: str, shape: tuple[int, ...], axis: int) -> str:
        if not self.is_int8:
            value = self.chance.normal(0, 0.3, shape).astype(np.float32)
            self.tensors[name] = Tensor(name, shape, DType.FLOAT32)
        else:
            value = self.chance.integers(-127, 128, shape).astype(np.int8)
            scales = self.chance.uniform(0.002, 0.01, shape[axis]).astype(np.float32)
            quant = Quant(tuple(map(float, scales)), (0,) * shape[axis], axis)
            self.tensors[name] = Tensor(name, shape, DType.INT8, quant)
        self.constants[name] = value
        return name

    def _bias(self, name: str, count: int) -> str:
        kind = DType.INT32 if self.is_int8 else DType.FLOAT32
        value = self.chance.integers(-500, 500, count).astype(kind.numpy)
        if not self.is_int8:
            value = value / np.float32(1000)
        self.tensors[name] = Tensor(name, (count,), kind)
        self.constants[name] = value
        return name

    def add(
        self, op: str, name: str, shape: tuple[int, ...], *more: str, **attrs: object
    ) -> str:
        """A node that reads the last tensor and `more`."""
        scale = 1 / 256 if op == "softmax" else 0.08
        made = self._tensor(name, shape, scale, -128 if op == "softmax" else -5)
        if op in ("reshape", "max_pool2d", "avg_pool2d", "concat") and self.is_int8:
            source = self.tensors[self.last]
            self.tensors[name] = Tensor(name, shape, DType.INT8, source.quant)
        node = Node(op, name, (self.last, *more), (made,), attrs)
        self.nodes.append(node)
        self.last = made
        return made

    def conv(
        self,
        name: str,
        outputs: int,
        stride: int = 1,
        window: tuple[int, int] = (3, 3),
        pads: tuple[int, int, int, int] = (1, 1, 1, 1),
    ) -> str:
        """Padded to keep the size, ReLU."""
        n, h, w, c = self.tensors[self.last].shape
        weights = self._weights(f"{name}/w", (outputs, *window, c), 0)
        bias = self._bias(f"{name}/b", outputs)
        shape = (n, -(-h // stride), -(-w // stride), outputs)
        attrs = {"strides": (stride, stride), "pads": pads}
        return self.add(
            "conv2d", name, shape, weights, bias, clamp=(0.0, None), **attrs
        )

    def depthwise(self, name: str) -> str:
        """3x3, padded to keep the size."""
        shape = self.tensors[self.last].shape
        weights = self._weights(f"{name}/w", (3, 3, shape[3]), 2)
        bias = self._bias(f"{name}/b", shape[3])
        pads = (1, 1, 1, 1)
        return self.add("depthwise_conv2d", name, shape, weights, bias, pads=pads)

    def dense(self, name: str, outputs: int) -> str:
        n, k = self.tensors[self.last].shape
        weights = self._weights(f"{name}/w", (outputs, k), 0)
        return self.add(
            "dense", name, (n, outputs), weights, self._bias(f"{name}/b", outputs)
        )

    def graph(self, *outputs: str) -> Graph:
        made = Graph(
            self.name,
            f"{self.name}.test",
            tuple(self.nodes),
            self.tensors,
            (self.input,),
            outputs or (self.last,),
            self.constants,
        )
        verify(made)
        return made

    def model(self, *outputs: str, rounding: str = "litert") -> Model:
        return Model(f"{self.name}.test", self.graph(*outputs), rounding, "0" * 64)


def keyword_spotting(seed: int = 0) -> Network:
    """The layers of MLPerf Tiny's keyword spotting, int8, with weights from a seed."""
    net = Network("kws", (1, 49, 10, 1), "int8", seed)
    net.conv("stem", 64, 2, (10, 4), (4, 1, 5, 1))
    for number in range(4):
        net.depthwise(f"depth_{number}")
        net.conv(f"point_{number}", 64, 1, (1, 1), (0, 0, 0, 0))
    net.add("avg_pool2d", "pool", (1, 1, 1, 64), kernel=(25, 5), strides=(25, 5))
    net.add("reshape", "flat", (1, 64))
    net.dense("logits", 12)
    net.add("softmax", "scores", (1, 12), axis=1, beta=1.0)
    return net


def classifier(name: str = "tiny", kind: str = "int8", seed: int = 0) -> Network:
    """Convolution, depthwise, residual, pool, dense, softmax: 8x8x3 to 5 classes."""
    net = Network(name, (1, 8, 8, 3), kind, seed)
    skip = net.conv("stem", 8, stride=2)
    net.depthwise("depth")
    net.add("add", "residual", (1, 4, 4, 8), skip)
    net.add("max_pool2d", "pool", (1, 2, 2, 8), kernel=(2, 2), strides=(2, 2))
    net.add("reshape", "flat", (1, 32))
    net.dense("logits", 5)
    net.add("softmax", "scores", (1, 5), axis=1, beta=1.0)
    return net


def larger_resnet(width: int = 33, seed: int = 0) -> Network:
    """Six residual blocks in three stacks, as MLPerf Tiny's image classification of
    v1.4 (IC02) has them: some 750,000 weights. Widths and weights are ours."""
    net = Network("ic02", (1, 32, 32, 3), "int8", seed)
    side, channels = 32, width
    net.conv("stem", channels)
    for stack in range(3):
        for block in range(2):
            stride = 2 if stack and not block else 1
            channels, side = width << stack, side // stride
            name, source = f"block_{stack}_{block}", net.last
            net.conv(f"{name}_a", channels, stride)
            made = net.conv(f"{name}_b", channels)
            net.last = source
            if stride == 2:
                none = (0, 0, 0, 0)
                net.conv(f"{name}_skip", channels, stride, (1, 1), none)
            net.add("add", name, (1, side, side, channels), made)
    net.add("avg_pool2d", "pool", (1, 1, 1, channels), kernel=(8, 8), strides=(8, 8))
    net.add("reshape", "flat", (1, channels))
    net.dense("logits", 10)
    net.add("softmax", "scores", (1, 10), axis=1, beta=1.0)
    return net
