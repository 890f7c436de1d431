"""Blocks that several architectures of zoo.py are made of. Needs torch."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def block(i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: bool = True):
    parts = [nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*parts, *([nn.ReLU6()] if act else []))


class Inverted(nn.Module):
    """MobileNetV2's block; with a gate and hard swish MobileNetV3's."""

    def __init__(self, i: int, o: int, stride: int, wide: int, three: bool = False):
        super().__init__()
        mid = i * wide
        self.act = nn.Hardswish() if three else nn.ReLU6()
        self.up, self.depth = (
            block(i, mid, 1, act=False),
            block(mid, mid, 3, stride, mid, act=False),
        )
        self.gate = (
            nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(mid, mid // 4, 1), nn.ReLU(),
                nn.Conv2d(mid // 4, mid, 1), nn.Hardsigmoid(),
            )
            if three
            else None
        )  # fmt: skip
        self.down, self.same = block(mid, o, 1, act=False), i == o and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.depth(self.act(self.up(x))))
        if self.gate is not None:
            y = y * self.gate(y)
        y = self.down(y)
        return x + y if self.same else y


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        n, t, c = x.shape
        q, k, v = (
            self.qkv(x)
            .view(n, t, 3, self.heads, c // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        if mask is not None:
            scores = scores + mask
        y = torch.softmax(scores, -1) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width: int = 24, heads: int = 3) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attend(self.one(x), mask)
        return x + self.down(F.gelu(self.up(self.two(x))))
