"""Programs of torch.export through the command and in Python: with a batch that is left
open, and with buffers that a run changes, which are state."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pybuild
from tests.toolchains import ROOT

pytestmark = pytest.mark.bare

EXPORTED = ROOT / "tests" / "exported"
PT2 = EXPORTED / "pt2"
CRT = (sys.executable, "-m", "pybuild.cli")
PROGRAM = """\
import sys
import torch
import pybuild

class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1, 3))

    def forward(self, x):
        self.last.add_(x)
        return self.last * 2

open_batch = ({0: torch.export.Dim("batch")},)
one = torch.export.export(
    torch.nn.ReLU(), (torch.ones(2, 3),), dynamic_shapes=open_batch
)
try:
    pybuild.load(one)
except pybuild.BuildError as error:
    dim = str(error).split("--input-dim ")[1].split("=")[0]
graph = pybuild.load(one, input_dims={dim: 4}).graph
assert graph.tensor(graph.inputs[0]).shape == (4, 3)
kept = pybuild.load(torch.export.export(Kept(), (torch.ones(1, 3),)))
net = kept.build().host("llvm")
x = torch.ones(1, 3).numpy()
for run in (1, 2, 3):
    [made] = net.run(x=x).values()
    assert (made == 2 * run).all(), made
"""


def crt(*words: object) -> str:
    done = subprocess.run(
        [*CRT, *map(str, words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def arrays(name: str, run: int, kind: str) -> np.ndarray:
    with np.load(EXPORTED / "pt2.npz") as found:
        value: np.ndarray = found[f"{name}.{run}.{kind}0"]
    return value


def test_the_command_takes_an_open_batch(tmp_path: Path) -> None:
    file, given = PT2 / "ds_cnn.pt2", ("--input-dim", "input.0=2")
    refused = subprocess.run(
        [*CRT, "build", str(file), "-o", str(tmp_path / "no")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2 and "Hint: --input-dim input.0=1" in refused.stderr
    crt("build", file, "-o", tmp_path / "out", "--name", "net", *given)
    header = (tmp_path / "out" / "net.h").read_text()
    assert 'input 0, "input": float32 [2,1,25,10]' in header
    assert "equal" in crt("check", file, "--samples", 2, "--backend", "llvm", *given)


def test_the_command_keeps_buffers(tmp_path: Path) -> None:
    file = PT2 / "gpt_cached.pt2"
    crt("build", file, "-o", tmp_path / "out", "--name", "net")
    assert "state  1,028 bytes when saved" in crt("inspect", file)
    assert "equal" in crt("check", file, "--samples", 3, "--backend", "llvm")


def test_python_takes_an_open_batch() -> None:
    model = pybuild.load(PT2 / "ds_cnn.pt2", input_dims={"s31": 1})
    net = model.build().host("llvm")
    [have] = net.run(input=arrays("ds_cnn", 0, "x")).values()
    want = arrays("ds_cnn", 0, "y")
    assert abs(have - want).max() <= 1e-5 * np.ptp(want)
    net.close()


def test_python_keeps_buffers() -> None:
    """Of three runs, one after the other, as PyTorch made them."""
    model = pybuild.load(PT2 / "gpt_cached.pt2")
    assert sorted(model.graph.state) == ["b_keys", "b_values"]
    net = model.build().host("llvm")
    for run in range(3):
        [have] = net.run(token=arrays("gpt_cached", run, "x")).values()
        want = arrays("gpt_cached", run, "y")
        assert abs(have - want).max() <= 1e-5 * np.ptp(want)
    net.close()


def test_a_program_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)
