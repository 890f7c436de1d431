"""Trains the network of this folder in PyTorch and writes it: keyword.onnx, and
calibration.npz to quantise it with. Seeded; espeak-ng speaks what it hears (speak.py).

Needs torch, onnxscript and espeak-ng; some minutes. Features are those of front.toml,
compiled: training has the bits of the device.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from sounds import RATE, WORDS, Voices, recordings, voices
from speak import learned
from torch import Tensor, nn

import pybuild
from pybuild.front import read_front

HERE = Path(__file__).parent
ROWS, BANDS, WIDE, TAPS = 25, 32, 24, 5
EACH, EPOCHS, BATCH, CALIBRATION, SEED = 600, 30, 128, 96, 3


class Words(nn.Module):
    """[n, BANDS, ROWS], time last, to scores: two convolutions over time, the mean of
    what they find, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.found = nn.Sequential(
            nn.Conv1d(BANDS, WIDE, TAPS, bias=False),
            nn.BatchNorm1d(WIDE),
            nn.ReLU6(),
            nn.Conv1d(WIDE, WIDE, TAPS, dilation=2, bias=False),
            nn.BatchNorm1d(WIDE),
            nn.ReLU6(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(WIDE, len(WORDS)),
        )

    def forward(self, rows: Tensor) -> Tensor:
        return self.found(rows)


def rows_of(samples: np.ndarray) -> np.ndarray:
    """Features of recordings, each from silence: int8 [n, rows, BANDS]."""
    graph = read_front(HERE / "front.toml").features
    net, hop = pybuild.build(graph, name="rows").host(), 320
    made = []
    for recording in samples:
        net.reset()
        parts = recording[: len(recording) // hop * hop].reshape(-1, hop)
        made.append([net.run(samples=part)["features"] for part in parts])
    return np.array(made)


def windows(each: int, seed: int, spoken: Voices) -> tuple[np.ndarray, np.ndarray]:
    """The last ROWS of features, some moments around the ends of words: real numbers
    [n, BANDS, ROWS], and the words."""
    samples, words, ends = recordings(each, seed, spoken)
    rows = rows_of(samples)
    scale = 17 / 255  # of log_mel without gain
    rng, x, y = np.random.default_rng(seed), [], []
    silence = np.full((ROWS, BANDS), -128, np.int8)
    for made, word, end in zip(rows, words, ends, strict=True):
        whole, last = np.concatenate([silence, made]), int(end) // (RATE // 50)
        if word:  # it is over, so it is no part of another; then before, and within
            moments = [*last + rng.integers(2, 9, 4), *rng.integers(0, last - 1, 4)]
            y += [word] * 4 + [0] * 4
        else:
            moments = [*rng.integers(1, len(made), 12)]
            y += [0] * 12
        x += [whole[m : m + ROWS].T for m in np.clip(moments, 0, len(made))]
    return (np.array(x, np.float32) + 128) * np.float32(scale), np.array(y)


def trained(x: Tensor, y: Tensor) -> nn.Module:
    torch.manual_seed(SEED)
    net, steps = Words(), EPOCHS * (len(x) // BATCH)
    descent = torch.optim.AdamW(net.parameters(), weight_decay=0.02)
    rate = torch.optim.lr_scheduler.OneCycleLR(descent, 0.01, steps)
    for _ in range(steps):
        chosen = torch.randint(len(x), (BATCH,))
        descent.zero_grad()
        nn.functional.cross_entropy(net(x[chosen]), y[chosen]).backward()
        descent.step()
        rate.step()
    return nn.Sequential(net, nn.Softmax(1)).eval()


def save(net: nn.Module) -> None:
    """As PyTorch exports it, without what says where this script lay."""
    path = HERE / "keyword.onnx"
    torch.onnx.export(
        net, (torch.zeros(1, BANDS, ROWS),), path, dynamo=True, external_data=False,
        verbose=False, input_names=["rows"], output_names=["scores"],
    )  # fmt: skip
    model = onnx.load(path)
    del model.metadata_props[:]
    for one in (model.graph, *model.graph.node, *model.graph.value_info):
        one.doc_string = ""
        del one.metadata_props[:]
    onnx.save(model, path)


def main() -> None:
    torch.set_num_threads(1)  # sums in one order: the same file each time
    x, y = windows(EACH, SEED, learned())
    net = trained(torch.from_numpy(x), torch.from_numpy(y))
    tested, known = windows(40, SEED + 1, voices())
    with torch.no_grad():
        right = net(torch.from_numpy(tested)).numpy().argmax(1) == known
    print(
        f"{len(y)} windows; of {len(known)} with other voices right: {right.mean():.1%}"
    )
    save(net)
    chosen = np.random.default_rng(SEED).choice(len(y), CALIBRATION, replace=False)
    np.savez_compressed(
        HERE / "calibration.npz", rows=x[chosen][:, None], labels=y[chosen]
    )


if __name__ == "__main__":
    main()
