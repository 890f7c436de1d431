"""Programs as ExecuTorch's quantisers for Arm leave them, made by
tests/exported/export_arm.py: every bit is torch's, in numpy, C and LLVM.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.ops.interpret import interpret
from tests.frontends.torch.test_exported_programs import standard_of

FOLDER = Path(__file__).resolve().parents[2] / "exported"
NAMES = ("cortex_m", "tosa_int8", "tosa_int16")


@pytest.mark.parametrize("name", NAMES)
def test_every_bit_is_torchs(name: str, tmp_path: Path) -> None:
    path = FOLDER / "arm" / f"{name}.pt2"
    made = pybuild.load(path)
    with np.load(FOLDER / "arm.npz") as arrays:
        samples, wanted = arrays[f"{name}.x"], arrays[f"{name}.y"]
    assert len(np.unique(wanted)) > 10
    graph = made.lower()
    convolutions = [n for n in graph.nodes if n.op == "conv2d"]
    kinds = {graph.tensor(n.output).dtype.value for n in convolutions}
    assert len(convolutions) == 2
    assert kinds == {"int16" if name == "tosa_int16" else "int8"}
    nets = [made.build().host(backend) for backend in ("c", "llvm")]
    for x, y in zip(samples, wanted, strict=True):
        given = {graph.inputs[0]: x[None]}
        found = [interpret(graph, given)[graph.outputs[0]]]
        found += [net.run(**given)[graph.outputs[0]] for net in nets]
        found += standard_of(tmp_path, path, [x[None]])
        for one in found:
            np.testing.assert_array_equal(one, y[None])
