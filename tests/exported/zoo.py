"""Architectures of the field, small, seeded weights: what docs/models.md is made of.

Needs torch. Each is a name, a module, and the shape of an example input.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.exported.zoo_blocks import Attention, Block, Inverted, block

Made = tuple[nn.Module, tuple[Tensor, ...]]


def mobilenet(three: bool) -> nn.Module:
    blocks = [Inverted(8, 8, 1, 2, three), Inverted(8, 12, 2, 4, three)]
    blocks += [Inverted(12, 12, 1, 4, three), Inverted(12, 16, 2, 4, three)]
    head = [block(16, 32, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
    return nn.Sequential(block(3, 8, 3, 2), *blocks, *head)


class Shuffle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = block(3, 16, 3, 2)
        self.a = nn.Sequential(block(8, 8, 1), block(8, 8, 3, 1, 8), block(8, 8, 1))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        a, b = x.chunk(2, 1)
        x = torch.cat([a, self.a(b)], 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.head(x.mean((2, 3)))


class ConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 12, 4, 4), nn.LayerNorm(12)
        self.depth = nn.Conv2d(12, 12, 7, padding=3, groups=12)
        self.up, self.down = nn.Linear(12, 48), nn.Linear(48, 12)
        self.scale, self.head = nn.Parameter(torch.full((12,), 0.5)), nn.Linear(12, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        y = self.depth(x).permute(0, 2, 3, 1)
        y = self.down(F.gelu(self.up(self.norm(y)))) * self.scale
        x = x + y.permute(0, 3, 1, 2)
        return self.head(x.mean((-2, -1)))


class UNet(nn.Module):
    def __init__(self, up: bool) -> None:
        super().__init__()
        self.one, self.two = block(3, 8), block(8, 16)
        self.up: nn.Module = (
            nn.Upsample(scale_factor=2, mode="bilinear")
            if up
            else nn.ConvTranspose2d(16, 16, 2, 2)
        )
        self.last = nn.Sequential(block(24, 8), nn.Conv2d(8, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        a = self.one(x)
        b = self.two(F.max_pool2d(a, 2))
        return self.last(torch.cat([a, self.up(b)], 1))


class Yolo(nn.Module):
    """Two scales with nearest upsampling, SiLU, and a head that decodes boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1)
        self.c, self.head = nn.Conv2d(24, 16, 1), nn.Conv2d(16, 9, 1)
        ys, xs = torch.meshgrid(torch.arange(12), torch.arange(12), indexing="ij")
        self.register_buffer("grid", torch.stack([xs, ys], 0).float()[None])

    def forward(self, x: Tensor) -> Tensor:
        a = F.silu(self.a(x))
        b = F.silu(self.b(a))
        up = F.interpolate(b, scale_factor=2.0, mode="nearest")
        y = self.head(F.silu(self.c(torch.cat([a, up], 1))))
        xy = (y[:, :2].sigmoid() * 2 - 0.5 + self.grid) * 2
        wh = (y[:, 2:4].sigmoid() * 2) ** 2
        return torch.cat([xy, wh, y[:, 4:].sigmoid()], 1).flatten(2).transpose(1, 2)


def ds_cnn() -> nn.Module:
    parts = [block(1, 16, 3, 2)]
    for _ in range(2):
        parts += [block(16, 16, 3, 1, 16), block(16, 16, 1)]
    return nn.Sequential(
        *parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 12)
    )


class Tcn(nn.Module):
    """Causal, dilated convolutions of one axis."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(8, 8, 3, dilation=2**i) for i in range(3))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = x + F.relu(layer(F.pad(x, (2 * 2**i, 0))))
        return self.head(x[:, :, -1])


class Audio(nn.Module):
    """Depthwise convolutions of one axis, as keyword nets on raw features have."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = [nn.Conv1d(10, 32, 3, 2, 1), nn.ReLU()]
        for _ in range(2):
            parts += [nn.Conv1d(32, 32, 9, 1, 4, groups=32), nn.BatchNorm1d(32)]
            parts += [nn.ReLU(), nn.Conv1d(32, 32, 1), nn.ReLU()]
        self.body, self.head = nn.Sequential(*parts), nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x).mean(-1))


class Recurrent(nn.Module):
    def __init__(self, kind: str, both: bool = False) -> None:
        super().__init__()
        cls = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
        self.cell = cls(6, 12, batch_first=True, bidirectional=both)
        self.head = nn.Linear(24 if both else 12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 24, 8, 8)
        self.place = nn.Parameter(torch.randn(1, 17, 24) * 0.1)
        self.token = nn.Parameter(torch.randn(1, 1, 24) * 0.1)
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(24)
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 24), nn.Embedding(12, 24)
        self.blocks, self.head = nn.Sequential(Block(), Block()), nn.Linear(24, 3)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(torch.tanh(self.blocks(x)[:, 0]))


class Gpt(nn.Module):
    """One token a run; keys and values of those before are buffers."""

    def __init__(self, width: int = 16, length: int = 8) -> None:
        super().__init__()
        self.words, self.qkv = nn.Embedding(30, width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, 30)
        self.register_buffer("keys", torch.zeros(1, length, width))
        self.register_buffer("values", torch.zeros(1, length, width))

    def forward(self, token: Tensor) -> Tensor:
        q, k, v = self.qkv(self.words(token)).chunk(3, -1)
        self.keys.copy_(torch.cat([self.keys[:, 1:], k], 1))
        self.values.copy_(torch.cat([self.values[:, 1:], v], 1))
        p = torch.softmax(q @ self.keys.transpose(1, 2) / 4.0, -1)
        return self.out(p @ self.values)


class Conformer(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 32), nn.Linear(32, width)
        self.attend, self.gate = Attention(width, 2), nn.Conv1d(width, 2 * width, 1)
        self.depth = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.bn, self.last = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.down(F.silu(self.up(self.norms[0](x))))
        x = x + self.attend(self.norms[1](x))
        y = F.glu(self.gate(self.norms[2](x).transpose(1, 2)), 1)
        y = self.last(F.silu(self.bn(self.depth(y))))
        return self.head(self.norms[3](x + y.transpose(1, 2)))


class Whisper(nn.Module):
    """The encoder: two convolutions, fixed places, blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(16, 24, 3, 1, 1), nn.Conv1d(24, 24, 3, 2, 1)
        angle = torch.arange(20)[:, None] * 0.3 ** torch.arange(12)[None]
        self.register_buffer("places", torch.cat([angle.sin(), angle.cos()], 1))
        self.blocks, self.norm = nn.Sequential(Block(), Block()), nn.LayerNorm(24)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.b(F.gelu(self.a(x)))).transpose(1, 2) + self.places
        return self.norm(self.blocks(x))


class Wav2vec(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(1, 24, 10, 5), nn.Conv1d(24, 24, 3, 2)
        self.norm, self.places = (
            nn.GroupNorm(24, 24),
            nn.Conv1d(24, 24, 8, 1, 4, groups=4),
        )
        self.block, self.head = Block(), nn.Linear(24, 6)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.b(F.gelu(self.norm(self.a(x)))))
        x = (x + F.gelu(self.places(x)[:, :, :-1])).transpose(1, 2)
        return self.head(self.block(x))


def autoencoder() -> nn.Module:
    sizes = (64, 32, 8, 32, 64)
    parts: list[nn.Module] = []
    for i, o in itertools.pairwise(sizes):
        parts += [nn.Linear(i, o), nn.BatchNorm1d(o), nn.ReLU()]
    return nn.Sequential(*parts[:-2])


def super_resolution() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, 1, 2), nn.Tanh(), nn.Conv2d(16, 16, 3, 1, 1), nn.Tanh(),
        nn.Conv2d(16, 4, 3, 1, 1), nn.PixelShuffle(2),
    )  # fmt: skip


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.last = nn.Conv2d(3, 12, 3, 2, 1), nn.Conv2d(12, 12, 3, 1, 1)
        self.group, self.each = nn.GroupNorm(3, 12), nn.InstanceNorm2d(12, affine=True)
        self.rms, self.head = nn.RMSNorm(12), nn.Linear(12, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = F.elu(self.group(self.stem(x)))
        x = F.leaky_relu(self.each(self.last(x)), 0.2)
        return self.head(self.rms(x.amax((2, 3))))


class Ssd(nn.Module):
    """Two heads on two scales, classes by softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = block(3, 16, 3, 2), block(16, 24, 3, 2)
        self.boxes = nn.ModuleList(nn.Conv2d(c, 8, 3, 1, 1) for c in (16, 24))
        self.kinds = nn.ModuleList(nn.Conv2d(c, 6, 3, 1, 1) for c in (16, 24))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(x)
        maps, n = (a, self.b(a)), x.shape[0]
        boxes, kinds = (
            torch.cat(
                [
                    head(m).permute(0, 2, 3, 1).reshape(n, -1, width)
                    for head, m in zip(heads, maps, strict=True)
                ],
                1,
            )
            for heads, width in ((self.boxes, 4), (self.kinds, 3))
        )
        return boxes, kinds.softmax(-1)


def _image(size: int = 32, channels: int = 3) -> tuple[Tensor, ...]:
    return (torch.randn(1, channels, size, size),)


ZOO: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "MobileNetV2": (lambda: mobilenet(False), _image),
    "MobileNetV3": (lambda: mobilenet(True), _image),
    "EfficientNet-lite": (
        lambda: nn.Sequential(
            block(3, 8, 3, 2), Inverted(8, 12, 2, 6), Inverted(12, 12, 1, 6),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 10),
        ), _image,
    ),
    "ShuffleNet": (Shuffle, _image),
    "ConvNeXt": (ConvNext, _image),
    "U-Net, transposed": (lambda: UNet(False), lambda: _image(16)),
    "U-Net, bilinear": (lambda: UNet(True), lambda: _image(16)),
    "YOLO": (Yolo, lambda: _image(24)),
    "DS-CNN": (ds_cnn, lambda: (torch.randn(1, 1, 25, 10),)),
    "TCN": (Tcn, lambda: (torch.randn(1, 8, 20),)),
    "audio 1-D": (Audio, lambda: (torch.randn(1, 10, 40),)),
    "GRU": (lambda: Recurrent("gru"), lambda: (torch.randn(1, 10, 6),)),
    "LSTM": (lambda: Recurrent("lstm"), lambda: (torch.randn(1, 10, 6),)),
    "LSTM, bidirectional": (
        lambda: Recurrent("lstm", True), lambda: (torch.randn(1, 10, 6),)
    ),
    "Conformer": (Conformer, lambda: (torch.randn(1, 12, 16),)),
    "ViT": (Vit, _image),
    "BERT": (Bert, lambda: (torch.randint(0, 40, (1, 12)),)),
    "GPT, cached": (Gpt, lambda: (torch.randint(0, 30, (1, 1)),)),
    "Whisper encoder": (Whisper, lambda: (torch.randn(1, 16, 40),)),
    "wav2vec2": (Wav2vec, lambda: (torch.randn(1, 1, 240),)),
    "autoencoder": (autoencoder, lambda: (torch.randn(1, 64),)),
    "PixelShuffle": (super_resolution, lambda: _image(12, 1)),
    "norms": (Norms, _image),
    "SSD": (Ssd, _image),
}  # fmt: skip


def made(name: str) -> Made:
    """The network, its statistics as after training, and an example input."""
    torch.manual_seed(sorted(ZOO).index(name))
    net, example = (one() for one in ZOO[name])
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean, -0.3, 0.3)
            nn.init.uniform_(part.running_var, 0.5, 1.5)
            nn.init.uniform_(part.weight, 0.6, 1.4)
    return net.eval(), example


def again(example: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Another input like the example."""
    return tuple(
        torch.randint(0, 30, x.shape)
        if x.dtype == torch.int64
        else torch.randn(x.shape)
        for x in example
    )
