"""An image with channels first is read and written row by row: the bits are as before,
and its copy takes a row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from pybuild.graph_builder import GraphBuilder
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.passes.ends.planes import MOST_PLANES, MOST_WRITTEN, by_planes
from pybuild.plan.choice import by_rows
from tests.graphs.rows import model_of

KINDS = ("float32", "int8", "quantised")


def _net(kind: str, planes: int = 3, height: int = 18, width: int = 14) -> Graph:
    """NCHW; two convolutions; "quantised": floats that become int8 first."""
    chance, net = np.random.default_rng((46, planes, height)), GraphBuilder("planes")
    given = {"quant": (0.02, 3)} if kind == "int8" else {}
    dtype = "int8" if kind == "int8" else "float32"
    x = net.input("x", (1, planes, height, width), dtype, **given)
    if kind == "quantised":
        given = {"quant": (0.02, 3)}
        x = net.op("quantize", x, **given)
    x = net.op("transpose", x, perm=(0, 2, 3, 1), **given)
    for number, (outs, step) in enumerate(((6, 2), (4, 1))):
        form = (outs, 3, 3, x.shape[3])
        pads = {"strides": (step, step), "pads": (1, 1, 1, 1)}
        if kind == "float32":
            values = chance.normal(0, 0.3, form).astype(np.float32)
            x = net.op("conv2d", x, net.constant(f"w{number}", values), **pads)
            continue
        values = chance.integers(-127, 128, form).astype(np.int8)
        w = net.constant(f"w{number}", values, (0.004, 0))
        bias = chance.integers(-99, 99, outs).astype(np.int32)
        b = net.constant(f"b{number}", bias)
        x = net.op("conv2d", x, w, b, quant=(0.05, -3), **pads)
    net.output(x)
    return net.build()


@functools.cache
def _built(kind: str, **options: Any) -> Library:
    return model_of(_net(kind)).build(target="cortex-m4", **options)


def _image(graph: Graph, seed: int) -> np.ndarray:
    tensor, chance = graph.tensor("x"), np.random.default_rng(seed)
    if tensor.dtype.value == "int8":
        return chance.integers(-128, 128, tensor.shape).astype(np.int8)
    return chance.normal(0, 1.5, tensor.shape).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("planes", [2, 3, 4])
def test_the_graph_means_the_same(kind: str, planes: int) -> None:
    graph = model_of(_net(kind, planes)).lower()
    made = by_planes(graph)
    assert made is not None and not any(n.op == "transpose" for n in made.nodes)
    for seed in range(3):
        x = {"x": _image(graph, seed)}
        a, b = (interpret(g, x)[g.outputs[0]] for g in (graph, made))
        assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_back_ends_have_its_bits(kind: str, backend: str) -> None:
    made = _built(kind, optimise="ram", lazy=("x",))
    assert made.plan.steps[0].node.op == "concat" and by_rows(made.plan) > 2
    whole = _built(kind, plan="whole")
    assert [step.node.op for step in whole.plan.steps].count("transpose") == 1
    x = _image(made.plan.graph, 5)
    found = []
    for one in (made, whole):
        net = bind_lazy(one.host(backend))
        net.run(x=x)
        found += net.outputs().values()
        net.close()
    assert np.array_equal(*found)


@pytest.mark.parametrize("kind", KINDS)
def test_the_copy_takes_a_row(kind: str) -> None:
    """Of an input that lies elsewhere hardly anything is held, and its channels may
    be first as well as last."""
    first = _built(kind, lazy=("x",), optimise="ram").plan
    last = model_of(_net(kind)).build(
        target="cortex-m4", lazy=("x",), optimise="ram", layout={"x": "nhwc"}
    )
    _, planes, _, width = first.graph.tensor("x").shape
    row = planes * width * (4 if kind != "int8" else 1)
    # a window of three rows is held instead of read where it is
    assert first.arena_bytes <= last.plan.arena_bytes + 4 * row


def test_never_more_bytes_than_by_the_transpose() -> None:
    for kind in KINDS:
        made = _built(kind)
        assert made.planners is not None and len(made.planners.ways) >= 2
        each = [way.plan(made.options).arena_bytes for way in made.planners.ways]
        assert made.plan.arena_bytes == min(each)


def test_what_is_not_such_an_image_stays() -> None:
    assert by_planes(model_of(_net("int8", MOST_PLANES + 1)).lower()) is None
    net = GraphBuilder("two")
    x = net.input("x", (2, 3, 4, 4), "float32")
    net.output(net.op("transpose", x, perm=(0, 2, 3, 1)))
    assert by_planes(net.build()) is None
    net = GraphBuilder("other")
    x = net.input("x", (1, 3, 4, 4), "float32")
    net.output(net.op("transpose", x, perm=(0, 3, 2, 1)))
    assert by_planes(net.build()) is None


def test_a_push_is_a_row_of_each_plane_or_a_row_of_pixels() -> None:
    made = _built("float32", push=("x",))
    assert dict(made.options.layout) == {"x": "nhcw"}
    model_of(_net("float32")).build(push=("x",), layout={"x": "nhwc"})


# ---- outputs ------------------------------------------------------------------------

ENDS = ("float32", "int8", "dequantised before", "dequantised after")


def _mask(kind: str, planes: int = 3, more: bool = False) -> Graph:
    """NHWC; two convolutions; an output with channels first. more: another output"""
    chance, net = np.random.default_rng((47, planes)), GraphBuilder("mask")
    floats = kind == "float32"
    given = {} if floats else {"quant": (0.02, 3)}
    x = net.input("x", (1, 24, 40, 2), "float32" if floats else "int8", **given)
    for number, outs in enumerate((8, planes)):
        form, pads = (outs, 3, 3, x.shape[3]), {"pads": (1, 1, 1, 1)}
        if floats:
            values = chance.normal(0, 0.3, form).astype(np.float32)
            x = net.op("conv2d", x, net.constant(f"w{number}", values), **pads)
            continue
        values = chance.integers(-127, 128, form).astype(np.int8)
        w = net.constant(f"w{number}", values, (0.004, 0))
        b = net.constant(f"b{number}", chance.integers(-99, 99, outs).astype(np.int32))
        x = net.op("conv2d", x, w, b, quant=(0.05, -3), **pads)
    if more:
        net.output(net.op("avg_pool2d", x, kernel=(24, 40)))
    given = {} if floats else {"quant": (0.05, -3)}
    if kind == "dequantised before":
        x, given = net.op("dequantize", x), {}
    x = net.op("transpose", x, perm=(0, 3, 1, 2), **given)
    net.output(net.op("dequantize", x) if kind == "dequantised after" else x)
    return net.build()


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("planes", [2, 5])
@pytest.mark.parametrize("more", [False, True])
def test_a_graph_that_writes_planes_means_the_same(
    kind: str, planes: int, more: bool
) -> None:
    graph = model_of(_mask(kind, planes, more)).lower()
    made = by_planes(graph)
    assert made is not None and not any(n.op == "transpose" for n in made.nodes)
    assert made.outputs == graph.outputs
    x = {"x": _image(graph, 7)}
    a, b = (interpret(g, x) for g in (graph, made))
    assert all(np.array_equal(a[name], b[name]) for name in graph.outputs)


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_planes_are_written_row_by_row(kind: str, backend: str) -> None:
    """Into memory of the caller's, with a few rows held; the bits are those of whole
    tensors."""
    graph = _mask(kind)
    made, whole = (
        model_of(graph).build(target="cortex-m4", plan=plan, lazy=graph.outputs)
        for plan in ("rows", "whole")
    )
    assert [step.node.op for step in whole.plan.steps].count("transpose") == 1
    assert not any(step.node.op == "transpose" for step in made.plan.steps)
    size = 1 if kind != "float32" else 4
    image, row = graph.tensor("x").bytes, size * 40 * (2 + 8 + 3)
    assert made.plan.arena_bytes < image + 5 * row + 256 < whole.plan.arena_bytes
    x = _image(graph, 5)
    found = []
    for one in (made, whole):
        net = bind_lazy(one.host(backend))
        net.run(x=x)
        found.append(net.outputs())
        net.close()
    assert all(np.array_equal(found[0][n], found[1][n]) for n in graph.outputs)


def test_pushed_floats_with_planes_at_both_ends() -> None:
    """No row is held longer than its readers need, and no kernel that spares bytes at a
    price is used where others spare nearly as many."""
    chance, net = np.random.default_rng(48), GraphBuilder("both")
    x = net.input("x", (1, 3, 32, 32), "float32")
    x = net.op("transpose", x, perm=(0, 2, 3, 1))
    for number, (outs, side) in enumerate(((8, 3), (16, 1), (4, 1))):
        values = chance.normal(0, 0.3, (outs, side, side, x.shape[3]))
        pads = {"pads": (side // 2,) * 4}
        w = net.constant(f"w{number}", values.astype(np.float32))
        x = net.op("conv2d", x, w, **pads)
    x = net.op("transpose", x, perm=(0, 3, 1, 2))
    net.output(x)
    made = model_of(net.build()).build(target="cortex-m4", push=("x",), lazy=(x.name,))
    held = made.plan.graph.tensor(x.name).bytes
    assert made.plan.arena_bytes < 0.6 * held
    assert not any(step.candidate.spare for step in made.plan.steps)


def test_what_is_no_such_output_stays() -> None:
    assert by_planes(model_of(_mask("int8", MOST_WRITTEN + 1)).lower()) is None
    net = GraphBuilder("read")
    x = net.input("x", (1, 4, 4, 3), "float32")
    y = net.op("transpose", x, perm=(0, 3, 1, 2))
    net.output(y)
    net.output(net.op("logistic", y))
    assert by_planes(net.build()) is None
