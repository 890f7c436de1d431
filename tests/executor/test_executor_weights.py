"""Weights of graph executor modules: late, replaced, shared, lazily bound, exported."""

from __future__ import annotations

import dataclasses
import gc
import json
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pybuild as tvm
from pybuild import graph_executor
from pybuild.errors import BuildError
from pybuild.executor.factory import Package
from pybuild.graph_executor import GraphModule
from pybuild.host.abi import CrtError, UnknownName
from pybuild.host.ndarray import Device
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.params.files import write_arrays
from tests.conftest import model_path
from tests.executor.test_graph_executor import DEV, adder, image, module, scores
from tests.frontends.graphjson.tvm_graphs import simple
from tests.graphs.networks import Network, classifier

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["depth/b", "depth/w", "logits/b", "logits/w", "stem/b", "stem/w"]


def build(target: str = "llvm", name: str = "tiny", seed: int = 0) -> Library:
    model = classifier(name, seed=seed).model().with_parameters("replaceable")
    return tvm.build(model, target=target)


@pytest.fixture(scope="module")
def library() -> Library:
    return build()


def create(library: Library, device: Device = DEV) -> GraphModule:
    return graph_executor.create(library.get_graph_json(), library.get_lib(), device)


def blob(library: Library) -> bytes:
    return bytes(tvm.runtime.save_param_dict(library.get_params()))


def expected(library: Library, seed: int = 0, **values: np.ndarray) -> np.ndarray:
    """By numpy, with other values of some weights."""
    graph = library.model.graph
    model = classifier().model()
    changed = {**graph.constants, **values}
    renewed = dataclasses.replace(graph, constants=changed)
    graph = tvm.Model("x", renewed, model.rounding, "").lower()
    return interpret(graph, {"image": image(seed)})["scores"]


# ---- late and replaced --------------------------------------------------------


def test_weights_are_late_by_blob_image_and_one_by_one(
    device: Device, library: Library
) -> None:
    want = expected(library)
    made = create(library, device)
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        made.run(image=image())
    made.load_params(blob(library))
    np.testing.assert_array_equal(scores(made), want)
    packed = create(library, device)
    packed.load_params(packed.source.image())  # on a board: for the board's core
    if device != DEV:
        with pytest.raises(BuildError, match="'depth/b': is in layout"):
            packed.load_params(library.image())
    np.testing.assert_array_equal(scores(packed), want)
    one_by_one = create(library, device)
    for name, value in library.get_params().items():
        with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
            one_by_one.run(image=image())
        one_by_one.set_input(name, value)
    np.testing.assert_array_equal(scores(one_by_one), want)


def test_an_image_of_plain_arrays_is_packed_here(
    device: Device, library: Library
) -> None:
    plain = write_arrays(library.get_params(), "weights.crtp")
    made = create(library, device)
    made.load_params(plain)
    np.testing.assert_array_equal(scores(made), expected(library))
    np.testing.assert_array_equal(made.get_input("stem/w"), library.value("stem/w"))


@pytest.mark.parametrize("name", ["stem/w", "depth/w", "depth/b", "logits/w"])
def test_one_weight_is_replaced(device: Device, library: Library, name: str) -> None:
    made, other = module(library, device), module(library, device)
    first = scores(made)
    value = library.value(name)[::-1].copy()
    made.set_input(name, value)
    np.testing.assert_array_equal(made.get_input(name), value)
    np.testing.assert_array_equal(scores(made), expected(library, **{name: value}))
    np.testing.assert_array_equal(scores(other), first)
    made.set_input(name, library.value(name))
    np.testing.assert_array_equal(scores(made), first)


def test_a_weight_is_known_by_its_number(device: Device, library: Library) -> None:
    made = module(library, device)
    index = made.get_input_index("stem/b")
    assert index > 0
    np.testing.assert_array_equal(made.get_input(index), library.value("stem/b"))
    with pytest.raises(ValueError, match="read-only"):
        made.get_input(index)[0] = 1


def test_wrong_weights_are_refused(device: Device, library: Library) -> None:
    made = module(library, device)
    with pytest.raises(ValueError, match=r"'stem/b' is int32\[8\]"):
        made.set_input("stem/b", np.zeros(9, np.int32))
    with pytest.raises(ValueError, match=r"'stem/b' is int32\[8\]"):
        wrong = {"stem/b": np.zeros(8, np.float32)}
        made.load_params(tvm.runtime.save_param_dict(wrong))
    with pytest.raises(BuildError):
        made.load_params(blob(library)[:-3])
    damaged = bytearray(library.image())
    damaged[-1] ^= 1
    with pytest.raises((BuildError, CrtError)):
        made.load_params(damaged)
    np.testing.assert_array_equal(scores(made), expected(library))


def test_zero_copy_of_a_weight_is_its_address_where_kernels_read_it_so() -> None:
    floats = tvm.build(
        classifier("plain", "float32").model().with_parameters("replaceable"),
        target="llvm",
    )
    made, given = create(floats), np.ones((1, 8, 8, 3), np.float32)
    for name in NAMES:
        value = floats.value(name).copy()
        made.set_input_zero_copy(name, value)
        assert made.net.parameter_address(name) == value.ctypes.data
    made.run(image=given)
    want = module(floats)
    want.run(image=given)
    np.testing.assert_array_equal(made.get_output(0), want.get_output(0))


# ---- shared -------------------------------------------------------------------


@pytest.mark.parametrize("what", ["blob", "names of a cut blob", "names", "all"])
def test_weights_are_shared(device: Device, library: Library, what: str) -> None:
    donor = create(library, device)
    donor.load_params(blob(library))
    data: bytes | list[str] | None = blob(library)
    if what == "names of a cut blob":
        data = blob(library)[: 24 + sum(8 + len(n) for n in NAMES) + 8]
    elif what != "blob":
        data = NAMES if what == "names" else None
    sharers = [create(library, device) for _ in range(10 if device == DEV else 3)]
    for one in sharers:
        one.share_params(donor, data)
        one.share_params(donor, data)
    if device == DEV:
        slots = [s.name for s in library.slots]
        modules = (donor, *sharers)
        places = [[m.net.parameter_address(s) for s in slots] for m in modules]
        assert all(place == places[0] for place in places)
    want = scores(donor)
    del donor
    gc.collect()
    for one in sharers:
        np.testing.assert_array_equal(scores(one), want)
        assert one.get_input_info() == ({"image": (1, 8, 8, 3)}, {"image": "int8"})


def test_a_sharers_own_weight_is_its_own(device: Device, library: Library) -> None:
    donor, sharer = module(library, device), create(library, device)
    sharer.share_params(donor)
    want = scores(donor)
    value = library.value("stem/w")[::-1].copy()
    sharer.set_input("stem/w", value)
    np.testing.assert_array_equal(
        scores(sharer), expected(library, **{"stem/w": value})
    )
    np.testing.assert_array_equal(scores(donor), want)


def test_what_cannot_be_shared_says_why(device: Device, library: Library) -> None:
    empty, made = create(library, device), create(library, device)
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        made.share_params(empty)
    with pytest.raises(UnknownName, match="'stem/w'"):
        made.share_params(module(library, device), ["steam/w"])
    other = tvm.build(
        classifier("other", "float32").model().with_parameters("replaceable"),
        target="llvm",
    )
    with pytest.raises(CrtError, match=r"CRT_ERR_(DTYPE|LAYOUT|SHAPE)"):
        made.share_params(module(other, device))


def test_an_input_reads_where_another_module_writes() -> None:
    first, second = adder(), adder()
    second.set_shared_input("x", first, "add")
    x, y = np.float32([1, 2, 3, 4]), np.ones(4, np.float32)
    first.run(x=x, y=y)
    second.run(y=y)
    assert second.get_output(0).tolist() == [3, 4, 5, 6]
    assert second.get_input("x").ctypes.data == first.get_output(0).ctypes.data
    second.set_shared_input("x", y)
    second.run()
    assert second.get_output(0).tolist() == [2, 2, 2, 2]


# ---- exported -----------------------------------------------------------------


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_library_is_exported_and_loaded(
    target: str, kind: str, tmp_path: Path
) -> None:
    library = build(target)
    path = tmp_path / "tiny.so"
    if kind == "folder":
        path.mkdir()
    library.export_library(path)
    read = tvm.load_module(path)
    assert read.get_graph_json() == library.get_graph_json()
    assert sorted(read.get_params()) == NAMES
    made = GraphModule(read["default"](DEV))
    np.testing.assert_array_equal(scores(made), expected(library))
    assert "built" not in read.__dict__  # nothing was compiled from the graph
    value = library.value("stem/w")[::-1].copy()
    made.set_input("stem/w", value)
    np.testing.assert_array_equal(scores(made), expected(library, **{"stem/w": value}))
    late = graph_executor.create(read.get_graph_json(), read.get_lib(), DEV)
    late.load_params(blob(library))
    np.testing.assert_array_equal(scores(late), expected(library))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_exported_bytes_are_the_same_each_time(target: str, tmp_path: Path) -> None:
    build(target).export_library(tmp_path / "one.zip")
    build(target).export_library(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    tvm.load_module(tmp_path / "one.zip").export_library(tmp_path / "three.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "three.zip").read_bytes()


def test_several_models_by_name(tmp_path: Path) -> None:
    models = {n: classifier(n, seed=i).model() for i, n in enumerate(("one", "two"))}
    package = tvm.build(models, target="llvm")
    package.export_library(tmp_path / "both.zip")
    read = tvm.load_module(tmp_path / "both.zip")
    assert isinstance(read, Package)
    for name, model in models.items():
        want = interpret(model.lower(), {"image": image()})["scores"]
        for there in (package, read):
            made = GraphModule(there[name](DEV))
            np.testing.assert_array_equal(scores(made), want)
    with pytest.raises(UnknownName, match="'one', 'two'"):
        read["three"]


def test_a_factory_has_its_other_functions(library: Library) -> None:
    assert library["get_graph_json"]() == library.get_graph_json()
    assert sorted(library["get_graph_params"]()) == NAMES
    bare = library["remove_params"]()
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        bare["default"](DEV).run(image=image())
    debug = library["debug_create"]("default", DEV)
    debug.set_input("image", image())
    np.testing.assert_array_equal(debug.debug_get_output("scores"), expected(library))
    debug.exit()
    with pytest.raises(UnknownName):
        library["debug_create"]("encoder", DEV)


def test_other_files_are_no_libraries(library: Library, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    for name in ("text.so", "other.zip"):
        with pytest.raises(BuildError, match="is not a library"):
            tvm.load_module(tmp_path / name)
    with pytest.raises(BuildError, match="no such file"):
        tvm.load_module(tmp_path / "absent.so")
    library.export_library(tmp_path / "old")
    folder = tmp_path / "older/"
    folder.mkdir()
    library.export_library(folder)
    index = json.loads((folder / "library.json").read_text())
    (folder / "library.json").write_text(json.dumps({**index, "abi": "1"}))
    with pytest.raises(BuildError, match="ABI 1"):
        tvm.load_module(folder)


def test_a_library_of_another_graph_is_refused(library: Library) -> None:
    with pytest.raises(BuildError, match="was built of another graph"):
        graph_executor.create(json.dumps(simple()), library, DEV)
    with pytest.raises(BuildError, match="is not a graph JSON"):
        graph_executor.create("{}", library, DEV)
    with pytest.raises(TypeError):
        graph_executor.create(b"{}", library, DEV)
    with pytest.raises(ValueError, match="dev has to be"):
        graph_executor.create(library.get_graph_json(), library.get_lib(), "cpu")
    devices = graph_executor.get_device(library, [tvm.cpu(0), tvm.device("ext_dev", 1)])
    assert devices[1:] == (0, [1, 0, 12, 1])


# ---- memory -------------------------------------------------------------------


def test_nothing_is_reserved_for_weights_before_they_are_bound() -> None:
    wide = Network("wide", (1, 512), "float32", 0)
    wide.dense("sums", 200)
    library = tvm.build(wide.model().with_parameters("replaceable"), target="llvm")
    bare = library.get_lib()["default"]
    bare(DEV)  # code is compiled once
    tracemalloc.start()
    made = bare(DEV)
    used = tracemalloc.get_traced_memory()[0]
    made.load_params(blob(library))
    made.run(image=np.ones((1, 512), np.float32))
    bound = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    weights = sum(value.nbytes for value in library.get_params().values())
    assert weights > 400_000
    assert used < sum(made.net.region_bytes) + 16 * 1024
    assert bound > used + weights


_MEASURE = """
import sys
import numpy as np
import pybuild
from pybuild.graph_executor import GraphModule

def resident():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    line = next(line for line in lines if line.startswith("Private_Dirty"))
    return int(line.split()[1]) * 1024

library = pybuild.load_module(sys.argv[1])
dev = pybuild.cpu(0)
image = np.zeros((1, 96, 96, 3), np.int8)
first = GraphModule(library["default"](dev))
first.run(**{first.net.inputs[0].name: image})
before = resident()
made = [GraphModule(library["default"](dev)) for _ in range(10)]
for one in made:
    one.run(**{one.net.inputs[0].name: image})
    one.share_params(first)
used = resident() - before
slots = [slot.name for slot in library.slots]
places = {tuple(m.net.parameter_address(s) for s in slots) for m in (first, *made)}
start = first.parameters._source.weights.image.ctypes.data
size = library.weights.image.nbytes
inside = all(start <= at < start + size for at in next(iter(places)))
net = first.net
print(len(places), int(inside), used, net.arena.nbytes, net.instance_bytes, size)
"""


def test_ten_instances_have_one_copy_of_the_weights(tmp_path: Path) -> None:
    if not Path("/proc/self/smaps_rollup").is_file():
        pytest.skip("this system does not say what is resident")
    model = tvm.load(model_path("vww_int8.tflite")).with_parameters("replaceable")
    library = tvm.build(model, target="llvm")
    library.export_library(tmp_path / "vww.so")
    command = [sys.executable, "-c", _MEASURE, str(tmp_path / "vww.so")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    places, inside, used, arena, instance, weights = map(int, done.stdout.split())
    assert (places, inside) == (1, 1)
    assert weights > 200_000
    # no second copy; Python's own pages differ by 200 KB from run to run
    assert used < 10 * (arena + instance) + weights, (used, arena, instance)
