"""Writes static/: a layer of attention with a static cache, as transformers writes one,
by torch.export and as ONNX, with caches of float32 and int8; and what torch computes.

python tests/caches/export_static.py: needs torch and onnxscript.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.export_pt2 import stored

HERE = Path(__file__).parent / "static"
WINDOW, HEADS, PAIRS, EACH, RUNS = 12, 4, 2, 8, 15
STEPS = 32.0  # of an int8 cache, for 1
START = torch.zeros(1, 1, HEADS * EACH), torch.tensor([0])


class Layer(nn.Module):
    """x [1, 1, 32], at [1], caches [1, 2, 12, 8]; y as x, and the caches after it."""

    def __init__(self, kind: torch.dtype, eager: bool) -> None:
        super().__init__()
        self.kind, self.eager = kind, eager
        width = HEADS * EACH
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in "qo")
        self.k, self.v = (nn.Linear(width, PAIRS * EACH, bias=False) for _ in "kv")

    def packed(self, x: Tensor) -> Tensor:
        if self.kind is torch.float32:
            return x
        return torch.clamp(torch.round(x * STEPS), -128, 127).to(torch.int8)

    def heads(self, cache: Tensor) -> Tensor:
        """repeat_kv of transformers."""
        if self.kind is not torch.float32:
            cache = cache.float() * (1 / STEPS)
        wide = cache[:, :, None].expand(1, PAIRS, HEADS // PAIRS, WINDOW, EACH)
        return wide.reshape(1, HEADS, WINDOW, EACH)

    def forward(
        self, x: Tensor, at: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = (
            layer(x).view(1, 1, -1, EACH).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        keys = keys.index_copy(2, at, self.packed(k))
        values = values.index_copy(2, at, self.packed(v))
        k, v = self.heads(keys), self.heads(values)
        live = torch.arange(WINDOW)[None, None, None] <= at[:, None]
        if self.eager:
            mask = torch.where(live, 0.0, torch.finfo(torch.float32).min)
            scores = q @ k.transpose(2, 3) * EACH**-0.5 + mask
            y = torch.softmax(scores, -1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=live)
        y = self.o(y.transpose(1, 2).reshape(1, 1, HEADS * EACH))
        return y, keys, values


class Kept(nn.Module):
    """The same with the caches in buffers."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        for name in ("keys", "values"):
            self.register_buffer(name, empty(layer.kind))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        y, keys, values = self.layer(x, at, self.keys, self.values)
        self.keys.copy_(keys)
        self.values.copy_(values)
        return y


def empty(kind: torch.dtype) -> Tensor:
    return torch.zeros(1, PAIRS, WINDOW, EACH, dtype=kind)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    arrays: dict[str, np.ndarray] = {}
    for eager in (False, True):
        for kind in (torch.float32, torch.int8):
            way = "eager" if eager else "sdpa"
            name = f"{way}_{str(kind).removeprefix('torch.')}"
            layer = Layer(kind, eager).eval()
            program = torch.export.export(Kept(layer), START)
            (HERE / f"{name}.pt2").write_bytes(stored(program, name))
            torch.onnx.export(
                layer, (*START, empty(kind), empty(kind)), HERE / f"{name}.onnx",
                dynamo=True, external_data=False,
                input_names=["x", "at", "keys", "values"],
                output_names=["y", "keys_next", "values_next"],
            )  # fmt: skip
            model = onnx.load(HERE / f"{name}.onnx")
            for node in model.graph.node:  # where this script lies on this machine
                del node.metadata_props[:]
            onnx.save(model, HERE / f"{name}.onnx")
            x, kept = torch.randn(RUNS, 1, 1, HEADS * EACH), Kept(layer)
            with torch.no_grad():
                ys = [kept(one, torch.tensor([i % WINDOW])) for i, one in enumerate(x)]
            arrays |= {f"{name}.x": x.numpy(), f"{name}.y": torch.stack(ys).numpy()}
    np.savez_compressed(HERE.parent / "static.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
