"""Writes in_place/*.pt2 beside it, programs that write into tensors and buffers, as
torch.export saves them first and as core ATen; and in_place.npz: what torch computes.

python tests/exported/export_in_place.py: needs torch.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.export_pt2 import stored, values

HERE = Path(__file__).parent
RUNS = 3
UNARY = [
    "abs",
    "acos",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "log",
    "log10",
    "log2",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
SOME = torch.tensor([1, 3])
ROWS = torch.tensor([0, 1])
AT = torch.tensor([[0, 2], [3, 1]])
TWO = torch.tensor([[0.25, 0.5], [-0.75, 1.5]])
W = torch.linspace(-2, 2, 12).view(2, 6) + 0.1
# methods that change their tensor of [2, 6], with their arguments
BINARY: dict[str, tuple] = {
    "add_": (2.0,), "sub_": (2.0,), "mul_": (2.0,), "div_": (2.0,), "multiply_": (W,),
    "subtract_": (W,), "true_divide_": (W,), "pow_": (2.0,), "fmod_": (0.3,),
    "remainder_": (-0.3,), "floor_divide_": (0.3,), "clamp_": (-0.2, 0.3),
    "clamp_min_": (0.1,), "clip_": (-0.1, 0.1), "fill_": (1.5,), "zero_": (),
    "gt_": (0.1,), "le_": (0.1,), "ne_": (0.1,), "logical_not_": (),
    "logical_and_": (W,), "tril_": (), "triu_": (), "cumsum_": (1,), "lerp_": (W, 0.3),
    "addcmul_": (W, W), "addcdiv_": (W, W), "masked_fill_": (W > 0, 0.5),
    "index_fill_": (1, SOME, 2.0), "index_add_": (1, SOME, TWO),
    "index_copy_": (1, SOME, TWO),
    "scatter_": (1, AT, TWO), "scatter_add_": (1, AT, TWO),
    "scatter_reduce_": (1, AT, TWO, "amax"),
    "index_put_": ((ROWS, SOME), TWO[0]),
    "addmm_": (TWO, W),
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "celu": torch.celu_, "selu": torch.selu_, "elu": nn.functional.elu_,
    "leaky": lambda y: nn.functional.leaky_relu_(y, 0.1),
    "hardtanh": nn.functional.hardtanh_, "silu": lambda y: nn.functional.silu(y, True),
    "hardswish": lambda y: nn.functional.hardswish(y, True),
    "threshold": lambda y: nn.functional.threshold_(y, 0.1, 0.2),
    "value": lambda y: y.scatter_(1, AT, 2.0),
    "accumulate": lambda y: y.index_put_((ROWS,), torch.ones(1), accumulate=True),
    "mask": lambda y: y.index_put_((y > 0,), torch.tensor(7.0)),
    "part": lambda y: y.view(-1)[2:5].add_(1.0),
}  # fmt: skip


class Elements(nn.Module):
    """Each operator on a copy of its own; x is above 0 for some and both for others."""

    def forward(self, x: Tensor, p: Tensor) -> tuple[Tensor, ...]:
        made = []
        for name in UNARY:
            y = p.clone()
            getattr(y, f"{name}_")()
            made.append(y + 1)
        for name, args in BINARY.items():
            y = x.clone()
            getattr(y, name)(*args)
            made.append(y + 1)
        for change in FUNCTIONS.values():
            y = x.clone()
            change(y)
            made.append(y + 1)
        return tuple(made)


class Caches(nn.Module):
    """Keys and values of attention written in four ways; a window; a sum."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("a", "b", "c", "d"):
            self.register_buffer(name, torch.zeros(1, 2, 8, 4))
        self.register_buffer("window", torch.zeros(1, 4, 8))
        self.register_buffer("total", torch.zeros(2, 4))
        self.lin = nn.Linear(8, 8)

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        rows = self.lin(x).view(1, 1, 2, 4).transpose(1, 2)
        self.a.index_copy_(2, at, rows)
        self.b[:, :, at] = rows
        self.c.scatter_(2, at.view(1, 1, 1, 1).expand(1, 2, 1, 4), rows)
        self.d.index_add_(2, at, rows)
        self.window.copy_(
            torch.cat([self.window[:, :, 1:], rows[0, :1].transpose(1, 2)], 2)
        )
        self.total[1:].add_(rows[0, :1, 0])
        caches = [(c * rows).sum(-1) for c in (self.a, self.b, self.c, self.d)]
        return *caches, self.window.sum(1), self.total * 2


def main(folder: Path = HERE) -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    (folder / "in_place").mkdir(exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    runs = {
        "elements": [(torch.randn(2, 6), torch.rand(2, 6) * 0.8 + 0.1)],
        "caches": [(torch.randn(1, 8), torch.tensor([n])) for n in (0, 5, 3)],
    }
    for name, net in (("elements", Elements()), ("caches", Caches())):
        whole = torch.export.export(net.eval(), runs[name][0])
        for key, one in ((name, whole), (f"{name}_core", whole.run_decompositions())):
            (folder / "in_place" / f"{key}.pt2").write_bytes(stored(one, key))
        arrays |= values(net, runs[name], name)
    np.savez_compressed(folder / "in_place.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
