"""A language model's step as ONNX, of weights by a seed: token and position in, logits
out, with a cache of keys and values for each layer. The same step in numpy.

Knows how exporters write such a step; nothing of how it is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a step; those of stories260K, but for the file's vocabulary."""

    layers: int = 5
    width: int = 64
    heads: int = 8
    pairs: int = 4
    hidden: int = 172
    words: int = 512
    window: int = 256

    @property
    def each(self) -> int:
        return self.width // self.heads

    @property
    def cache_bytes(self) -> int:
        return 2 * self.layers * self.pairs * self.window * self.each * 4

    @property
    def rows(self) -> tuple[int, int, int]:
        """The shape of a cache, rows first."""
        return self.window, self.pairs, self.each

    @property
    def names(self) -> list[str]:
        return [f"{kind}{n}" for n in range(self.layers) for kind in "kv"]

    @property
    def state(self) -> dict[str, str]:
        return {name: f"{name}_next" for name in self.names}


SMALL = Sizes(2, 16, 4, 2, 24, 32, 16)


def weights(sizes: Sizes, seed: int = 0) -> dict[str, Array]:
    chance = np.random.default_rng(seed)

    def made(*shape: int) -> Array:
        scale = 1 / np.sqrt(shape[0])
        return chance.normal(0, scale, shape).astype(np.float32)

    s = sizes
    found = {"words": made(s.words, s.width) * 8, "norm": 1 + made(s.width)}
    kept = s.pairs * s.each
    for n in range(s.layers):
        found |= {
            f"wq{n}": made(s.width, s.width), f"wk{n}": made(s.width, kept),
            f"wv{n}": made(s.width, kept), f"wo{n}": made(s.width, s.width),
            f"w1{n}": made(s.width, s.hidden), f"w3{n}": made(s.width, s.hidden),
            f"w2{n}": made(s.hidden, s.width), f"before{n}": 1 + made(s.width),
            f"after{n}": 1 + made(s.width),
        }  # fmt: skip
    angles = np.outer(np.arange(s.window), 1e4 ** -(np.arange(0, s.each, 2) / s.each))
    found |= {"cos": np.cos(angles).astype(np.float32)}
    return found | {"sin": np.sin(angles).astype(np.float32)}


@dataclass
class Step:
    """The graph being written. spelling: how a row of a cache is written.

    repeated    heads read copies of keys and values, broadcast
    rows_first  caches are [window, pairs, each] ("flat": of two axes); else
                [1, pairs, window, each]
    """

    sizes: Sizes
    spelling: str = "elements"
    rows_first: bool = True
    repeated: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def op(self, op: str, *inputs: str, out: str = "", **attrs: object) -> str:
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attrs))
        return out

    def const(self, value: object, dtype: type = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.const(shape))

    @property
    def opset(self) -> int:
        return 24 if self.spelling == "tensor" else 17

    def mean(self, x: str) -> str:
        if self.opset < 18:
            return self.op("ReduceMean", x, axes=[-1])
        return self.op("ReduceMean", x, self.const([-1]))

    def norm(self, x: str, scale: str) -> str:
        square = self.mean(self.op("Mul", x, x))
        square = self.op("Add", square, self.const(1e-5, np.float32))
        return self.op("Mul", self.op("Div", x, self.op("Sqrt", square)), scale)

    def turned(self, x: str, heads: int) -> str:
        """Rotary positions: pairs of neighbours."""
        half = self.sizes.each // 2
        x = self.reshape(x, heads, half, 2)
        a, b = (self.op("Gather", x, self.const(i), axis=2) for i in (0, 1))
        c, s = (self.op("Gather", t, "at", axis=0) for t in ("cos", "sin"))
        left = self.op("Sub", self.op("Mul", a, c), self.op("Mul", b, s))
        right = self.op("Add", self.op("Mul", a, s), self.op("Mul", b, c))
        axis = self.const([2])
        parts = [self.op("Unsqueeze", x, axis) for x in (left, right)]
        return self.reshape(self.op("Concat", *parts, axis=2), heads, self.sizes.each)

    def written(self, name: str, row: str) -> str:
        """The cache with a row of it replaced."""
        s, out = self.sizes, f"{name}_next"
        shape = (1, s.pairs, s.each) if self.rows_first else (1, s.pairs, 1, s.each)
        axis = 0 if self.rows_first else 2
        if self.spelling == "flat":
            at, row = self.reshape("at", 1, 1), self.reshape(row, 1, s.pairs * s.each)
            made = self.op("ScatterND", name, at, row, out=out)
            return self.reshape(made, *s.rows)
        row = self.reshape(row, *shape)
        if self.spelling == "elements":
            at = self.reshape("at", *(1 for _ in shape))
            at = self.op("Expand", at, self.const(shape))
            return self.op("ScatterElements", name, at, row, out=out, axis=axis)
        if self.spelling == "rows":
            at = self.reshape("at", 1, 1)
            return self.op("ScatterND", name, at, row, out=out)
        if self.spelling == "tensor":
            return self.op("TensorScatter", name, row, "at", out=out, axis=axis)
        rest = [self.const([n]) for n in (1, s.window, axis)]
        return self.op("Concat", self.op("Slice", name, *rest), row, out=out, axis=axis)

    def repeat(self, x: str, *each: int) -> str:
        """Keys or values, once for each head."""
        s = self.sizes
        x = self.op("Unsqueeze", x, self.const([1]))
        wide = (s.pairs, s.heads // s.pairs, *each)
        return self.reshape(self.op("Expand", x, self.const(wide)), s.heads, *each)

    def attention(self, n: int, x: str) -> str:
        s = self.sizes
        q, k, v = (self.op("MatMul", x, f"w{kind}{n}") for kind in "qkv")
        q, k = self.turned(q, s.heads), self.turned(k, s.pairs)
        keys, values = self.written(f"k{n}", k), self.written(f"v{n}", v)
        if self.rows_first:
            keys = self.op("Transpose", keys, perm=[1, 2, 0])
            values = self.op("Transpose", values, perm=[1, 0, 2])
        else:
            keys = self.reshape(keys, s.pairs, s.window, s.each)
            keys = self.op("Transpose", keys, perm=[0, 2, 1])
            values = self.reshape(values, s.pairs, s.window, s.each)
        q = self.reshape(q, s.pairs, s.heads // s.pairs, s.each)
        if self.repeated:
            q = self.reshape(q, s.heads, 1, s.each)
            keys, values = (
                self.repeat(x, *each)
                for x, each in (
                    (keys, (s.each, s.window)),
                    (values, (s.window, s.each)),
                )
            )
        scores = self.op("MatMul", q, keys)
        scale = self.const(1 / np.sqrt(s.each), np.float32)
        scores = self.op("Add", self.op("Mul", scores, scale), "mask")
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), values)
        return self.op("MatMul", self.reshape(y, 1, s.width), f"wo{n}")

    def model(self, seed: int = 0) -> onnx.ModelProto:
        s = self.sizes
        self.constants |= weights(s, seed)
        numbers = self.const(np.arange(s.window))
        if self.spelling == "tail":  # of which the last rows are known
            last = self.op("Sub", self.const(s.window - 1), numbers)
            numbers = last
        later = self.op("Greater", numbers, "at")
        none, zero = (self.const(v, np.float32) for v in (-1e9, 0))
        self.op("Where", later, none, zero, out="mask")
        x = self.op("Gather", "words", "token", axis=0)
        for n in range(s.layers):
            x = self.op("Add", x, self.attention(n, self.norm(x, f"before{n}")))
            y = self.norm(x, f"after{n}")
            gate = self.op("MatMul", y, f"w1{n}")
            gate = self.op("Mul", gate, self.op("Sigmoid", gate))
            y = self.op("Mul", gate, self.op("MatMul", y, f"w3{n}"))
            x = self.op("Add", x, self.op("MatMul", y, f"w2{n}"))
        turned = self.op("Transpose", "words", perm=[1, 0])
        self.op("MatMul", self.norm(x, "norm"), turned, out="logits")
        return self._proto()

    def _proto(self) -> onnx.ModelProto:
        s, shape = self.sizes, self.sizes.rows
        if self.spelling == "flat":
            shape = (s.window, s.pairs * s.each)
        elif not self.rows_first:
            shape = (1, s.pairs, s.window, s.each)
        value, real = helper.make_tensor_value_info, TensorProto.FLOAT
        inputs = [value(name, TensorProto.INT64, [1]) for name in ("token", "at")]
        inputs += [value(name, real, shape) for name in s.names]
        outputs = [value("logits", real, [1, s.words])]
        outputs += [value(name, real, shape) for name in s.state.values()]
        held = [numpy_helper.from_array(v, n) for n, v in self.constants.items()]
        graph = helper.make_graph(self.nodes, "step", inputs, outputs, held)
        opset = helper.make_opsetid("", self.opset)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def long_window() -> onnx.ModelProto:
    """The largest of the last 40 rows, of which 39 are kept."""
    step = Step(SMALL)
    whole = step.op("Concat", "old", "x", axis=1)
    step.op("ReduceMax", whole, out="y", axes=[1])
    step.op("Slice", whole, *(step.const([n]) for n in (1, 40, 1)), out="next")
    value, real = helper.make_tensor_value_info, TensorProto.FLOAT
    shapes = {"x": [1, 1, 8], "old": [1, 39, 8], "y": [1, 1, 8], "next": [1, 39, 8]}
    ends = [value(name, real, shape) for name, shape in shapes.items()]
    held = [numpy_helper.from_array(v, n) for n, v in step.constants.items()]
    graph = helper.make_graph(step.nodes, "window", ends[:2], ends[2:], held)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


# ---- the same in numpy ---------------------------------------------------------------


class Numpy:
    """The model with plain arrays as caches, rows first.

    tail  the newest row is the last of the window
    """

    def __init__(self, sizes: Sizes, seed: int = 0, tail: bool = False) -> None:
        self.sizes, self.weights, self.tail = sizes, weights(sizes, seed), tail
        zeros = np.zeros(sizes.rows, np.float32)
        self.caches = {name: zeros.copy() for name in sizes.names}

    def norm(self, x: Array, scale: str) -> Array:
        mean = np.mean(x * x, -1, keepdims=True) + np.float32(1e-5)
        return np.asarray(x / np.sqrt(mean) * self.weights[scale], np.float32)

    def turned(self, x: Array, heads: int, at: int) -> Array:
        pairs = x.reshape(heads, -1, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        c, s = self.weights["cos"][at], self.weights["sin"][at]
        return np.stack([a * c - b * s, a * s + b * c], 2).reshape(heads, -1)

    def write(self, name: str, row: Array, at: int) -> Array:
        cache = self.caches[name]
        if self.tail:
            cache[:-1] = cache[1:].copy()
            at = len(cache) - 1
        cache[at] = row.reshape(cache[at].shape)
        return cache

    def attention(self, n: int, x: Array, at: int) -> Array:
        s, w = self.sizes, self.weights
        q = self.turned(x @ w[f"wq{n}"], s.heads, at).reshape(s.pairs, -1, s.each)
        k = self.turned(x @ w[f"wk{n}"], s.pairs, at)
        keys = self.write(f"k{n}", k, at).transpose(1, 2, 0)
        values = self.write(f"v{n}", x @ w[f"wv{n}"], at).transpose(1, 0, 2)
        numbers = np.arange(s.window)[:: -1 if self.tail else 1]
        scores = q @ keys / np.float32(np.sqrt(s.each))
        scores = np.where(numbers > at, np.float32(-1e9), scores)
        odds = np.exp(scores - scores.max(-1, keepdims=True))
        y = odds / odds.sum(-1, keepdims=True) @ values
        return np.asarray(y.reshape(1, -1) @ w[f"wo{n}"], np.float32)

    def step(self, token: int, at: int) -> Array:
        w = self.weights
        x = w["words"][[token]]
        for n in range(self.sizes.layers):
            x = x + self.attention(n, self.norm(x, f"before{n}"), at)
            y = self.norm(x, f"after{n}")
            gate = y @ w[f"w1{n}"]
            gate = gate / (1 + np.exp(-gate))
            x = x + gate * (y @ w[f"w3{n}"]) @ w[f"w2{n}"]
        return np.asarray(self.norm(x, "norm") @ w["words"].T, np.float32)
