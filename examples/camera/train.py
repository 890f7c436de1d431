"""Trains the network of this folder in PyTorch and writes it: camera.onnx, and
calibration.npz to quantise it with. Seeded; needs torch and onnx beside pybuild.

Pictures are those of front.toml, so training has the bits of the device.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scene import THINGS, frames
from torch import nn
from watch import pictures

HERE = Path(__file__).parent
EACH, EPOCHS, BATCH, SEED = 700, 14, 64, 5


def network() -> nn.Module:
    def layers(given: int, made: int) -> list[nn.Module]:
        return [nn.Conv2d(given, made, 3, 2, 1), nn.BatchNorm2d(made), nn.ReLU()]

    return nn.Sequential(
        *layers(3, 8), *layers(8, 16), *layers(16, 32), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, len(THINGS)), nn.Softmax(1),
    )  # fmt: skip


def colours(each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Colours from 0 to 1 and ones, [n, h, w, 4], and what they show."""
    taken, shown = frames(each, seed)
    return pictures().plain.real(taken), shown


def given(found: np.ndarray) -> torch.Tensor:
    """What the network is trained on: [n, 3, h, w]."""
    mean, std = np.float32(pictures().mean), np.float32(pictures().std)
    normal = (found[..., :3] - mean) / std
    return torch.from_numpy(normal.astype(np.float32).transpose(0, 3, 1, 2).copy())


def main(folder: Path) -> None:
    (x, y), (tested, known) = colours(EACH, SEED), colours(150, SEED + 1)
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    net, order = network(), np.random.default_rng(SEED)
    optimiser = torch.optim.Adam(net.parameters(), 4e-3)
    falls = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        chosen = order.permutation(len(y))
        for at in range(0, len(y), BATCH):
            part = chosen[at : at + BATCH]
            odds = net(given(x[part]))
            right = torch.from_numpy(y[part])
            loss = nn.functional.nll_loss(torch.log(odds + 1e-9), right)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        falls.step()
    net.eval()
    with torch.no_grad():
        right = (net(given(tested)).argmax(1).numpy() == known).mean()
    print(f"{len(y)} pictures; of {len(known)} others right: {right:.1%}")
    torch.onnx.export(
        net, (given(x[:1]),), folder / "camera.onnx", input_names=["image"],
        output_names=["scores"], opset_version=17, dynamo=False,
    )  # fmt: skip
    chosen = order.choice(len(y), 32, replace=False)
    np.savez_compressed(
        folder / "calibration.npz", image=(x[chosen] * 255).round().astype(np.uint8),
        labels=y[chosen].astype(np.uint8),
    )  # fmt: skip


if __name__ == "__main__":
    main(HERE)
