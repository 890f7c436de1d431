"""TVM's test_runtime_module_based_interface: a library by name, raw functions and the
wrapper, three results, export and load, without parameters, debug, zero copy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild as tvm
from pybuild import relay, rpc
from pybuild.contrib import graph_executor, utils
from pybuild.contrib.debugger import debug_executor
from pybuild.dtype import Array
from pybuild.host.abi import CrtError
from tests.executor.kernels import workload
from tests.executor.test_executor_weights import NAMES
from tests.executor.test_executor_weights import expected as scores_of
from tests.executor.test_graph_executor import image, scores
from tests.graphs.networks import classifier
from tests.toolchains import require

DATA = np.random.default_rng(3).uniform(-1, 1, (1, 6, 6, 3)).astype("float32")


@pytest.fixture(scope="module")
def library() -> tvm.Library:
    return tvm.build(workload()[0], "llvm")


@pytest.fixture(scope="module")
def expected(library: tvm.Library) -> Array:
    graph, lib, graph_params = library
    module = graph_executor.create(graph, lib, tvm.cpu())
    module.set_input("data", DATA)
    module.set_input(**graph_params)
    module.run()
    return module.get_output(0).numpy()


def both(factory: tvm.Library, dev: tvm.runtime.Device, expected: Array) -> None:
    """The functions by name, then the wrapper."""
    gmod = factory["default"](dev)
    gmod["set_input"]("data", tvm.nd.array(DATA, device=dev))
    gmod["run"]()
    np.testing.assert_allclose(gmod["get_output"](0).numpy(), expected, atol=1e-5)
    gmod = graph_executor.GraphModule(factory["default"](dev))
    gmod.set_input("data", DATA)
    gmod.run()
    np.testing.assert_allclose(gmod.get_output(0).numpy(), expected, atol=1e-5)


def test_legacy_compatibility(library: tvm.Library, expected: Array) -> None:
    both(library, tvm.cpu(), expected)
    assert abs(expected.sum() - 1) < 1e-5


@pytest.mark.parametrize("obj_format", [".so", ".tar"])
def test_mod_export(library: tvm.Library, expected: Array, obj_format: str) -> None:
    temp = utils.tempdir()
    path_lib = temp.relpath(f"deploy_lib{obj_format}")
    library.export_library(path_lib)
    both(tvm.runtime.load_module(path_lib), tvm.cpu(0), expected)


def test_mod_export_remote(library: tvm.Library, expected: Array) -> None:
    require("qemu-system-arm")
    temp = utils.tempdir()
    path_lib = temp.relpath("deploy_lib.so")
    library.export_library(path_lib)
    with rpc.connect("qemu:mps2-an386") as remote:
        both(tvm.runtime.load_module(path_lib), remote.cpu(0), expected)


@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_remove_package_params(
    library: tvm.Library, expected: Array, remote: bool
) -> None:
    if remote:
        require("qemu-system-arm")
    temp = utils.tempdir()
    path_lib = temp.relpath("deploy_lib.so")
    library["remove_params"]().export_library(path_lib)
    blob = relay.save_param_dict(library.get_params())
    loaded_lib = tvm.runtime.load_module(path_lib)
    board = rpc.connect("qemu:mps2-an386") if remote else None
    dev = board.cpu(0) if board else tvm.cpu(0)
    try:
        gmod = loaded_lib["default"](dev)
        gmod["set_input"]("data", tvm.nd.array(DATA))
        gmod["load_params"](blob)
        gmod["run"]()
        np.testing.assert_allclose(gmod["get_output"](0).numpy(), expected, atol=1e-5)
    finally:
        if board:
            board.close()


@pytest.mark.parametrize("names", ["full", "ids"])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_library_is_exported_without_its_weights(
    target: str, names: str, tmp_path: Path
) -> None:
    model = classifier("tiny").model().with_parameters("replaceable")
    library = tvm.build(model, target=target, names=names)
    full, bare = tmp_path / "full", tmp_path / "bare"
    full.mkdir()
    bare.mkdir()
    library.export_library(full)
    library["remove_params"]().export_library(bare)
    for folder, count in ((full, len(NAMES)), (bare, 0)):
        files = [f.read_bytes() for f in folder.rglob("*") if f.is_file()]
        found = [
            n for n in NAMES if any(library.value(n).tobytes() in f for f in files)
        ]
        assert len(found) == count, found
    read = tvm.load_module(bare)
    assert read.get_params() == library["remove_params"]().get_params() == {}
    with pytest.raises(LookupError, match="was written without 'stem/w'"):
        read.value("stem/w")
    made = read["default"](tvm.cpu(0))
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        made.run(image=image())
    made.load_params(relay.save_param_dict(library.get_params()))
    np.testing.assert_array_equal(scores(made), scores_of(library))
    again = tmp_path / "again.zip"
    read.export_library(again)
    library["remove_params"]().export_library(tmp_path / "bare.zip")
    assert again.read_bytes() == (tmp_path / "bare.zip").read_bytes()


def test_debug_graph_executor(library: tvm.Library, expected: Array) -> None:
    dev = tvm.cpu()
    gmod = library["debug_create"]("default", dev)
    gmod["set_input"]("data", tvm.nd.array(DATA))
    gmod["run"]()
    np.testing.assert_allclose(gmod["get_output"](0).numpy(), expected, atol=1e-5)
    debug_g_mod = debug_executor.GraphModuleDebug(
        library["debug_create"]("default", dev), [dev], library.get_graph_json(), None
    )
    debug_g_mod.set_input("data", DATA)
    debug_g_mod.run()
    np.testing.assert_allclose(debug_g_mod.get_output(0).numpy(), expected, atol=1e-5)
    debug_g_mod.exit()


def test_set_input_zero_copy(library: tvm.Library, expected: Array) -> None:
    gmod = graph_executor.GraphModule(library["default"](tvm.cpu()))
    there = tvm.nd.array(DATA)
    gmod.set_input_zero_copy("data", there)
    gmod.run()
    np.testing.assert_allclose(gmod.get_output(0).numpy(), expected, atol=1e-5)
    there[...] = 0
    gmod.run()
    assert not np.allclose(gmod.get_output(0).numpy(), expected, atol=1e-5)


def test_set_output_zero_copy(library: tvm.Library, expected: Array) -> None:
    gmod = graph_executor.GraphModule(library["default"](tvm.cpu()))
    out = tvm.nd.empty(expected.shape)
    gmod.set_output_zero_copy("scores:0", out)
    gmod.run(data=DATA)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-5)
