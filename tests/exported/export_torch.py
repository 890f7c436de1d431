"""Writes the .onnx files beside it as PyTorch's exporter does, and what they compute.

python tests/exported/export_torch.py [FOLDER]: needs torch and onnxscript. Where a net
has two files, `_raw` is without the exporter's optimiser: nothing folded. What says
where the script lay is left out of the files.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from torch import Tensor, nn

HERE = Path(__file__).parent


class Mobile(nn.Module):
    """Convolutions, batch norm, three activations, adaptive pooling, flatten."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, stride=2, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU6(),
            nn.Conv2d(8, 12, 1),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(12, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Squeeze(nn.Module):
    """A gate by channels, and pooling over a size that the code asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.less, self.more = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.mish(self.stem(x))
        gate = self.more(F.relu(self.less(x.mean((2, 3), keepdim=True))))
        x = F.hardsigmoid(x * torch.sigmoid(gate))
        return self.head(F.avg_pool2d(x, x.shape[-2:]).squeeze(-1).squeeze(-1))


class Shapes(nn.Module):
    """Shape, Gather, Concat, Reshape: channels shuffled, resized, cut in half."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        y = x.view(b, 2, c // 2, h, w).transpose(1, 2).reshape(b, c, h, w)
        y = F.relu(self.first(y))
        y = self.second(F.interpolate(y, size=(h * 2, w * 2), mode="nearest"))
        y = F.interpolate(y, scale_factor=0.5, mode="bilinear", align_corners=False)
        y = torch.cat([y, x], 1)
        y = y[:, :, : y.shape[2] // 2]
        return y.flatten(1).unflatten(1, (2 * c, -1)).amax(-1)


class Unet(nn.Module):
    """Normalised by instance and by group, down, up and joined."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.LeakyReLU(0.1))
        self.low = nn.Sequential(
            nn.Conv2d(4, 8, 3, padding=1), nn.InstanceNorm2d(8, affine=True), nn.ELU()
        )
        self.up = nn.Upsample(scale_factor=2)
        self.last = nn.Sequential(
            nn.Conv2d(12, 4, 3, padding="same"), nn.PReLU(4), nn.Conv2d(4, 2, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        high = self.down(x)
        return self.last(torch.cat([high, self.up(self.low(F.max_pool2d(high, 2)))], 1))


class Causal(nn.Module):
    """Convolutions in one dimension, padded before in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(6, 8, 3, dilation=2)
        self.norm = nn.BatchNorm1d(8)
        self.second = nn.Conv1d(8, 8, 3, groups=8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.norm(self.first(F.pad(x, (4, 0)))))
        return self.head(self.second(F.pad(x, (2, 0), mode="replicate")).mean(-1))


class Block(nn.Module):
    """A transformer's block by PyTorch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head((x + self.mlp(self.second(x))).mean(1))


class Heads(nn.Module):
    """Attention by hand: split in three, masked; and by the function for it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (p.view(b, t, 2, c // 2).transpose(1, 2) for p in parts)
        scores = q @ k.transpose(-2, -1) / (c // 2) ** 0.5
        mask = torch.tril(torch.ones(t, t))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        y = torch.softmax(scores, -1) @ v
        y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Recurrent(nn.Module):
    """LSTM in both directions, then GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        _, last = self.gru(y)
        return self.head(last[-1])


class Cells(nn.Module):
    """A loop of Python over cells: written out by the exporter."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm = nn.GRUCell(4, 4), nn.LSTMCell(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 4)
        c, g = torch.zeros_like(h), torch.zeros_like(h)
        for step in range(x.shape[1]):
            h = self.gru(x[:, step], h)
            g, c = self.lstm(h, (g, c))
        return g


class Windows(nn.Module):
    """Rolled, cut in windows, put together, pixels shuffled."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, h, w, c = x.shape
        x = torch.roll(x, shifts=(-1, -1), dims=(1, 2))
        x = x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5)
        x = self.inside(x.contiguous().view(-1, 4, c))
        x = x.view(b, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5)
        return F.pixel_shuffle(x.reshape(b, h, w, c).permute(0, 3, 1, 2), 2)


class Indices(nn.Module):
    """What is written into a tensor, and read by numbers."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = torch.where(x > 0, x, torch.exp(x) - 1).clone()
        y[:, 0] = 0
        y[:, :, 1:3] = y[:, :, 0:2] * 2
        back = torch.arange(x.shape[-1]).flip(0)
        return y[..., back], torch.cumsum(y, 1), y.softmax(1).max(1).indices


NETS: dict[str, tuple[type[nn.Module], tuple[int, ...], bool]] = {
    "mobile": (Mobile, (3, 12, 12), True),
    "mobile_raw": (Mobile, (3, 12, 12), False),
    "squeeze": (Squeeze, (3, 6, 6), True),
    "shapes_raw": (Shapes, (4, 8, 8), False),
    "unet": (Unet, (2, 8, 8), True),
    "causal_raw": (Causal, (6, 12), False),
    "block": (Block, (5, 8), True),
    "heads_raw": (Heads, (5, 8), False),
    "recurrent_raw": (Recurrent, (3, 4), False),
    "cells_raw": (Cells, (2, 4), False),
    "windows": (Windows, (4, 4, 8), True),
    "indices_raw": (Indices, (4, 6), False),
}


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    net = kind().eval()
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    return net


def plain(path: Path) -> None:
    """The file without names of files and functions of the exporter's machine."""
    model = onnx.load(path)
    del model.metadata_props[:]
    for one in (model.graph, *model.graph.node, *model.graph.value_info):
        one.doc_string = ""
        del one.metadata_props[:]
    onnx.save(model, path)


def export(name: str, folder: Path) -> dict[str, np.ndarray]:
    """The file, and by name what goes in and comes out of the net for one sample."""
    kind, shape, optimised = NETS[name]
    net, batch = made(kind), torch.randn(2, *shape)
    path = folder / f"{name}.onnx"
    torch.onnx.export(
        net, (batch,), path, dynamo=True, optimize=optimised, external_data=False,
        verbose=False, input_names=["x"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
    )  # fmt: skip
    plain(path)
    with torch.no_grad():
        out = net(batch[:1])
    outs = out if isinstance(out, tuple) else (out,)
    return {
        f"{name}.x": batch[:1].numpy(),
        **{f"{name}.{i}": value.numpy() for i, value in enumerate(outs)},
    }


def main(folder: Path = HERE) -> None:
    warnings.simplefilter("ignore")
    arrays: dict[str, np.ndarray] = {}
    for name in NETS:
        arrays |= export(name, folder)
    # the default: weights in a file beside the model
    net = nn.Sequential(nn.Linear(16, 20), nn.ReLU(), nn.Linear(20, 4))
    torch.onnx.export(net, (torch.randn(1, 16),), folder / "beside.onnx", verbose=False)
    model = onnx.load(folder / "beside.onnx", load_external_data=False)
    del model.metadata_props[:]
    for node in model.graph.node:
        del node.metadata_props[:]
    onnx.save(model, folder / "beside.onnx")
    np.savez_compressed(folder / "torch.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
