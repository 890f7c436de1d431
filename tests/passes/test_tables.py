"""Functions of one int8 tensor between integers become tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Quant
from pybuild.ops.interpret import interpret
from pybuild.passes.legalise import set_rounding
from pybuild.passes.lookups.tables import use_tables
from tests.passes.passes_graph import F, Small, ops

OUT = Quant((0.02,), (-90,))


def gelu(*, of: str = "x", tail: bool = True) -> Small:
    """x * (erf(x / 1.4) + 1) / 2 of int8, as it is written out."""
    g = Small()
    g.input("x", 2, 5, quant=Quant((0.03,), (4,)))
    g.input("z", 2, 5, quant=Quant((0.03,), (4,)))
    g.constant("root", np.asarray([0.7071], F))
    g.constant("one", np.asarray(1, F))
    g.node("dequantize", "x", "real")
    g.node("dequantize", of, "other")
    g.node("mul", "real root", "scaled")
    g.node("map", "scaled", "erf", fn="erf")
    g.node("add", "erf one", "more")
    g.node("mul", "other more", "y")
    if tail:
        g.node("quantize", "y", "q", quant=OUT, rounding="even")
    return g


def values(graph: Graph) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int8]]]:
    chance = np.random.default_rng(1)
    return {n: chance.integers(-128, 128, (2, 5)).astype(np.int8) for n in graph.inputs}


def test_a_gelu_is_one_lookup() -> None:
    graph = gelu().graph("q")
    made = use_tables(graph, "onnx")
    assert ops(made) == ["lookup"]
    assert made.constants["q.table"].shape == (256,)
    given = values(graph)
    np.testing.assert_array_equal(
        interpret(made, given)["q"], interpret(graph, given)["q"]
    )


def test_what_is_no_function_of_one_tensor_stays() -> None:
    """Of two tensors; a number for each channel; real numbers; what has no number."""
    two = gelu(of="z").graph("q")
    floats = gelu(tail=False).graph("y")
    many = gelu()
    many.constants["root"] = np.arange(1, 6).astype(F)
    many.tensors["root"] = replace(many.tensors["root"], shape=(5,))
    none = gelu()
    none.constants["root"] = np.asarray([np.inf], F)
    open_ = replace(gelu().graph("q"), parameters={"root": "root"})
    for graph in (two, floats, many.graph("q"), none.graph("q"), open_):
        assert use_tables(graph, "onnx") == graph
    plain = gelu()
    plain.node("quantize", "real", "p", quant=OUT, rounding="even")
    assert use_tables(plain.graph("p"), "onnx") == plain.graph("p")
    wide = gelu().graph("q")
    tensors = {**wide.tensors, "q": replace(wide.tensor("q"), dtype=DType.INT16)}
    assert "lookup" not in ops(use_tables(replace(wide, tensors=tensors), "onnx"))


def test_what_else_is_read_on_the_way_stays() -> None:
    """A chain of requantising of which somebody reads the middle."""
    g = Small()
    g.input("x", 2, 5, quant=Quant((0.03,), (4,)))
    g.node("quantize", "x", "p", quant=OUT)
    g.node("quantize", "p", "q", quant=Quant((0.05,), (2,)))
    assert use_tables(g.graph("p", "q"), "onnx") == g.graph("p", "q")
    (made,) = use_tables(g.graph("q"), "onnx").nodes
    assert made.op == "lookup" and made.inputs[0] == "x"


def prelu(slopes: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Graph:
    """where(x < 0, x * slope, x) with a slope of each channel, as ONNX's PRelu is read;
    every int8 in each channel."""
    g = Small()
    g.input("x", 1, 256, 1, slopes.size, quant=Quant((0.0317,), (4,)))
    g.constant("slope", slopes.reshape(1, 1, 1, -1).astype(F))
    g.constant("zero", np.asarray(0, F))
    g.node("dequantize", "x", "real")
    g.node("map", "real zero", "below", fn="less")
    g.node("mul", "real slope", "scaled")
    g.node("map", "below scaled real", "y", fn="where")
    g.node("quantize", "y", "q", quant=Quant((0.0203,), (-90,)), rounding="even")
    return g.graph("q")


@pytest.mark.parametrize(
    ("slopes", "wanted"),
    [
        ([0.25, 0.25, 0.25], ["lookup"]),
        ([0.25, 0.1, 0.9, 0.0, -0.3], ["depthwise_conv2d", "lookup", "map"]),
        ([1.5, 2.0, 1.01], ["depthwise_conv2d", "lookup", "map"]),
        ([0.5, 2.0], None),  # neither line is the larger in all channels
    ],
)
def test_a_prelu_is_the_larger_of_two_lines(
    slopes: list[float], wanted: list[str] | None
) -> None:
    graph = prelu(np.asarray(slopes))
    made = set_rounding(use_tables(graph, "onnx"), "onnx")
    assert ops(made) == (wanted or ops(graph))
    every = np.arange(-128, 128).astype(np.int8)
    x = np.repeat(every, len(slopes)).reshape(1, 256, 1, -1)
    a, b = (interpret(g, {"x": x})["q"] for g in (graph, made))
    np.testing.assert_array_equal(a, b)


def test_slopes_from_seeds_are_equal_or_stay() -> None:
    for seed in range(40):
        chance = np.random.default_rng((75, seed))
        graph = prelu(chance.uniform(-0.5, 1.0, int(chance.integers(2, 17))))
        made = set_rounding(use_tables(graph, "onnx"), "onnx")
        x = chance.integers(-128, 128, graph.tensor("x").shape).astype(np.int8)
        a, b = (interpret(g, {"x": x})["q"] for g in (graph, made))
        np.testing.assert_array_equal(a, b)
        assert ops(made)[-1] == "map", seed
