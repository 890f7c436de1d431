"""What new weights, or an exported library, are made of: the build and all its options,
of which --ram-limit was forgotten, and devices came back as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.library import Library
from pybuild.targets.names import target_named
from tests.graphs.networks import Network


def built(**options: Any) -> Library:
    net = Network("net", (1, 12, 8, 2), "int8", 0)
    net.conv("first", 4)
    net.depthwise("second")
    net.add("avg_pool2d", "pool", (1, 1, 1, 4), kernel=(12, 8))
    return net.model().build(params="replaceable", **options)


LIMITED = {"ram_limit": 100_000}  # whole tensors, which are the fastest, fit
DEVICES = {"target": {0: "generic", 1: "generic"}, "place": {"*": 1}}


def test_new_weights_have_the_plan_of_the_limit() -> None:
    limited = built(**LIMITED)
    assert len(limited.plan.stages) != len(built().plan.stages)
    assert limited.image(limited.model.graph.constants) == limited.image()


@pytest.mark.parametrize(
    "options", [LIMITED, DEVICES, DEVICES | {"ram_limit": {0: 4096}}]
)
def test_an_exported_library_has_the_same_plan(
    options: dict[str, Any], tmp_path: Path
) -> None:
    made = built(**options)
    made.export_library(tmp_path / "lib.zip")
    found = pybuild.load_module(tmp_path / "lib.zip").planned()
    assert [(s.node.name, s.scratch_at) for s in found.steps] == [
        (s.node.name, s.scratch_at) for s in made.plan.steps
    ]
    assert (found.places, found.stages) == (made.plan.places, made.plan.stages)


def test_only_targets_with_names_are_exported(tmp_path: Path) -> None:
    built(target=target_named("cortex-m4")).export_library(tmp_path / "lib.zip")
    mine = replace(target_named("cortex-m4"), features=frozenset())
    with pytest.raises(BuildError, match="'cortex-m4' is not as pybuild knows it"):
        built(target=mine).export_library(tmp_path / "other.zip")
    assert not (tmp_path / "other.zip").exists()


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "lib.zip"
    built().export_library(path)
    data = bytearray(path.read_bytes())
    data[data.find(b'"format"')] ^= 1
    path.write_bytes(data)
    with pytest.raises(BuildError, match="is damaged: Bad CRC-32"):
        pybuild.load_module(path)
