"""The graph builder: its page, its mistakes, and graphs that come back from JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pybuild
from pybuild import build
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.interpret import check_types, interpret
from tests.frontends.graphjson.test_graphjson import assert_comes_back
from tests.frontends.onnx.test_functions import elementwise
from tests.near.examples import few

F = np.float32
PAGE = Path(__file__).resolve().parents[1] / "docs" / "graphs.md"


def small() -> tuple[pybuild.GraphBuilder, Tensor]:
    b = pybuild.GraphBuilder("tiny")
    return b, b.input("x", (1, 4))


def test_a_graph() -> None:
    b, x = small()
    w = b.parameter("w", np.ones((3, 4), F))
    bias = b.constant("bias", np.arange(3, dtype=F))
    y = b.op("dense", x, w, bias)
    z = b.op("clip", y, clamp=[0, None], device=1)
    b.output(z, "scores")
    made = b.build()
    assert made.dump().splitlines() == [
        "graph tiny",
        "input x: float32[1,4]",
        "output scores: float32[1,3]",
        "dense: float32[1,3] = dense(x, param w, const bias)",
        "scores: float32[1,3] = clip(dense) clamp=(0, None) on device 1",
    ]
    assert made.parameters == {"w": "w"} and made.nodes[1].device == 1
    assert (y.shape, y.dtype, y.name) == ((1, 3), DType.FLOAT32, "dense")


def test_outputs_of_every_kind() -> None:
    """Renamed, twice, as it is, an input, a constant; more nodes after a build."""
    b, x = small()
    y = b.op("tanh", x)
    b.output(y, "a")
    first = b.build()
    assert [n.output for n in first.nodes] == ["a"]
    b.output(y, "b")
    b.output(x, "same")
    b.output(x)
    b.output(b.constant("c", np.arange(4, dtype=F)))
    z = b.op("tanh", y)
    b.output(z)
    made = b.build()
    assert made.outputs == ("a", "b", "same", "x", "c", "tanh_2")
    values = {"x": np.linspace(-1, 1, 4, dtype=F).reshape(1, 4)}
    want = interpret(made, values)
    net = build(made).host()
    net.run(**values)
    for index, name in enumerate(made.outputs):
        np.testing.assert_allclose(net.get_output(index), want[name], rtol=1e-6)
    assert first.outputs == ("a",)


def test_quantised() -> None:
    b = pybuild.GraphBuilder("int8")
    x = b.input("x", (1, 4, 4, 2), "int8", quant=(0.5, 3))
    w = b.constant("w", np.ones((3, 2), np.int8), Quant((0.1, 0.2, 0.3), (0, 0, 0), 0))
    p = b.op("max_pool2d", x, kernel=(2, 2), strides=(2, 2))
    assert p.quant == x.quant and p.shape == (1, 2, 2, 2)
    d = b.op("dense", p, w, quant=(1.0, -1))
    f = b.op("dequantize", d)
    q = b.op("quantize", f, quant=(0.25, 0))
    u = b.op("quantize", f, dtype="uint8", quant=(0.25, 0))
    assert [t.dtype.value for t in (d, f, q, u)] == ["int8", "float32", "int8", "uint8"]
    for tensor in (q, u):
        b.output(tensor)
    assert check_types(b.build()) == []
    assert_comes_back(b.build())


def test_calls() -> None:
    loop = elementwise("sum", "+")
    function = pybuild.function("mine", loop=loop, arguments=[4])
    b, x = small()
    (y,) = b.call(function, x, x, outputs=[((1, 4), "float32")], name="called")
    b.output(y)
    net = build(b.build()).host()
    net.run(x=np.ones((1, 4), F))
    assert net.get_output("called").tolist() == [[2.0] * 4]
    y, z = b.call(function, x, x, outputs=[([4], "int8"), ([2], "float32")])
    assert (y.name, z.name) == ("mine", "mine:1")
    assert (y.dtype, z.shape) == (DType.INT8, (2,))


OPERATOR_NAMES = ", ".join(sorted(OPERATORS.keys() - {"call"}))
TYPES = ", ".join(kind.value for kind in DType)
ADD = pybuild.function("f", op="add")
LOOP = pybuild.function("f", loop=elementwise("sum", "+"), arguments=[4])
Make = Callable[[Any, Tensor], object]
MISTAKES: list[tuple[Make, str]] = [
    (lambda b, x: b.op("dens", x),
     f"node 'dens' (dens): the operator 'dens' does not exist. Hint: one of "
     f"{OPERATOR_NAMES}"),
    (lambda b, x: b.op("call", x), "node 'call' (call): the operator 'call' does not "
     f"exist. Hint: one of {OPERATOR_NAMES}"),
    (lambda b, x: b.op("dense", x), "node 'dense' (dense): has 1 inputs, not 2 to 3"),
    (lambda b, x: b.op("dense", x, b.constant("w", np.ones((2, 3), F)), name="fc"),
     "node 'fc' (dense): needs x[...,K] and w[O,K], has (1, 4) and (2, 3)"),
    (lambda b, x: b.op("clip", x, high=1), "node 'clip' (clip): has an attribute "
     "'high'; known are clamp, rounding, wide"),
    (lambda b, x: b.op("softmax", x, axis=1, beta="x"), "node 'softmax' (softmax): "
     "'beta' is 'x', it must be a number"),
    (lambda b, x: b.op("softmax", None, axis=1, beta=1.0),
     "node 'softmax' (softmax): input 0 is missing"),
    (lambda b, x: b.op("add", x, None), "node 'add' (add): input 1 is missing"),
    (lambda b, x: b.op("add", x, np.ones(4)), "node 'add' (add): input 1 is ndarray, "
     "not a tensor of the builder. Hint: constant(name, value) or parameter(name, "
     "value) makes one"),
    (lambda b, x: b.op("add", x, pybuild.GraphBuilder().input("x", [3])),
     "node 'add' (add): input 1, 'x', is of another builder"),
    (lambda b, x: b.op("reshape", x, shape=[3]),
     "node 'reshape' (reshape): (1, 4) does not reshape to (3,)"),
    (lambda b, x: b.op("tanh", x, shape=[4]), "node 'tanh' (tanh): shape= is for "
     "reshape only; here it follows"),
    (lambda b, x: b.op("tanh", x, dtype="int8"), "node 'tanh' (tanh): its output is "
     "float32, not int8"),
    (lambda b, x: b.op("tanh", x, dtype="half"), "node 'tanh' (tanh): the type 'half' "
     f"is not supported. Hint: one of {TYPES}"),
    (lambda b, x: b.op("tanh", x, device=-1), "node 'tanh' (tanh): device -1 is not an "
     "index into the devices"),
    (lambda b, x: b.op("tanh", x, name="x"), "node 'x': another tensor has this name"),
    (lambda b, x: b.op("quantize", x), "node 'quantize' (quantize): 'quantize' is int8."
     " Hint: quantise to int8, uint8 or int16, with a scale"),
    (lambda b, x: b.op("quantize", x, quant=Quant((1.0, 2.0), (0, 0), 1)),
     "node 'quantize' (quantize): Quant(scale=(1.0, 2.0), zero_point=(0, 0), axis=1) "
     "is not a quantisation of it: 2 scales and 2 zero points for shape [1, 4], axis 1."
     " Hint: give (scale, zero_point), or a pybuild.ir.graph.Quant"),
    (lambda b, x: b.op("mean", x, axes=5, keepdims=True), "node 'mean' (mean): 'axes' "
     "is 5, it must be a list of integers"),
    (lambda b, x: b.call(ADD, x, outputs=[]), "node 'f' (call): function f is an "
     "operator. Hint: op('add', ...)"),
    (lambda b, x: b.call(LOOP, x, outputs=[]), "node 'f' (call): has no outputs"),
    (lambda b, x: b.call("f", x, outputs=[]), "node '' (call): 'f' is not a function. "
     "Hint: make it with pybuild.function(name, ...)"),
    (lambda b, x: b.call(LOOP, outputs=[([1], "int8"), ([1], "int2")]), "node 'f' "
     f"(call): the type 'int2' is not supported. Hint: one of {TYPES}"),
    (lambda b, x: b.input("x", [1]), "input 'x': another tensor has this name"),
    (lambda b, x: b.input("", [1]), "input '': '' is not a name"),
    (lambda b, x: b.input("y", [-1]), "input 'y': has shape [-1]"),
    (lambda b, x: b.input("y", 3), "input 'y': 3 is not a shape"),
    (lambda b, x: b.input("y", [1], "int8", quant=(-1, 1)), "input 'y': Quant(scale="
     "(-1,), zero_point=(1,), axis=None) is not a quantisation of it: its scale is not "
     "a list of positive numbers. "
     "Hint: give (scale, zero_point), or a pybuild.ir.graph.Quant"),
    (lambda b, x: b.input("y", [1], "int8", quant=3), "input 'y': 3 is not a "
     "quantisation of it: 'int' object is not subscriptable. Hint: give (scale, "
     "zero_point), or a pybuild.ir.graph.Quant"),
    (lambda b, x: b.parameter("w", [0.5j]), "parameter 'w': the type 'complex128' is "
     f"not supported. Hint: one of {TYPES}"),
    (lambda b, x: b.constant("x", np.zeros(1, F)), "constant 'x': another tensor has "
     "this name"),
    (lambda b, x: (b.output(x, "y"), b.output(x, "y")),
     "output 'y': there is an output of this name"),
    (lambda b, x: b.output(b.op("tanh", x), "x"),
     "output 'x': another tensor has this name"),
    (lambda b, x: (b.output(x, "y"), b.input("y", [1])),
     "input 'y': another tensor has this name"),
    (lambda b, x: b.output(None), "output '': input 0 is missing"),
    (lambda b, x: b.output("x"), "output '': input 0 is str, not a tensor of the "
     "builder. Hint: constant(name, value) or parameter(name, value) makes one"),
    (lambda b, x: b.build(), "the graph has no outputs. Hint: output(tensor) makes a "
     "tensor one"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "what"), MISTAKES, ids=[w for _, w in MISTAKES])
def test_mistakes(make: Make, what: str) -> None:
    b, x = small()
    with pytest.raises(BuildError) as caught:
        make(b, x)
    assert str(caught.value) == f"tiny: {what}"
    b.output(b.op("tanh", x, name="fine"))
    b.build()


# ---- any graph ------------------------------------------------------------------


@st.composite
def built_graphs(draw: st.DrawFn) -> Graph:
    """A builder called in any way that makes sense."""
    b = pybuild.GraphBuilder(draw(st.sampled_from(["net", "a b", "é"])))
    tensors = [b.input("x", (2, 3))]
    for index in range(draw(st.integers(0, 8))):
        tensors.append(_any_tensor(draw, b, tensors, index))
    for tensor in draw(st.lists(st.sampled_from(tensors), min_size=1, unique=True)):
        b.output(tensor, draw(st.sampled_from(["", f"out {tensor.name}"])))
    return b.build()


def _any_tensor(
    draw: st.DrawFn, b: pybuild.GraphBuilder, tensors: list[Tensor], index: int
) -> Tensor:
    values = np.asarray(draw(st.lists(st.floats(width=32), min_size=6, max_size=6)), F)
    one, other = (draw(st.sampled_from(tensors)) for _ in range(2))
    match draw(st.sampled_from(["in", "const", "param", "add", "clip", "reshape"])):
        case "in":
            return b.input(f"in {index}", (2, 3), lazy=draw(st.booleans()))
        case "const":
            return b.constant(f"const {index}", values.reshape(2, 3))
        case "param":
            return b.parameter(f"param {index}", values.reshape(2, 3))
        case "clip":
            return b.op("clip", one, clamp=(-0.5, None))
        case "reshape":
            flat = b.op("reshape", one, shape=(6,))
            return b.op("reshape", flat, shape=(2, 3))
        case _:
            return b.op("add", one, other, name=f"sum {index}")


@settings(max_examples=few(50, 150))
@given(built_graphs())
def test_any_graph_comes_back(made: Graph) -> None:
    text, params = graphjson.dump(made)
    back = graphjson.load("model.json", text.encode(), params)
    assert graphjson.dump(back) == (text, params)
    assert (back.nodes, back.tensors) == (made.nodes, made.tensors)
    assert (back.inputs, back.outputs) == (made.inputs, made.outputs)
    assert (back.name, back.parameters) == (made.name, made.parameters)
    assert back.lazy == made.lazy
    assert back.constants.keys() == made.constants.keys()
    for name, value in made.constants.items():
        assert value.tobytes() == back.constants[name].tobytes()
