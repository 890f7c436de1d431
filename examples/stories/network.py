"""A small Llama as PyTorch trains it: norms by root mean squares, rotary positions,
heads that share keys and values, SwiGLU, words as the output layer's weights too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Sizes:
    """The sizes of the model; by default those of karpathy's stories260K."""

    words: int = 512
    layers: int = 5
    width: int = 64
    heads: int = 8
    pairs: int = 4
    hidden: int = 172
    window: int = 256

    @property
    def each(self) -> int:
        return self.width // self.heads

    def angles(self) -> tuple[Tensor, Tensor]:
        """Cosines and sines of each position, [window, each / 2]."""
        rates = 1e4 ** -(torch.arange(0, self.each, 2) / self.each)
        turned = torch.outer(torch.arange(self.window), rates)
        return turned.cos(), turned.sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours of the last axis, turned by the angles of their position."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.sizes, kept = s, s.pairs * s.each
        self.before, self.after = Norm(s.width), Norm(s.width)
        self.q = nn.Linear(s.width, s.width, bias=False)
        self.k, self.v = (nn.Linear(s.width, kept, bias=False) for _ in "kv")
        self.o = nn.Linear(s.width, s.width, bias=False)
        self.gate, self.up = (nn.Linear(s.width, s.hidden, bias=False) for _ in "ab")
        self.down = nn.Linear(s.hidden, s.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        s, y = self.sizes, self.before(x)
        count = x.shape[1]

        def heads(y: Tensor, many: int) -> Tensor:
            return y.view(-1, count, many, s.each).transpose(1, 2)

        q = rotated(heads(self.q(y), s.heads), cos[:count], sin[:count])
        k = rotated(heads(self.k(y), s.pairs), cos[:count], sin[:count])
        v = heads(self.v(y), s.pairs)
        k, v = (one.repeat_interleave(s.heads // s.pairs, 1) for one in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(-1, count, s.width))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Tokens [batch, count] in, logits [batch, count, words] out."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = Norm(sizes.width)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                scale = 1 / math.sqrt(weight.shape[1] * (10 if "down" in name else 1))
                nn.init.normal_(weight, 0, 0.05 if name == "words.weight" else scale)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        cos, sin = self.sizes.angles()
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x) @ self.words.weight.T
