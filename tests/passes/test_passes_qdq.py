"""QDQ to integers on graphs: what becomes int8, what must stay float."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Quant, Tensor, verify
from pybuild.ops.interpret import check_types, interpret
from pybuild.passes.dead import remove_dead
from pybuild.passes.fold import fold_constants
from pybuild.passes.qdq import integer_arithmetic
from tests.passes.passes_graph import F, Small, inputs_of, ops, rounded

X, Y = Quant((0.05,), (3,)), Quant((0.07,), (-11,))
SIMULATED = {"simulated": True}


class Qdq(Small):
    """Small, with pairs that stand for integers."""

    def pair(self, name: str, quant: Quant, simulated: bool = True) -> str:
        attrs = SIMULATED if simulated else {}
        self.node("quantize", name, f"{name}_q", quant=quant, **attrs)
        return self.node("dequantize", f"{name}_q", f"{name}_d", **attrs)

    def int8(self, name: str, value: np.ndarray, quant: Quant) -> str:
        self.constant(f"{name}_q", value, quant)
        return self.node("dequantize", f"{name}_q", name, **SIMULATED)


def lower(graph: Graph) -> Graph:
    verify(graph)
    made = remove_dead(fold_constants(integer_arithmetic(graph)))
    verify(made)
    assert check_types(made) == []
    assert all("simulated" not in node.attrs for node in made.nodes)
    return made


def same(graph: Graph, step: float) -> Graph:
    """Lowers; the outputs are those of the float graph but for a step on a tie."""
    made = lower(graph)
    for seed in range(3):
        values = inputs_of(graph, seed)
        want = interpret(rounded(graph, "even"), values)
        have = interpret(rounded(made, "even"), values)
        for name in graph.outputs:
            far = np.abs(have[name].astype(np.float64) - want[name])
            assert far.max() <= step * 1.001
            assert (far > step / 2).mean() <= 0.05
    return made


def conv(g: Qdq, x: str, weights: Quant, bias: str, **attrs: Any) -> None:
    chance = np.random.default_rng(1)
    w = chance.integers(-127, 128, (4, 2, 2, 3), np.int8)
    g.int8("w", w, weights)
    moves = {"strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 0, 0), "groups": 1}
    g.node("conv2d", f"{x} w {bias}", "c", **{**moves, **attrs})


def bias_of(g: Qdq, kind: str, scales: tuple[float, ...]) -> str:
    values = np.asarray([100, -200, 300, 0], np.int32)
    axis = 0 if len(scales) > 1 else None
    match kind:
        case "exact":
            g.int8(
                "b", values, Quant(tuple(X.scale[0] * s for s in scales), (0,), axis)
            )
        case "other":
            g.int8("b", values, Quant((0.002,), (0,)))
        case "float":
            g.constant("b", values.astype(F) / F(150))
    return "b"


@pytest.mark.parametrize("kind", ["exact", "other", "float"])
@pytest.mark.parametrize("scales", [(0.01,), (0.01, 0.02, 0.005, 0.03)])
def test_a_convolution(kind: str, scales: tuple[float, ...]) -> None:
    g = Qdq()
    g.input("x", 1, 5, 4, 3)
    x = g.pair("x", X)
    axis = 0 if len(scales) > 1 else None
    bias = bias_of(g, kind, scales)
    conv(g, x, Quant(scales, (0,), axis), bias, clamp=(0.0, None))
    g.node("dequantize", g.node("quantize", "c", "q", quant=Y, **SIMULATED), "y")
    made = same(g.graph("y"), 0.07)
    assert ops(made) == ["quantize", "conv2d", "dequantize"]
    layer = made.nodes[1]
    assert (layer.name, layer.output, layer.attrs["clamp"]) == ("c", "q", (0.0, None))
    assert made.tensor(layer.inputs[2]).dtype is DType.INT32
    if kind == "exact":
        assert layer.inputs[2] == "b_q"


def test_every_computing_operator() -> None:
    whole: dict[str, dict[str, Any]] = {
        "add": {}, "sub": {}, "mul": {}, "logistic": {}, "tanh": {},
        "leaky_relu": {"alpha": 0.2}, "clip": {"clamp": (-1.0, 1.0)},
        "softmax": {"axis": 3, "beta": 1.0}, "mean": {"axes": (1, 2), "keepdims": True},
        "avg_pool2d": {"kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0),
                       "count_include_pad": False},
    }  # fmt: skip
    for op, attrs in whole.items():
        g = Qdq()
        g.input("x", 1, 5, 4, 3)
        x = g.pair("x", X)
        both = op in ("add", "sub", "mul")
        g.node(op, f"{x} {x}" if both else x, "c", **attrs)
        y = g.pair("c", Y)
        assert ops(same(g.graph(y), 0.07)) == ["quantize", op, "dequantize"], op


def test_movement_is_done_on_the_integers() -> None:
    """Above the quantize as below the dequantize."""
    g = Qdq()
    g.input("x", 2, 6)
    x = g.pair("x", X)
    g.node("reshape", x, "r", shape=(3, 4))
    g.node("tanh", "r", "t")
    g.node("transpose", "t", "m", perm=(1, 0))
    g.node("pad", "m", "p", pads=((0, 1), (0, 0)), value=0.0)
    y = g.pair("p", Y)
    made = same(g.graph(y), 0.07)
    assert ops(made) == [
        "quantize", "reshape", "tanh", "transpose", "pad", "dequantize",
    ]  # fmt: skip
    assert {made.tensor(n.output).dtype for n in made.nodes[:-1]} == {DType.INT8}


def test_a_change_of_scale_is_one_requantisation() -> None:
    g = Qdq()
    g.input("x", 2, 6)
    y = g.pair(g.pair("x", X), Y)
    assert ops(same(g.graph(y), 0.07)) == ["quantize", "quantize", "dequantize"]


def test_the_same_scale_again_is_nothing() -> None:
    g = Qdq()
    g.input("x", 2, 6)
    y = g.pair(g.pair("x", X), X)
    assert ops(same(g.graph(y), 0.05)) == ["quantize", "dequantize"]


def test_inputs_of_a_concat_are_requantised() -> None:
    g = Qdq()
    g.input("x", 2, 6)
    x = g.pair("x", X)
    g.node("tanh", x, "t")
    t = g.pair("t", Quant((1 / 128,), (0,)))
    g.node("concat", f"{x} {t}", "c", axis=1)
    made = same(g.graph(g.pair("c", X)), 0.05)
    assert ops(made) == ["quantize", "tanh", "quantize", "concat", "dequantize"]


def float_ops(graph: Graph) -> list[str]:
    return [
        n.op for n in graph.nodes
        if n.op not in ("quantize", "dequantize")
        and graph.tensor(n.output).dtype is DType.FLOAT32
    ]  # fmt: skip


def test_a_float_reader_keeps_the_operator_float() -> None:
    g = Qdq()
    g.input("x", 2, 6)
    g.node("tanh", g.pair("x", X), "t")
    g.node("logistic", "t", "z")
    made = same(g.graph(g.pair("t", Y), "z"), 0.07)
    assert float_ops(made) == ["tanh", "logistic"]


def test_an_output_between_keeps_the_operator_float() -> None:
    g = Qdq()
    g.input("x", 2, 6)
    g.node("tanh", g.pair("x", X), "t")
    assert float_ops(same(g.graph(g.pair("t", Y), "t"), 0.07)) == ["tanh"]


def test_weights_that_do_not_fit_keep_the_layer_float() -> None:
    """A zero point is taken out; a scale that leaves the bias no room is not."""
    for quant, bias, floats in (
        (Quant((0.01,), (5,)), "exact", []),
        (Quant((1e-12,), (0,)), "other", ["conv2d"]),
    ):
        g = Qdq()
        g.input("x", 1, 5, 4, 3)
        x = g.pair("x", X)
        conv(g, x, quant, bias_of(g, bias, quant.scale))
        made = same(g.graph(g.pair("c", Y)), 0.07)
        assert float_ops(made) == floats


def test_sums_that_could_overflow_keep_the_layer_float() -> None:
    g = Qdq()
    g.input("x", 1, 70000)
    x = g.pair("x", Quant((0.05,), (-128,)))
    g.int8("w", np.full((1, 70000), 127, np.int8), Quant((0.01,), (0,)))
    g.node("dense", f"{x} w", "c")
    assert float_ops(lower(g.graph(g.pair("c", Y)))) == ["dense"]


def test_pairs_that_do_not_stand_for_integers_stay() -> None:
    """A DEQUANTIZE, float operator, QUANTIZE of a .tflite file means float."""
    g = Qdq()
    g.input("x", 2, 6)
    g.node("tanh", g.pair("x", X, simulated=False), "t")
    y = g.pair("t", Y, simulated=False)
    graph = g.graph(y)
    assert integer_arithmetic(graph).dump() == graph.dump()


def test_per_channel_activations_stay_float() -> None:
    g = Qdq()
    g.tensors["x"] = Tensor("x", (2, 2), DType.INT8, Quant((0.1, 0.2), (0,), 1))
    g.inputs.append("x")
    g.node("dequantize", "x", "d", **SIMULATED)
    g.node("tanh", "d", "t")
    assert float_ops(same(g.graph(g.pair("t", Y)), 0.07)) == ["tanh"]
