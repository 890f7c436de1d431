"""What runs on a device: one token and its position in, the logits of the next out.

Weights are int8 with a scale for each output; the keys and values of all positions so
far are kept in buffers, of which a step writes one row.
"""

from __future__ import annotations

import math

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
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
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
        scores = q @ keys[0].transpose(1, 2) / math.sqrt(s.each)
        scores = scores.masked_fill(later, -torch.inf)
        y = torch.softmax(scores, -1) @ values[0]
        x = x + self.o(y.reshape(1, s.width))
        y = self.after(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return x, keys, values

    @staticmethod
    def written(
        caches: tuple[Tensor, ...], at: Tensor, rows: tuple[Tensor, ...]
    ) -> list[Tensor]:
        """The caches, each with a row of it replaced."""
        return [c.index_copy(2, at, row) for c, row in zip(caches, rows, strict=True)]


class Step(nn.Module):
    """token [1], at [1], then keys and values of each layer; logits [1, words], then
    the keys and values to hand in next."""

    def __init__(self, net: Llama) -> None:
        super().__init__()
        self.sizes = s = net.sizes
        self.words, self.norm = Matrix(net.words.weight.detach()), net.norm
        self.layers = nn.ModuleList(map(LayerStep, net.layers))
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

    def __init__(self, net: Llama) -> None:
        super().__init__()
        self.step = Step(net)
        for name, value in zip(cache_names(net.sizes), caches(net.sizes), strict=True):
            self.register_buffer(name, value)

    def forward(self, token: Tensor, at: Tensor) -> Tensor:
        held = [getattr(self, name) for name in cache_names(self.step.sizes)]
        logits, *made = self.step(token, at, *held)
        for old, new in zip(held, made, strict=True):
            old.copy_(new)
        return logits


def caches(s: Sizes) -> list[Tensor]:
    return [torch.zeros(1, s.pairs, s.window, s.each) for _ in range(2 * s.layers)]


def cache_names(s: Sizes) -> list[str]:
    return [f"{kind}{n}" for n in range(s.layers) for kind in ("keys", "values")]
