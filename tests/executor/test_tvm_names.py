"""Names of TVM that scripts import: old ones, relay's front ends, tvmc, archives."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import pybuild as tvm
from pybuild import relay
from pybuild.cli import main as crt
from pybuild.contrib import graph_runtime, util
from pybuild.contrib.debugger import debug_runtime
from pybuild.driver import tvmc
from pybuild.driver.tvmc import read_target
from pybuild.driver.tvmc.__main__ import main, shapes
from pybuild.errors import BuildError
from pybuild.micro import export_model_library_format
from pybuild.moved import MOVED
from tests.toolchains import ROOT, STRICT, require, run
from tests.wheels import extract

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
IMAGE = {"image": (1, 8, 8, 1)}


def test_names_of_tvm_0_7_are_those_of_now() -> None:
    assert graph_runtime.create is tvm.graph_executor.create
    assert debug_runtime.create is tvm.debug_executor.create
    for place in (tvm, tvm.nd, tvm.runtime):
        assert place.context is tvm.device
    assert tvm.context("cpu", 0) == tvm.cpu(0)
    assert util.tempdir is import_module("pybuild.contrib.utils").tempdir


def test_a_temporary_folder_lists_what_is_in_it() -> None:
    with util.tempdir() as folder:
        for name in ("b", "a"):
            (folder / name).write_text(name)
        assert folder.listdir() == ["a", "b"]
        assert folder.relpath("a") == str(folder.path / "a")
        assert Path(folder.temp_dir) == folder.path
    assert not folder.path.exists()


def test_libraries_are_modules_and_read_with_a_format(tmp_path: Path) -> None:
    made = tvm.build(str(DIGITS), "llvm")
    assert isinstance(made, tvm.runtime.Module)
    made.export_library(tmp_path / "digits.so")
    for fmt in ("so", "tar", ""):
        read = tvm.load_module(tmp_path / "digits.so", fmt)
        assert isinstance(read, tvm.runtime.Module)
    with pytest.raises(BuildError, match=r"digits.so: format 'ptx' is not read"):
        tvm.runtime.load_module(tmp_path / "digits.so", "ptx")


def test_an_array_is_the_same_as_its_own_memory_alone() -> None:
    one = tvm.nd.array(np.arange(6, dtype=np.int8).reshape(2, 3))
    assert one.same_as(one) and one.same_as(one[:])
    assert not one.same_as(tvm.nd.array(one))
    assert not one.same_as(one[1:]) and not one.same_as(one.view(np.uint8))
    assert not one.same_as([0])


def test_an_index_is_of_a_name() -> None:
    made = tvm.build(str(DIGITS), "llvm")["default"](tvm.cpu(0))
    assert made.get_input_index("image") == 0
    with pytest.raises(TypeError, match="0 is not a name of an input"):
        made.get_input_index(0)


def test_close_arrays_have_one_shape() -> None:
    tvm.testing.assert_allclose([1.0, 2.0], np.array([1.0, 2.0 + 1e-9]))
    for wrong in ([1.0, 2.1], [[1.0, 2.0]], 1.0):
        with pytest.raises(AssertionError):
            tvm.testing.assert_allclose([1.0, 2.0], wrong, rtol=1e-3)


# what docs and examples of 0.2.0 import, that has another place since
IMPORTS = {
    "pybuild.graph": "Graph",
    "pybuild.kernels.builder": "Builder",
    "pybuild.loop": "FLOAT32 load",
    "pybuild.run.board.bench": "bench_on_board",
    "pybuild.run.board.device": "open_device",
}


@pytest.mark.parametrize("name", IMPORTS)
def test_imports_of_0_2_0_are_still_there(name: str) -> None:
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is {MOVED[name]} now"):
        old = import_module(name)
    now = import_module(MOVED[name])
    assert now.__name__ == MOVED[name] and old is not now
    for each in IMPORTS[name].split():
        assert getattr(old, each) is getattr(now, each)


def test_other_names_are_not_found() -> None:
    assert set(MOVED) == {*IMPORTS, "pybuild.run", "pybuild.run.board"}
    for name in ("pybuild.graphs", "pybuild.run.board.ports"):
        with pytest.raises(ModuleNotFoundError):
            import_module(name)


# ---- front ends ------------------------------------------------------------------


class _Read:
    """As the package tflite has a file: its bytes are in _tab."""

    def __init__(self, data: bytes) -> None:
        self._tab = type("Table", (), {"Bytes": bytearray(data)})


WAYS: list[Callable[[Path], Any]] = [
    str, Path.read_bytes, lambda path: _Read(path.read_bytes())
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
def test_a_tflite_file_is_built(how: Callable[[Path], Any]) -> None:
    mod, params = relay.frontend.from_tflite(how(DIGITS), IMAGE, {"image": "int8"})
    module = relay.build(mod, "llvm", params=params)["default"](tvm.cpu(0))
    zeros = np.zeros((1, 8, 8, 1), np.int8)
    module.run(image=zeros)
    want = tvm.build(str(DIGITS), "llvm")["default"](tvm.cpu(0))
    want.run(image=zeros)
    assert module.get_output(0).tolist() == want.get_output(0).tolist()


def _onnx(batch: str | int) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [batch, 3]) for n in "xy"
    ]
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9)


def test_an_onnx_model_has_the_dimensions_given() -> None:
    mod, params = relay.frontend.from_onnx(_onnx("batch"), {"x": (2, 3)}, "float32")
    assert params == {} and mod.graph.tensor("x").shape == (2, 3)
    mod, _ = relay.frontend.from_onnx(_onnx(4).SerializeToString(), {"x": (4, 3)})
    assert mod.graph.tensor("y").shape == (4, 3)


def test_shapes_and_types_that_the_file_has_not_are_refused() -> None:
    for shape, kind, why in (
        (
            {"x": (5, 3)},
            "float32",
            r"'x' is float32\[4, 3\], not float32\[5, 3\]",
        ),
        ({"x": (4, 3)}, "int8", r"not int8\[4, 3\]"),
        ({"z": (4, 3)}, "float32", "has no input 'z'"),
    ):
        with pytest.raises(BuildError, match=why):
            relay.frontend.from_onnx(_onnx(4), shape, kind)
    with pytest.raises(BuildError, match="not int8"):
        relay.frontend.from_tflite(DIGITS, {"image": (1, 3, 8, 8)})


# ---- tvmc ------------------------------------------------------------------------


def test_tvmc_s_command_makes_an_archive_that_compiles(tmp_path: Path) -> None:
    """Its folders are where project templates look; all is compiled from there."""
    words = ["compile", str(DIGITS), "--target=cmsis-nn,c", "--runtime=crt"]
    words += ["--target-cmsis-nn-mcpu=cortex-m4", "--executor=aot"]
    words += ["--executor-aot-interface-api=c", "--executor-aot-unpacked-api=1"]
    words += ["--input-shapes", "image:[1,8,8,1]", "-f", "mlf"]
    command = [sys.executable, "-m", "pybuild.driver.tvmc", *words, "-o", "m.tar"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "wrote m.tar\n"), done.stderr
    with tarfile.open(tmp_path / "m.tar") as archive:
        extract(archive, tmp_path)
    made = tvm.load(str(DIGITS)).build(target="cortex-m4")
    facts = json.loads((tmp_path / "metadata.json").read_text())
    (main_,) = facts["modules"]["default"]["memory"]["functions"]["main"]
    ram, flash = made.report.ram, made.report.flash
    assert facts["version"] == 7
    assert main_["workspace_size_bytes"] == ram.arena + ram.instance
    assert main_["constants_size_bytes"] == flash.weights
    assert main_["io_size_bytes"] == 64 + 10
    assert main_["inputs"] == {"image": {"dtype": "int8", "size": 64}}
    assert main_["outputs"] == {"scores": {"dtype": "int8", "size": 10}}
    sources = sorted(tmp_path.rglob("*.c"))
    assert {p.parent.relative_to(tmp_path).as_posix() for p in sources} == {
        "codegen/host/src", "runtime/src/crt", "runtime/src/tvm",
    }  # fmt: skip
    own = [f"-I{tmp_path}/codegen/host/include", f"-I{tmp_path}/runtime/include"]
    run([require("gcc"), *STRICT, *own, "-fsyntax-only", *sources])


def test_archives_have_the_same_bytes(tmp_path: Path) -> None:
    made = tvm.load(str(DIGITS)).build(name="digits")
    for name in ("a.tar", "b.tar"):
        export_model_library_format(made, tmp_path / name)
    both = [(tmp_path / name).read_bytes() for name in ("a.tar", "b.tar")]
    assert both[0] == both[1]
    with tarfile.open(fileobj=io.BytesIO(both[0])) as archive:
        assert "./parameters/default.params" in archive.getnames()


def test_an_archive_is_a_package_beside_others(tmp_path: Path) -> None:
    assert crt(["build", str(DIGITS), "-o", str(tmp_path / "one"), "--name", "digits",
                "--package", "mlf"]) == 0  # fmt: skip
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["digits.tar"]
    made = tvm.load(str(DIGITS)).build(name="digits")
    made.write_packages(tmp_path / "two", package=("make", "mlf"))
    assert sorted(p.name for p in (tmp_path / "two").iterdir()) == [
        "crt", "digits", "digits.tar",
    ]  # fmt: skip
    data = made.mlf()
    assert (tmp_path / "two" / "digits.tar").read_bytes() == data
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = archive.getnames()
    assert "./codegen/host/include/tvmgen_default.h" in names
    assert not any(name.startswith("tvmgen") for name in made.generated())
    both = tvm.build_image({"a": str(DIGITS), "b": str(DIGITS)})
    with pytest.raises(BuildError, match="--package mlf: is of one model"):
        both.write_packages(tmp_path / "three", package="mlf")


def test_tvmc_s_library_runs(tmp_path: Path) -> None:
    model = tvmc.load(DIGITS, shape_dict=IMAGE)
    assert model.params == {}
    made = tvmc.compile(model, "llvm", tmp_path / "digits.so")
    assert made.package_path == str(tmp_path / "digits.so")
    module = tvm.load_module(made.package_path)["default"](tvm.cpu(0))
    module.run(image=np.ones((1, 8, 8, 1), np.int8))
    again = made.lib["default"](tvm.cpu(0))
    again.run(image=np.ones((1, 8, 8, 1), np.int8))
    assert module.get_output(0).tolist() == again.get_output(0).tolist()


def test_an_onnx_file_gets_its_shapes(tmp_path: Path) -> None:
    onnx.save(_onnx("batch"), tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.onnx"), "--target=c", "-f", "mlf",
                 "-o", str(tmp_path / "m.tar"), "--module-name", "m",
                 "--input-shapes", "x:[2,3]"]) == 0  # fmt: skip
    with tarfile.open(tmp_path / "m.tar") as archive:
        header = archive.extractfile("./codegen/host/include/tvmgen_m.h")
        assert header is not None
        assert b"#define TVMGEN_M_X_SIZE 24\n" in header.read()


def test_what_tvmc_can_and_this_cannot_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, why in (
        (["--target", "cuda"], "--target: 'cuda' is not known here"),
        (["--target", "c -march=armv7e-m"], "is not known here"),
        (["--target", "ethos-u,c"], "is not known here"),
        (["--target", "c", "--target-c-mcpu=cortex-m4"], "is not this machine"),
        (["--target", "llvm", "--input-shapes", "image=1"], "is no shape"),
        (["--target", "llvm", "--input-shapes", "image:[2,8,8,1]"], "not int8[2, 8"),
    ):
        assert main(["compile", str(DIGITS), *words]) == 2
        assert why in capsys.readouterr().err
    with pytest.raises(BuildError, match="format 'pb' is not read here"):
        tvmc.load("model.pb")
    with pytest.raises(BuildError, match="'tar' is not written"):
        tvmc.compile(tvmc.load(DIGITS), "c", output_format="tar")
    assert shapes("a:0:[1,2] b/c: [3]") == {"a:0": [1, 2], "b/c": [3]}


def test_what_tvmc_is_told() -> None:
    """A processor may stand with any part of a target; shapes are whole numbers."""
    assert read_target("cmsis-nn -mcpu=cortex-m55, c") == ("c", "cortex-m55")
    assert read_target("c -mcpu=cortex-m4") == ("c", "cortex-m4")
    assert shapes("x:0:[1,8] y:[]") == {"x:0": [1, 8], "y": []}
    for wrong in ("cmsis-nn -fast, c", "cuda"):
        with pytest.raises(BuildError, match="is not known here"):
            read_target(wrong)
    with pytest.raises(BuildError, match="--input-shapes"):
        shapes("x:[1,,2]")
