"""Functions of one int8 tensor between integers become tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Quant
from pybuild.ops.interpret import interpret
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
    many.constants["root"] = np.ones(5, F)
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
