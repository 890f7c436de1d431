"""Weights packed at build: equal results, what is saved, what damage gives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.frontends import graphjson
from pybuild.host.abi import CrtError
from pybuild.host.jit import jit
from pybuild.host.native import Net
from pybuild.host.parameter_image import Weights
from pybuild.kernels.base.candidate import TASK_UNPACK
from pybuild.plan.plan import Plan
from pybuild.verify.samples import example_inputs
from tests.graphs.networks import Network
from tests.toolchains import STRICT, require, run

MODES = ("lz4", "lz4-layer")


def packable() -> Network:
    """Two dense layers whose weights repeat themselves."""
    net = Network("packable", (1, 64), "int8", 7)
    for name in ("first", "second"):
        net.dense(name, 64)
        row = net.constants[f"{name}/w"][:1]
        net.constants[f"{name}/w"] = np.repeat(row, 64, 0)
    return net


@pytest.mark.parametrize("backend", ["llvm", "c"])
@pytest.mark.parametrize("mode", MODES)
def test_equal_results(mode: str, backend: str) -> None:
    model = packable().model()
    plain, packed = model.build(), model.build(compress=mode)
    inputs = example_inputs(plain.plan.graph)
    want = plain.host(backend)(**inputs)
    net = packed.host(backend)
    for _ in range(2):
        have = net(**inputs)
        assert all(np.array_equal(have[name], want[name]) for name in want)


@pytest.mark.parametrize("mode", MODES)
def test_saves_flash_and_says_where(mode: str) -> None:
    model = packable().model()
    plain, packed = model.build().report, model.build(compress=mode).report
    assert packed.flash.weights < plain.flash.weights - 5000
    assert [row.name.split()[0] for row in packed.packed_constants] == [
        "first",
        "second",
    ]
    assert all(
        row.bytes == 4096 and row.stored < 200 for row in packed.packed_constants
    )
    assert packed.parameters == ()


def test_ram_is_planned() -> None:
    """By layer: one layer's weights at a time in the arena; once: beside it."""
    model = packable().model()
    plain = model.build().report.ram
    layer = model.build(compress="lz4-layer").report.ram
    once = model.build(compress="lz4").report.ram
    assert layer.arena == plain.arena + 4096 and layer.unpacked == 0
    assert once.arena == plain.arena and once.unpacked == 2 * 4096


def test_random_weights_stay_as_they_are() -> None:
    net = Network("noise", (1, 16), "int8", 3)
    net.dense("only", 16)
    library = net.model().build(compress="lz4-layer")
    assert library.report.packed_constants == () and not library.tables.unpack
    assert not net.model().build(compress="lz4").plan.slots


def test_instances_share_what_is_unpacked() -> None:
    library = packable().model().build(compress="lz4")
    one, two = library.host(), library.host()
    for tensor in one.parameters:
        there = one.parameter_address(tensor.name)
        memory = library.weights.unpacked
        assert there == two.parameter_address(tensor.name)
        assert 0 <= there - memory.ctypes.data < memory.nbytes


def _damaged(plan: Plan) -> Plan:
    """The plan with a packed constant that starts with an impossible match."""
    steps = []
    for step in plan.steps:
        candidate = step.candidate
        if candidate.func is None and candidate.args[0] == TASK_UNPACK:
            stored = candidate.constants[0].array.copy()
            stored[:3] = (0x0F, 0xFF, 0xFF)
            constants = (replace(candidate.constants[0], values=stored),)
            step = replace(step, candidate=replace(candidate, constants=constants))
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def test_a_damaged_layer_stops_the_run() -> None:
    from pybuild.emit.tables.assemble import make_tables

    library = packable().model().build(compress="lz4-layer")
    plan = _damaged(library.plan)
    tables = make_tables(plan, "damaged")
    net = Net(plan, jit(tables))
    with pytest.raises(CrtError, match="CRT_ERR_UNPACK"):
        net.run(**example_inputs(plan.graph))


def test_a_damaged_image_is_refused() -> None:
    image = bytearray(packable().model().build(compress="lz4").image())
    image[-9] ^= 1
    with pytest.raises(CrtError, match="CRT_ERR_CHECKSUM"):
        Weights(bytes(image))


@pytest.mark.parametrize(
    ("mode", "compiler"),
    [
        ("lz4", "clang"),
        ("lz4-layer", "gcc"),
        pytest.param("lz4", "gcc", marks=pytest.mark.sweep),
        pytest.param("lz4-layer", "clang", marks=pytest.mark.sweep),
    ],
)
def test_the_tree_stands_alone(mode: str, compiler: str, tmp_path: Path) -> None:
    require(compiler)
    packable().model().build(tmp_path / "tree", compress=mode)
    sources = [*(tmp_path / "tree").rglob("*.c")]
    flags = [*STRICT, "-ffp-contract=off", "-DCRT_WITH_SELFTEST"]
    include = ["-I", tmp_path / "tree", "-I", tmp_path / "tree" / "crt" / "include"]
    run([compiler, *flags, *include, *sources, "-o", tmp_path / "test"])
    assert "self-test: no error" in run([tmp_path / "test"])


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, params = graphjson.dump(packable().graph())
    (tmp_path / "packable.json").write_text(text)
    (tmp_path / "packable.params").write_bytes(params)
    words = ["build", str(tmp_path / "packable.json"), "--json", "-o"]
    assert main([*words, str(tmp_path / "one"), "--params", "replaceable"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["parameters"] and not report["packed_constants"]
    assert (tmp_path / "one" / "packable_params.c").is_file()
    more = ["--params", "constant", "--compress", "lz4-layer"]
    assert main([*words, str(tmp_path / "two"), *more]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["packed_constants"]) == 2 and not report["parameters"]
    assert not (tmp_path / "two" / "packable_params.c").is_file()


def test_wrong_choices_are_named() -> None:
    model = packable().model()
    with pytest.raises(pybuild.BuildError, match="--compress: 'zip' is not known"):
        model.build(compress="zip")
    with pytest.raises(pybuild.BuildError, match="--params: there is no 'w3'"):
        model.build(params=["w3"])
    with pytest.raises(pybuild.BuildError, match="--lazy: there is no 'picture'"):
        model.build(lazy=["picture"])
