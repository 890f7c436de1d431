"""Writes arm/*.pt2 beside it, and arm.npz: a net of branches as the quantisers of
ExecuTorch's Arm backends leave it, for CMSIS-NN and by TOSA, and what it computes.

python tests/exported/export_arm.py [FOLDER]: needs executorch, torch and torchao.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from executorch.backends.arm import quantizer as arm
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
from torch import nn
from torch.nn import functional
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.export_pt2 import stored

HERE = Path(__file__).parent
NAMES = ("cortex_m", "tosa_int8", "tosa_int16")


class Branches(nn.Module):
    """Rows that meet in add and concat, so that scales are shared; a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, 1)
        self.depthwise = nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.pointwise = nn.Conv2d(8, 8, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.first(x))
        y = functional.relu(self.pointwise(functional.relu(self.depthwise(x))))
        z = torch.cat([x + y, functional.max_pool2d(y, 3, 1, 1)], 1)
        z = functional.adaptive_avg_pool2d(z, 1).flatten(1)
        return functional.softmax(self.head(z), 1)


def quantiser(name: str) -> object:
    if name == "cortex_m":
        return CortexMQuantizer()
    wide = name == "tosa_int16"
    level = TosaSpecification.create_from_string("TOSA-1.0+INT" + "+int16" * wide)
    made = arm.TOSAQuantizer(level)
    if wide:
        return made.set_global(arm.get_symmetric_a16w8_quantization_config())
    return made.set_global(arm.get_symmetric_quantization_config(is_per_channel=True))


def main(folder: Path = HERE) -> None:
    warnings.simplefilter("ignore")
    (folder / "arm").mkdir(exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    for name in NAMES:
        torch.manual_seed(3)
        net, example = Branches().eval(), torch.randn(1, 3, 16, 16)
        if name == "cortex_m":
            net = net.to(memory_format=torch.channels_last)
            example = example.to(memory_format=torch.channels_last)
        program = torch.export.export(net, (example,)).module(check_guards=False)
        ready = prepare_pt2e(program, quantiser(name))
        for _ in range(4):
            ready(torch.randn_like(example))
        made = convert_pt2e(ready)
        exported = torch.export.export(made, (example,))
        (folder / "arm" / f"{name}.pt2").write_bytes(stored(exported, name))
        x = torch.cat([torch.randn_like(example) for _ in range(8)])
        arrays[f"{name}.x"] = x.contiguous().numpy()
        rows = [made(one[None]).detach().numpy() for one in x]
        arrays[f"{name}.y"] = np.concatenate(rows)
    np.savez_compressed(folder / "arm.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
