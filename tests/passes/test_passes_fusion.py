"""Fusions: padding, batch normalisation and activations go into other operators."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.passes.activation import combined, fuse_activation
from pybuild.passes.batch_norm import fuse_batch_norm
from pybuild.passes.dead import remove_dead
from pybuild.passes.legalise import set_rounding
from pybuild.passes.pad import fuse_pad
from tests.passes.passes_graph import ONES, RELU, RELU6, Q, Small, after, conv, ops

# ---- fuse_pad ------------------------------------------------------------------------

AROUND = ((0, 0), (1, 2), (0, 1), (0, 0))


def test_padding_goes_into_a_convolution() -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2)
    g.node("pad", "x", "p", pads=AROUND, value=0.0)
    conv(g, "p", "y", pads=(1, 1, 0, 0))
    made = remove_dead(after(fuse_pad, g.graph("y")))
    assert ops(made) == ["conv2d"]
    assert made.nodes[0].attrs["pads"] == (2, 1, 2, 1)


def test_padding_of_zero_points_goes_into_an_int8_convolution() -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2, quant=Q)
    g.node("pad", "x", "p", pads=AROUND, value=0.0)
    w = np.arange(-9, 9, dtype=np.int8).reshape(3, 3, 2)
    g.constant("w", np.ascontiguousarray(w), Quant((0.01,), (0,)))
    g.node("depthwise_conv2d", "p w", "y", quant=Quant((0.02,), (-4,)), **ONES)
    assert ops(remove_dead(after(fuse_pad, g.graph("y")))) == ["depthwise_conv2d"]


def test_padding_goes_into_pools_where_exact() -> None:
    pool = {"kernel": (3, 3), "strides": (1, 1), "pads": (0, 0, 0, 0)}
    for op, value, fused in (
        ("avg_pool2d", 0.0, True), ("avg_pool2d", 1.0, False),
        ("max_pool2d", 0.0, False), ("max_pool2d", float("-inf"), True),
    ):  # fmt: skip
        g = Small()
        g.input("x", 1, 4, 4, 2)
        g.node("pad", "x", "p", pads=AROUND, value=value)
        attrs = {**pool, "count_include_pad": False} if op == "avg_pool2d" else pool
        g.node(op, "p", "y", **attrs)
        made = remove_dead(after(fuse_pad, g.graph("y"), 1e-6))
        assert ops(made) == ([op] if fused else ["pad", op])


def test_padding_of_padding_stays() -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2)
    g.node("pad", "x", "a", pads=AROUND, value=0.0)
    g.node("pad", "a", "y", pads=AROUND, value=0.0)
    assert ops(after(fuse_pad, g.graph("y"))) == ["pad", "pad"]


def test_other_padding_stays() -> None:
    for pads, value in ((AROUND, 1.0), (((0, 0), (0, 0), (0, 0), (1, 0)), 0.0)):
        g = Small()
        g.input("x", 1, 4, 4, 2)
        g.node("pad", "x", "p", pads=pads, value=value)
        conv(g, "p", "y", channels=2 if value else 3)
        made = remove_dead(after(fuse_pad, g.graph("y")))
        assert ops(made) == ["pad", "conv2d"]


# ---- fuse_batch_norm -----------------------------------------------------------------


@pytest.mark.parametrize("layer", ["conv2d", "depthwise_conv2d", "dense"])
def test_batch_norm_goes_into_the_layer(layer: str) -> None:
    g = Small()
    if layer == "dense":
        g.input("x", 2, 4)
        g.weights("w", 6, 4)
        g.node("dense", "x w", "c")
    else:
        g.input("x", 1, 4, 4, 3)
        shape = (6, 2, 2, 3) if layer == "conv2d" else (2, 2, 6)
        g.weights("w", *shape)
        g.weights("b", 6)
        more = {"groups": 1} if layer == "conv2d" else {}
        g.node(layer, "x w b", "c", **ONES, **more)
    g.weights("factor", 6)
    g.weights("offset", *(1,) * (len(g.tensors["c"].shape) - 1), 6)
    g.weights("one", 1)
    g.node("mul", "factor c", "m")
    g.node("add", "m offset", "a")
    g.node("sub", "a one", "y")
    made = after(fuse_batch_norm, g.graph("y"), 1e-5)
    assert ops(made) == [layer]
    assert made.nodes[0].output == "y" and made.nodes[0].name == "c"


def test_no_fusion_past_another_reader_an_activation_or_rows() -> None:
    for reader, clamp, shape in (
        (True, None, (3,)), (False, RELU, (3,)), (False, None, (4, 1)),
        (False, None, (4, 4, 3)),
    ):  # fmt: skip
        g = Small()
        g.input("x", 1, 4, 4, 2)
        conv(g, "x", "c", **({"clamp": clamp} if clamp else {}))
        g.weights("k", *shape)
        g.node("mul", "c k", "y")
        g.node("tanh", "c", "z")
        outputs = ("y", "z") if reader else ("y",)
        made = after(fuse_batch_norm, remove_dead(g.graph(*outputs)))
        assert "mul" in ops(made)


# ---- fuse_activation -----------------------------------------------------------------


def test_an_activation_goes_into_the_operator_before() -> None:
    g = Small()
    g.input("x", 1, 4, 4, 2)
    conv(g, "x", "c")
    g.node("clip", "c", "r", clamp=RELU)
    g.node("clip", "r", "y", clamp=RELU6)
    made = after(fuse_activation, g.graph("y"))
    assert made.dump().splitlines()[-1] == (
        "y: float32[1,4,4,3] = conv2d(x, const c_w, const c_b) clamp=(0.0, 6.0) "
        "dilations=(1, 1) groups=1 pads=(0, 0, 0, 0) strides=(1, 1)"
    )


@pytest.mark.parametrize("same", [True, False])
def test_int8_activations_need_one_scale(same: bool) -> None:
    g = Small()
    g.input("x", 2, 3, quant=Q)
    g.node("add", "x x", "a", quant=Quant((0.1,), (-7,)))
    other = Quant((0.1,), (-7,)) if same else Quant((0.08,), (-128,))
    g.node("clip", "a", "y", clamp=(-0.35, 6.0), quant=other)
    for rule in ("double", "single", "even"):
        graph = set_rounding(g.graph("y"), {"double": "tflm"}.get(rule, "single"))
        made = after(fuse_activation, graph)
        assert ops(made) == (["add"] if same else ["add", "clip"])


def test_clamps_combine() -> None:
    assert combined((None, None), RELU) == RELU
    assert combined(RELU6, (-1.0, 3.0)) == (0.0, 3.0)
    assert combined((4.0, None), (None, 1.0)) is None


def test_an_activation_of_an_output_stays() -> None:
    g = Small()
    g.input("x", 2)
    g.node("add", "x x", "a")
    g.node("clip", "a", "y", clamp=RELU)
    assert ops(after(fuse_activation, g.graph("a", "y"))) == ["add", "clip"]
