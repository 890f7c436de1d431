"""--names ids: no names in flash, the same answers, and a map of numbers to names.
And names of 300 characters, which are as good as others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.emit.llvm.model import module
from pybuild.errors import BuildError
from pybuild.host.abi import CrtError
from pybuild.install import crt_include
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.package.names import NameMap
from tests.graphs.networks import Network, classifier
from tests.toolchains import require, run

LONG = "StatefulPartitionedCall/functional_1/" + "block/" * 43 + "image"
IMAGE = np.random.default_rng(2).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)


def renamed(graph: Graph, old: str, new: str) -> Graph:
    def of(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    nodes = [
        replace(n, inputs=of(n.inputs), outputs=of(n.outputs)) for n in graph.nodes
    ]
    tensors = {
        of((n,))[0]: replace(t, name=of((n,))[0]) for n, t in graph.tensors.items()
    }
    ends = {"inputs": of(graph.inputs), "outputs": of(graph.outputs)}
    return replace(graph, nodes=tuple(nodes), tensors=tensors, **ends)


def library(**options: object) -> Library:
    model = classifier("tiny").model("scores", "stem")
    graph = renamed(model.graph, "image", LONG)
    return replace(model, graph=graph).build(**options)


def flash(made: Library, folder: Path) -> tuple[int, bytes]:
    """Bytes of constants of the model's tables, and the object they are in."""
    folder.mkdir()
    for file, text in made.sources().items():
        (folder / file).write_text(text)
    words = [require("gcc"), "-std=c99", "-Os", "-c", folder / "tiny.c"]
    run([*words, f"-I{crt_include()}", "-o", folder / "tiny.o"])
    rows = [
        line.split() for line in run(["size", "-A", folder / "tiny.o"]).splitlines()
    ]
    wanted = (".rodata", ".data.rel.ro")
    sizes = [int(row[1]) for row in rows if row and row[0].startswith(wanted)]
    return sum(sizes), (folder / "tiny.o").read_bytes()


def test_names_leave_the_flash(tmp_path: Path) -> None:
    assert len(LONG) == 300
    full, ids = library(), library(names="ids")
    with_names, there = flash(full, tmp_path / "full")
    without, bare = flash(ids, tmp_path / "ids")
    saved = full.report.flash.tables - ids.report.flash.tables
    assert saved == len(LONG) + len("scores") + len("stem") + len("tiny") + 4
    assert 0 <= with_names - without - saved <= 16  # the compiler may align strings
    assert LONG.encode() in there and b"block/" not in bare
    coded = "".join(f"\\{b:02X}" for b in b"block/")
    assert coded in module(full.tables) and coded not in module(ids.tables)


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_the_same_answers(backend: str) -> None:
    full, ids = library().host(backend), library(names="ids").host(backend)
    for net in (full, ids):
        net.set_input(LONG, IMAGE)
        net.run()
    for name, value in full.outputs().items():
        np.testing.assert_array_equal(value, ids.get_output(name))
    ids.reset()
    with pytest.raises(CrtError, match=LONG):
        ids.run()


def test_the_map_translates_both_ways(tmp_path: Path) -> None:
    made = library(names="ids", params=["logits/b", "stem/w"])
    files = made.files()
    (tmp_path / "map.json").write_text(files["tiny.names.json"])
    found = NameMap.read(tmp_path / "map.json")
    assert found.model == "tiny"
    for role, number, name in (
        ("inputs", 0, LONG),
        ("outputs", 1, "stem"),
        ("parameters", 0, "stem/w"),
    ):
        assert found.name(role, number) == name
        assert found.number(role, name) == number
    assert "layer 'depth'" in found.name("steps", 1)
    assert len(found.names["steps"]) == len(made.plan.steps)
    with pytest.raises(KeyError, match="'scores', 'stem'"):
        found.number("outputs", "label")
    with pytest.raises(KeyError, match="there are 2"):
        found.name("outputs", 2)
    assert "tiny.names.json" not in library().files()
    (tmp_path / "map.json").write_text("{}")
    with pytest.raises(BuildError, match="is not a map of names"):
        NameMap.read(tmp_path / "map.json")


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_parameters_are_found_by_number(backend: str) -> None:
    """Twelve of them, so that "10" stands before "2" in the image."""
    net = Network("many", (1, 6), "int8", 4)
    for layer in range(6):
        net.dense(f"dense_{layer}", 6)
    made = net.model().build(params="replaceable", names="ids")
    full = net.model().build(params="replaceable").host(backend)
    assert len(made.plan.slots) >= 12
    bare = made.instance(backend)
    given = IMAGE.ravel()[:6].reshape(1, 6)
    with pytest.raises(CrtError, match=r"CRT_ERR_UNBOUND.*'dense_0/w'"):
        bare.run(image=given)
    bare.load_params(made.weights)
    bare.setup()
    assert made.weights.users == len(made.plan.slots)
    for each in (full, bare):
        each.run(image=given)
    np.testing.assert_array_equal(bare.get_output(0), full.get_output(0))
