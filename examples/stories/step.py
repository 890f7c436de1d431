"""What runs on a device: one token and its position in, the logits of the next out.

Weights are int8 with a scale for each output; so are the keys and values of all
positions so far, with a scale for each layer. A step writes one row of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.ao.quantization.fx._decomposed  # makes torch.ops.quantized_decomposed
from network import Llama, Sizes, rotated
from torch import Tensor, nn
from torch.nn import functional as F


class Matrix(nn.Module):
    """The weights of a layer without bias, int8: x @ (scale * weight).T."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        scale = weight.abs().amax(1) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("zero", torch.zeros(len(weight), dtype=torch.int64))
        rounded = torch.round(weight / scale[:, None])
        self.register_buffer("weight", rounded.to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        real = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.weight, self.scale, self.zero, 0, -128, 127, torch.int8
        )
        return F.linear(x, real)

    def row(self, token: Tensor) -> Tensor:
        """One row of the matrix, as real numbers."""
        return self.weight[token].float() * self.scale[token]


class LayerStep(nn.Module):
    """reach: the greatest key and the greatest value, which become 127."""

    def __init__(self, layer: nn.Module, reach: tuple[float, float]) -> None:
        super().__init__()
        self.steps = tuple(127 / most for most in reach)
        self.sizes, self.before, self.after = layer.sizes, layer.before, layer.after
        for name in ("q", "k", "v", "o", "gate", "up", "down"):
            setattr(self, name, Matrix(getattr(layer, name).weight.detach()))

    def forward(
        self, x: Tensor, caches: tuple[Tensor, Tensor], place: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """place: the position, its cosines and sines, what lies behind it."""
        s, (at, cos, sin, later) = self.sizes, place
        y = self.before(x)
        q = rotated(self.q(y).view(s.pairs, -1, s.each), cos, sin)
        k = rotated(self.k(y).view(1, s.pairs, 1, s.each), cos, sin)
        v = self.v(y).view(1, s.pairs, 1, s.each)
        keys, values = self.written(caches, at, (k, v))
        k, v = (
            cache[0].float() * (1 / steps)
            for cache, steps in zip((keys, values), self.steps, strict=True)
        )
        scores = q @ k.transpose(1, 2) / math.sqrt(s.each)
        scores = scores.masked_fill(later, -torch.inf)
        y = torch.softmax(scores, -1) @ v
        x = x + self.o(y.reshape(1, s.width))
        y = self.after(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return x, keys, values

    def written(
        self, caches: tuple[Tensor, ...], at: Tensor, rows: tuple[Tensor, ...]
    ) -> list[Tensor]:
        """The caches, each with a row of it replaced, in steps from -127 to 127."""
        made = []
        for cache, row, steps in zip(caches, rows, self.steps, strict=True):
            row = torch.clamp(torch.round(row * steps), -127, 127).to(torch.int8)
            made.append(cache.index_copy(2, at, row))
        return made


class Step(nn.Module):
    """token [1], at [1], then keys and values of each layer; logits [1, words], then
    the keys and values to hand in next."""

    def __init__(self, net: Llama, reach: list[tuple[float, float]]) -> None:
        super().__init__()
        self.sizes = s = net.sizes
        self.words, self.norm = Matrix(net.words.weight.detach()), net.norm
        self.layers = nn.ModuleList(map(LayerStep, net.layers, reach))
        cos, sin = s.angles()
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        self.register_buffer("numbers", torch.arange(s.window))

    def forward(self, token: Tensor, at: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        place = at, self.cos[at], self.sin[at], self.numbers > at
        x, made = self.words.row(token), []
        for i, layer in enumerate(self.layers):
            x, keys, values = layer(x, caches[2 * i : 2 * i + 2], place)
            made += [keys, values]
        return self.words(self.norm(x)), *made


class KeptStep(nn.Module):
    """The same with the caches in buffers: token [1], at [1]; logits [1, words]."""

    def __init__(self, net: Llama, reach: list[tuple[float, float]]) -> None:
        super().__init__()
        self.step = Step(net, reach)
        for name, value in zip(cache_names(net.sizes), caches(net.sizes), strict=True):
            self.register_buffer(name, value)

    def forward(self, token: Tensor, at: Tensor) -> Tensor:
        held = [getattr(self, name) for name in cache_names(self.step.sizes)]
        logits, *made = self.step(token, at, *held)
        for old, new in zip(held, made, strict=True):
            old.copy_(new)
        return logits


def reach_of(net: Llama, tokens: Tensor) -> list[tuple[float, float]]:
    """The greatest key and value of each layer, over some stories [batch, count]."""
    found: list[list[float]] = [[] for _ in net.layers]

    def note(index: int) -> Callable[..., None]:
        # a rotation makes a key at most the length of its pair
        return lambda layer, given, made: found[index].append(
            float(made.unflatten(-1, (-1, 2)).norm(dim=-1).max())
            if layer is net.layers[index].k
            else float(made.abs().max())
        )

    hooks = [
        linear.register_forward_hook(note(i))
        for i, layer in enumerate(net.layers)
        for linear in (layer.k, layer.v)
    ]
    with torch.no_grad():
        net(tokens)
    for hook in hooks:
        hook.remove()
    return [(k, v) for k, v in found]


def caches(s: Sizes) -> list[Tensor]:
    shape = (1, s.pairs, s.window, s.each)
    return [torch.zeros(shape, dtype=torch.int8) for _ in range(2 * s.layers)]


def cache_names(s: Sizes) -> list[str]:
    return [f"{kind}{n}" for n in range(s.layers) for kind in ("keys", "values")]
