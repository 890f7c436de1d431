"""Parts of float graphs that become one operator of int16, and where int16 begins."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pybuild
from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.ops.fixed_point.curves16 import curve_between
from pybuild.ops.interpret import interpret
from pybuild.passes.products.norms import join_norms
from pybuild.quantisation.curves import is_smooth, points
from pybuild.quantisation.regions import CURVE, NORM, regions
from pybuild.quantisation.scheme import wide_activation
from pybuild.quantisation.transformer import scaled_softmax, wide_nodes
from tests.graphs.quantise import normal


def mlp(centred: bool = True, fn: str = "erf", shared: bool = False) -> Graph:
    """A layer, a norm written out, two layers with a function between them; a third."""
    make = pybuild.GraphBuilder("mlp")
    x = make.input("x", (1, 5, 8))
    first = make.op("dense", x, make.constant("w0", normal((8, 8), 0)), name="first")
    d = first
    if centred:
        mean = make.op("mean", first, axes=(2,), keepdims=True)
        d = make.op("sub", first, mean)
    variance = make.op("mean", make.op("mul", d, d), axes=(2,), keepdims=True)
    epsilon = make.constant("epsilon", np.float32(1e-3).reshape(()))
    root = make.op("map", make.op("add", variance, epsilon), fn="sqrt")
    y = make.op("map", d, root, fn="divide")
    gamma = make.constant("gamma", normal((8,), 1))
    y = make.op("mul", y, gamma, name="scaled")
    up = make.op("dense", y, make.constant("w1", normal((8, 8), 2)), name="up")
    curve = make.op("mul", up, make.op("map", up, fn=fn), name="curve")
    down = make.op("dense", curve, make.constant("w2", normal((8, 8), 3)), name="down")
    last = make.op("mul", down, make.op("map", down, fn=fn), name="later")
    make.output(make.op("dense", last, make.constant("w3", normal((4, 8), 4))), "y")
    if shared:
        make.output(make.op("copy", d), "z")
    return join_norms(make.build())


@pytest.mark.parametrize("centred", [True, False])
def test_a_norm_and_a_curve_are_found(centred: bool) -> None:
    graph = mlp(centred)
    found = {one.nodes[-1].name: one for one in regions(graph).values()}
    assert {n: r.op for n, r in found.items()} == {
        "scaled": NORM, "curve": CURVE, "later": CURVE,
    }  # fmt: skip
    norm = found["scaled"]
    assert norm.source == "first" and norm.attrs["centred"] is centred
    assert norm.attrs["epsilon"] == pytest.approx(1e-3)
    np.testing.assert_array_equal(norm.constants[0], normal((8,), 1))
    assert [node.op for node in norm.nodes] == ["group_norm"]


def test_no_norm_whose_inside_others_read() -> None:
    assert NORM not in {one.op for one in regions(mlp(shared=True)).values()}


def test_int16_is_around_norms_and_ends_after_two_layers() -> None:
    """After the second layer, and its function, it is an int8 net again."""
    graph = mlp()
    wide = wide_nodes(graph, regions(graph))
    assert wide == {"first", "scaled", "up", "curve", "down", "later"}
    assert not wide_nodes(graph, {})


def test_curves_that_lines_do_not_follow_stay_float() -> None:
    for fn, smooth in (("erf", True), ("floor", False)):
        graph = mlp(fn=fn)
        (curve,) = [r for r in regions(graph).values() if r.output == "curve"]
        scale = wide_activation(-4, 4).scale[0]
        assert is_smooth(graph, curve, scale, 4.0) is smooth
    graph = mlp(fn="log")
    (curve,) = [r for r in regions(graph).values() if r.output == "curve"]
    assert not is_smooth(graph, curve, 1e-4, 4.0)  # of numbers below zero
    data = np.random.default_rng(0).standard_normal((20, 1, 5, 8)).astype(np.float32)
    made = pybuild.quantise(mlp(), {"x": data})
    ops = [node.op for node in made.model.lower().nodes]
    assert ops.count("norm") == 1 and ops.count("lookup") == 2
    assert not made.report.floats


def test_points_are_those_of_the_function() -> None:
    graph = mlp()
    (curve,) = [r for r in regions(graph).values() if r.output == "curve"]
    x, y = (Tensor(n, (1, 5, 8), DType.INT16, Quant((s,), (0,)))
            for n, s in (("up", 1e-4), ("curve", 2e-4)))  # fmt: skip
    table = points(graph, curve, x, y)
    whole = np.arange(65536)
    made = curve_between(table, whole)
    at = (whole - 32768) * 1e-4
    want = at * np.vectorize(math.erf)(at) / 2e-4
    assert table.shape == (513,) and np.abs(made - want).max() < 1.8


def test_a_factor_before_softmax_is_its_beta() -> None:
    make = pybuild.GraphBuilder("soft")
    x = make.input("x", (2, 6))
    half = make.constant("half", np.float32(0.5).reshape(()))
    make.output(make.op("softmax", make.op("mul", x, half), axis=1, beta=1.0), "y")
    made = scaled_softmax(make.build())
    assert [n.op for n in made.nodes] == ["softmax"]
    assert made.nodes[0].attrs["beta"] == 0.5


def test_a_product_of_two_computed_tensors_is_int8() -> None:
    """Of PointNet's transform: no softmax, and no norm, which would make it int16."""
    make = pybuild.GraphBuilder("product")
    x = make.input("x", (1, 12, 8))
    a, b = (
        make.op("dense", x, make.constant(f"w{n}", normal((8, 8), n))) for n in range(2)
    )
    y = make.op("matmul", a, b, transpose_b=True)
    make.output(make.op("dense", y, make.constant("w2", normal((4, 12), 2))), "y")
    graph = make.build()
    data = np.random.default_rng(0).standard_normal((20, 1, 12, 8)).astype(np.float32)
    made = pybuild.quantise(graph, {"x": data})
    assert not made.report.floats
    lowered = made.model.lower()
    (product,) = [n for n in lowered.nodes if n.op == "matmul"]
    names = (*product.inputs, product.output)
    assert {lowered.tensor(n).dtype for n in names} == {DType.INT8}
    net = made.model.build().host("llvm")
    want = interpret(graph, {"x": data[0]})["y"]
    assert np.abs(net.run(x=data[0])["y"] - want).max() < 0.05 * np.abs(want).max()
