"""Programs as ExecuTorch's quantisers for Arm leave them, made by
tests/exported/export_arm.py: every bit is torch's, in numpy, C and LLVM.
"""

from __future__ import annotations

import zipfile
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


def test_int16_with_zero_points(tmp_path: Path) -> None:
    """As observers that are not symmetric leave it: its layers stay integers."""
    path = tmp_path / "shifted.pt2"
    with (
        zipfile.ZipFile(FOLDER / "arm" / "tosa_int16.pt2") as old,
        zipfile.ZipFile(path, "w") as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("model.json"):
                plain = b'"zero_point","arg":{"as_int":0}'
                assert plain in data
                data = data.replace(plain, plain.replace(b":0}", b":300}"))
            new.writestr(name, data)
    with np.load(FOLDER / "arm.npz") as arrays:
        samples = arrays["tosa_int16.x"][:2]
    made = pybuild.load(path)
    graph = made.lower()
    layers = [n for n in graph.nodes if n.op in ("conv2d", "depthwise_conv2d", "dense")]
    outputs = [graph.tensor(node.output) for node in layers]
    kinds = {(y.dtype.value, y.quant and y.quant.zero_point) for y in outputs}
    assert len(layers) == 4 and kinds == {("int16", (300,))}
    net = made.build().host("llvm")
    for x in samples:
        given = {graph.inputs[0]: x[None]}
        (want,) = standard_of(tmp_path, path, [x[None]])
        np.testing.assert_array_equal(net.run(**given)[graph.outputs[0]], want)
        np.testing.assert_array_equal(interpret(graph, given)[graph.outputs[0]], want)
