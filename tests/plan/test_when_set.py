"""Inputs that are converted when they are set: the arena holds the integers alone, and
every way to hand over the floats gives the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from pybuild.emit.tables.limits import CONVERT_POINTERS, step_must_fit
from pybuild.emit.tables.tables import StepRow
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.host.abi import CrtError
from pybuild.library import Library
from pybuild.model import Model
from tests.emit.test_generated_c import sanitized
from tests.graphs.rows import model_of
from tests.toolchains import ROOT

SIDE, CHANNELS = 16, 3
FLOATS = 4 * SIDE * SIDE * CHANNELS
BACKENDS = ("c", "llvm")
CHANCE = np.random.default_rng(41)


def _two_images() -> Model:
    """Two float images, quantised, each under a layer of its own; their sum."""
    net, chance = GraphBuilder("two"), np.random.default_rng(7)
    sums = []
    for name in ("left", "right"):
        x = net.input(name, (1, SIDE, SIDE, CHANNELS), "float32")
        q = net.op("quantize", x, quant=(0.02, 3))
        w = net.constant(
            f"w_{name}",
            chance.integers(-127, 128, (8, 3, 3, CHANNELS)).astype(np.int8),
            (0.004, 0),
        )
        b = net.constant(f"b_{name}", chance.integers(-99, 99, 8).astype(np.int32))
        pads: dict[str, Any] = {"strides": (2, 2), "pads": (0, 0, 1, 1)}
        sums.append(net.op("conv2d", q, w, b, quant=(0.05, -3), **pads))
    y = net.op("add", *sums, quant=(0.08, 1))
    net.output(net.op("dequantize", y))
    return model_of(net.build())


def _images() -> dict[str, Array]:
    shape = (1, SIDE, SIDE, CHANNELS)
    return {
        name: CHANCE.normal(size=shape).astype(np.float32) for name in ("left", "right")
    }


@pytest.fixture(scope="module")
def built() -> Library:
    return _two_images().build(target="cortex-m4", name="two")


@pytest.fixture(scope="module")
def held() -> Library:
    """The same, with the floats in the arena."""
    return _two_images().build(target="cortex-m4", input="keep")


def test_the_arena_holds_no_floats(built: Library, held: Library) -> None:
    assert set(built.plan.converted) == {"left", "right"}
    assert not held.plan.converted
    assert held.plan.arena_bytes > 2 * FLOATS
    assert built.plan.arena_bytes < FLOATS
    placements = {row.tensor: row for row in built.report.tensors}
    assert placements["left"].placement == "converted"
    assert placements["left"].bytes == 0
    assert placements["left"].shares_with == built.plan.converted["left"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_set_and_bound_give_the_same_bits(
    built: Library, held: Library, backend: str
) -> None:
    images = _images()
    wanted = held.host(backend)
    wanted.run(**images)
    want = wanted.get_output(0)
    net = built.host(backend)
    for order in (("left", "right"), ("right", "left")):
        for name in order:
            mine = images[name].copy()
            net.set_input(name, mine)
            mine[:] = 0  # it is free again
        net.run()
        assert np.array_equal(net.get_output(0), want)
    with pytest.raises(CrtError, match="CRT_ERR_INPUT_CONSUMED"):
        net.run()
    net.bind_input("left", images["left"])
    net.set_input("right", images["right"])
    net.run()
    assert np.array_equal(net.get_output(0), want)
    net.bind_input("right", images["right"])
    for _ in range(2):  # what is bound is not used up
        net.run()
        assert np.array_equal(net.get_output(0), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_floats_at_odd_addresses_are_taken(built: Library, backend: str) -> None:
    images = _images()
    net = built.host(backend)
    net.run(**images)
    want = net.get_output(0)
    raw = np.zeros(FLOATS + 1, np.uint8)
    odd = raw[1:].view(np.float32).reshape(images["left"].shape)
    odd[:] = images["left"]
    assert not odd.flags.aligned
    net.run(left=odd, right=images["right"])
    assert np.array_equal(net.get_output(0), want)


def test_there_is_no_float_memory_to_fill(built: Library, held: Library) -> None:
    net = built.host()
    with pytest.raises(CrtError, match="'left'; set_input converts it"):
        net.borrow_input("left")
    assert held.host().borrow_input("left").dtype == np.float32
    header = built.files()["two.h"]
    assert isinstance(header, str)
    assert "Input 'left': converted from data, which is free again" in header


@pytest.mark.parametrize(
    "options",
    [{"input": "keep"}, {"plan": "whole"}, {"lazy": ("left", "right")}, {"api": "tvm"}],
)
def test_who_needs_the_floats_keeps_them(options: dict[str, object]) -> None:
    assert not _two_images().build(**options).plan.converted  # type: ignore[arg-type]


def test_a_conversion_fits_the_pointers_of_crt(built: Library) -> None:
    header = (ROOT / "crt" / "include" / "crt" / "convert.h").read_text()
    assert f"#define CRT_CONVERT_POINTERS {CONVERT_POINTERS}\n" in header
    steps = [s for s in built.plan.steps if s.node.op == "quantize"]
    wide = replace(steps[0].candidate, scratch=16)
    row = SimpleNamespace(counts=(1, CONVERT_POINTERS, 0, 1))
    with pytest.raises(BuildError, match="Hint: --input keep"):
        step_must_fit(
            replace(steps[0], candidate=wide), cast(StepRow, row), built.plan.graph
        )


def test_one_of_two_may_be_lazy() -> None:
    built = _two_images().build(lazy=("left",))
    assert set(built.plan.converted) == {"right"}


def test_generated_c_sets_and_runs(tmp_path: Path) -> None:
    """The self-test of the tree sets both inputs, under sanitizers."""
    _two_images().build(tmp_path, name="two")
    assert "two: self-test: " in sanitized(tmp_path)


def test_models_that_take_turns_are_set_anew(held: Library) -> None:
    """In one memory: what was set is gone when the other model is set."""
    model = _two_images()
    image = pybuild.build_image({"a": model, "b": model}, exclusive=[("a", "b")])
    nets, images, wanted = image.host("llvm"), _images(), held.host()
    wanted.run(**images)
    for name in ("a", "b", "a"):
        nets[name].run(**images)
        assert np.array_equal(nets[name].get_output(0), wanted.get_output(0))
    for name, value in images.items():
        nets["a"].set_input(name, value)
    nets["b"].set_input("left", images["left"])
    with pytest.raises(CrtError, match="CRT_ERR_INPUT"):
        nets["a"].run()


def _planes(path: Path) -> Path:
    """A small float net with channels first, as exporters write it."""
    w = CHANCE.normal(size=(8, CHANNELS, 3, 3)).astype(np.float32)
    v = CHANCE.normal(size=(4, 8, 1, 1)).astype(np.float32)
    window: dict[str, Any] = {
        "kernel_shape": [3, 3],
        "pads": [1, 1, 1, 1],
        "strides": [2, 2],
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", **window),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "v"], ["y"], "second", kernel_shape=[1, 1]),
    ]
    given = helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [1, CHANNELS, SIDE, SIDE]
    )
    made = helper.make_tensor_value_info(
        "y", TensorProto.FLOAT, [1, 4, SIDE // 2, SIDE // 2]
    )
    values = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")]
    graph = helper.make_graph(nodes, "planes", [given], [made], values)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_image_with_channels_first_is_pushed(tmp_path: Path, backend: str) -> None:
    """A push is row y of all planes; the header says so."""
    model = pybuild.load(_planes(tmp_path / "planes.onnx"))
    whole, pushed = model.build(), model.build(push="x")
    assert pushed.plan.arena_bytes < whole.plan.arena_bytes - FLOATS / 2
    assert dict(pushed.options.layout) == {"x": "nhcw"}
    header = pushed.files()["planes.h"]
    assert isinstance(header, str)
    assert f"elements of a row, [{CHANNELS},{SIDE}]" in header
    x = CHANCE.normal(size=(1, CHANNELS, SIDE, SIDE)).astype(np.float32)
    want = whole.host(backend)
    want.run(x=x)
    net = pushed.host(backend)
    rows = np.ascontiguousarray(np.swapaxes(x, 1, 2)).reshape(SIDE, -1)
    for y in range(SIDE):
        net.push_rows("x", rows[y : y + 1])
    assert np.array_equal(net.get_output(0), want.get_output(0))
