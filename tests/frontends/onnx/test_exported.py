"""What exporters write, read as it is: the same values, and few transposes left."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret

FOLDER = Path(__file__).resolve().parents[2] / "exported"
# transposes left of each: those of NCHW at the boundary, of heads, windows and steps
TRANSPOSES = {
    "mobile": 1, "mobile_raw": 1, "squeeze": 1, "shapes_raw": 3, "unet": 2,
    "causal_raw": 1, "block": 5, "heads_raw": 6, "recurrent_raw": 0, "cells_raw": 0,
    "windows": 3, "indices_raw": 4,
}  # fmt: skip
BUILT = ("mobile_raw", "unet", "heads_raw")


def loaded(path: Path) -> pybuild.Model:
    return pybuild.load(path, input_dims={"batch": 1})


def compare(folder: Path, name: str) -> None:
    with np.load(folder / "torch.npz") as arrays:
        model = loaded(folder / f"{name}.onnx")
        graph = model.lower()
        found = [interpret(graph, {"x": arrays[f"{name}.x"]})]
        if name in BUILT:
            net = model.build().host("llvm")
            net.run(x=arrays[f"{name}.x"])
            found.append(net.outputs())
        for values in found:
            for index, output in enumerate(graph.outputs):
                wanted = arrays[f"{name}.{index}"]
                assert values[output].shape == wanted.shape
                np.testing.assert_allclose(values[output], wanted, 1e-5, 2e-6)
    assert sum(n.op == "transpose" for n in graph.nodes) == TRANSPOSES[name]


@pytest.mark.parametrize("name", TRANSPOSES)
def test_what_pytorch_wrote(name: str) -> None:
    compare(FOLDER, name)


def test_the_batch_is_asked_for() -> None:
    with pytest.raises(BuildError) as caught:
        pybuild.load(FOLDER / "mobile.onnx")
    assert [str(p) for p in caught.value.problems] == [
        "mobile.onnx: input 'x' has a dynamic dimension 'batch'. "
        "Hint: --input-dim batch=1"
    ]


def test_weights_in_a_file_beside_the_model(tmp_path: Path) -> None:
    """As PyTorch writes by default; the hash of the model is of both."""
    for file in FOLDER.glob("beside.onnx*"):
        shutil.copy(file, tmp_path)
    whole = onnx.load(tmp_path / "beside.onnx")
    onnx.save(whole, tmp_path / "whole.onnx")
    model, same = (pybuild.load(tmp_path / f"{n}.onnx") for n in ("beside", "whole"))
    x = {"input": np.linspace(-1, 1, 16, dtype=np.float32)[None]}
    found = [interpret(m.lower(), x)["linear_1"] for m in (model, same)]
    assert np.array_equal(found[0], found[1]) and found[0].any()
    weights = tmp_path / "beside.onnx.data"
    data = weights.read_bytes()
    weights.write_bytes(b"\x01" + data[1:])
    other = pybuild.load(tmp_path / "beside.onnx")
    assert len({model.digest, same.digest, other.digest}) == 3
    weights.write_bytes(data[:-1])
    with pytest.raises(BuildError, match=r"'beside\.onnx\.data', which is damaged"):
        pybuild.load(tmp_path / "beside.onnx")
    weights.unlink()
    with pytest.raises(BuildError) as caught:
        pybuild.load(tmp_path / "beside.onnx")
    assert [str(p) for p in caught.value.problems] == [
        "beside.onnx: tensor '0.weight' is in the file 'beside.onnx.data', which is not"
        " there. Hint: keep both files in one folder, or save with external_data=False"
    ]


@pytest.mark.parametrize("where", ["../out.data", "/etc/hostname", "", "link"])
def test_only_files_of_the_folder_are_read(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "out.data").write_bytes(bytes(4096))
    (folder / "link").symlink_to(tmp_path / "out.data")
    model = onnx.load(FOLDER / "beside.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = where if entry.key == "location" else entry.value
    onnx.save(model, folder / "bad.onnx")
    with pytest.raises(BuildError, match=r"which is not in the folder of the model"):
        pybuild.load(folder / "bad.onnx")


@pytest.mark.sweep
def test_pytorch_writes_them_anew(tmp_path: Path) -> None:
    """The exporter that is installed, whatever it writes by now."""
    for package in ("torch", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install '.[exporters]'")
    script = str(FOLDER / "export_torch.py")
    subprocess.run([sys.executable, script, str(tmp_path)], check=True)
    for name in TRANSPOSES:
        compare(tmp_path, name)
