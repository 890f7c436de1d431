"""Sums that are scaled up until they leave int32: kernels wrapped, numpy held them."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant
from pybuild.ops.interpret import interpret
from tests.graphs.rows import model_of
from tests.plan.test_rows import inputs_of, must_equal, outputs_of


def layer(op: str, up: float, least: float = 1.0) -> Graph:
    """32 products of at most 255 * 127, of which one is `up` steps of the output."""
    net = GraphBuilder(op)
    window = (1, 1) if op == "conv2d" else ()
    x = net.input("x", (1, *window, 32), "int8", (up, 127))
    values = np.resize(np.asarray([127, -127], np.int8), (2, *window, 32))
    w = net.constant("w", values, Quant((1.0,), (0,)))
    net.output(net.op(op, x, w, quant=(least, -128)))
    return net.build()


# half of the weights have either sign
MOST = 2.0**31 / (32 * 255 * 127 / 2)


@pytest.mark.parametrize(
    ("op", "rounding"), [("dense", "litert"), ("conv2d", "single"), ("dense", "single")]
)
def test_they_are_refused(op: str, rounding: str) -> None:
    text = f"{op}: node '{op}' ({op}): the scales of inputs and output are too far "
    text += "apart for 32 bits. Hint: calibrate the output of this layer"
    with pytest.raises(BuildError) as raised:
        model_of(layer(op, MOST * 1.001)).build(rounding=rounding)
    assert str(raised.value) == text


@pytest.mark.parametrize("far", [2.0**23, 2.0**80])
def test_tensors_whose_sum_no_fraction_fits(far: float) -> None:
    """Of the rule that rounds once: beyond int64, numpy stopped with a traceback."""
    net = GraphBuilder("sum")
    a, b = (net.input(name, (1, 4), "int8", (far, 3)) for name in "ab")
    net.output(net.op("add", a, b, quant=(1.0, 0)))
    with pytest.raises(BuildError, match=r"'add' .add.: the scales .* too far apart"):
        model_of(net.build()).build(rounding="onnx")


def test_scales_whose_ratio_float32_does_not_hold() -> None:
    """As the greatest multiplier, which is refused where it matters: no traceback."""
    net = GraphBuilder("ratio")
    x = net.input("x", (1, 8), "int8", (1e20, 3))
    steep = net.op("leaky_relu", x, alpha=0.1, quant=(1e-40, 0))
    net.output(steep)
    library = model_of(net.build()).build()
    wanted = interpret(library.plan.graph, inputs_of(library.plan.graph))
    must_equal(outputs_of(library), [wanted[steep.name]])
    net.output(net.op("mul", x, x, quant=(1e-40, 0)))
    with pytest.raises(BuildError, match="too far apart"):
        model_of(net.build()).build()


def test_below_that_they_are_held() -> None:
    graph = layer("dense", MOST * 0.999)
    library = model_of(graph).build()
    given = inputs_of(graph)
    wanted = interpret(library.plan.graph, given)
    must_equal(outputs_of(library), [wanted[name] for name in graph.outputs])


def test_sums_that_float32_scales_beyond_int64() -> None:
    """`--rounding onnx`: numpy's meaning wrapped, kernels held the ends."""
    library = model_of(layer("conv2d", 1e30)).build(rounding="onnx")
    net, lowered = library.host(), library.plan.graph
    for less, end in ((0, -128), (1, 127)):  # under which weights x is least
        x = np.where(np.arange(32) % 2 == less, -128, 127).astype(np.int8)
        x = x.reshape(1, 1, 1, 32)
        net.run(x=x)
        for made in (net.get_output("conv2d"), interpret(lowered, {"x": x})["conv2d"]):
            assert np.unique(made).tolist() == [end]


def test_infinite_scales_are_refused() -> None:
    with pytest.raises(BuildError, match=r"'conv2d' .*: the scales .* too far apart"):
        model_of(layer("conv2d", 1e20, 1e-30)).build(rounding="onnx")
