"""Writes dynamic.pt2 and dynamic_tensor.pt2 beside it, and dynamic.npz: nets whose
linear layers PT2E quantises dynamically, with a scale for each output or for each
tensor, and what torch computes of them.

python tests/exported/export_dynamic.py: needs torch and torchao.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.exported.export_pt2 import stored

HERE = Path(__file__).parent


class Net(nn.Module):
    """Layers of rows: two read one tensor, one has no bias, one is behind a ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(13, 16), nn.Linear(13, 16, bias=False)
        self.c, self.d = nn.Linear(16, 24), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        both = torch.tanh(self.a(x)) * torch.sigmoid(self.b(x))
        return self.d(torch.relu(self.c(both)))


def samples() -> list[Tensor]:
    """Of usual size, of one sign, nothing, tiny: smaller than the least scale; huge."""
    torch.manual_seed(3)
    x = torch.randn(1, 4, 13)
    return [x, x.abs() + 1, 0 * x, 1e-3 * x, 1e10 * x]


def quantised(each: bool) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    torch.manual_seed(7)
    net, x = Net().eval(), samples()[0]
    chosen = xnnpack.get_symmetric_quantization_config(
        is_per_channel=each, is_dynamic=True
    )
    quantiser = xnnpack.XNNPACKQuantizer().set_global(chosen)
    ready = prepare_pt2e(torch.export.export(net, (x,)).module(), quantiser)
    ready(x)
    return convert_pt2e(ready)


def main() -> None:
    warnings.simplefilter("ignore")
    arrays: dict[str, np.ndarray] = {}
    for name, each in (("dynamic", True), ("dynamic_tensor", False)):
        net = quantised(each)
        program = torch.export.export(net, (samples()[0],))
        (HERE / f"{name}.pt2").write_bytes(stored(program, name))
        with torch.no_grad():
            for run, x in enumerate(samples()):
                arrays |= {
                    f"{name}.{run}.x": x.numpy(),
                    f"{name}.{run}.y": net(x).numpy(),
                }
    np.savez_compressed(HERE / "dynamic.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
