"""Transposes sink, meet and cancel; what they pass keeps its meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.passes.fold import fold_constants
from pybuild.passes.moves.transposes import fold_transposes
from pybuild.passes.views import (
    View,
    composed,
    inverse,
    moves_nothing,
    regrouped,
    turned,
)
from tests.passes.passes_graph import F, Small, after, ops

Q = Quant((0.05,), (3,))
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
POOL = {"kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0)}


def rows(g: Small, x: str, out: str) -> str:
    """A pool on rows, between two transposes."""
    g.node("transpose", x, f"{out}_in", perm=LAST)
    g.node("max_pool2d", f"{out}_in", f"{out}.nhwc", **POOL)
    return g.node("transpose", f"{out}.nhwc", out, perm=FIRST)


def test_permutations() -> None:
    assert inverse(LAST) == FIRST and composed(LAST, FIRST) == (0, 1, 2, 3)
    x = np.arange(24).reshape(1, 2, 3, 4)
    both = composed((0, 3, 1, 2), (2, 1, 0, 3))
    assert np.array_equal(
        x.transpose(0, 3, 1, 2).transpose(2, 1, 0, 3), x.transpose(both)
    )
    assert moves_nothing((1, 1, 5, 4), LAST) and moves_nothing((1, 6, 1, 1), LAST)
    assert not moves_nothing((1, 2, 5, 1), LAST)
    assert View("x", (0, 1)).plain and not View("x", (0, 1), (2,)).plain


@pytest.mark.parametrize(
    ("wanted", "can"),
    [
        ((2, 3, 20), True),
        ((2, 3, 2, 2, 5), True),
        ((6, 4, 5), False),
        ((2, 1, 3, 4, 5, 1), True),
        ((2, 60), False),
    ],
)
def test_axes_are_joined_and_split_where_they_lie(wanted: Any, can: bool) -> None:
    """Of [2,4,5,3] read as [2,3,4,5]."""
    found = regrouped((2, 4, 5, 3), FIRST, wanted)
    assert (found is not None) == can
    if found:
        x = np.arange(120).reshape(2, 4, 5, 3)
        right = x.transpose(FIRST).reshape(wanted)
        assert np.array_equal(x.reshape(found[0]).transpose(found[1]), right)
        assert math.prod(found[0]) == 120 and len(found[1]) == len(wanted)


def test_a_view_of_nothing_is_not_regrouped() -> None:
    assert regrouped((2, 0, 5, 3), FIRST, (0, 7)) is None


def test_neighbours_cancel() -> None:
    g = Small()
    g.input("x", 1, 2, 5, 6)
    rows(g, rows(g, "x", "a"), "y")
    made = after(fold_transposes, g.graph("y"))
    assert made.dump() == (
        "graph small\ninput x: float32[1,2,5,6]\noutput y: float32[1,2,3,4]\n"
        "a_in: float32[1,5,6,2] = transpose(x) perm=(0, 2, 3, 1)\n"
        "a: float32[1,4,5,2] = max_pool2d(a_in) "
        "kernel=(2, 2) pads=(0, 0, 0, 0) strides=(1, 1)\n"
        "y.nhwc: float32[1,3,4,2] = max_pool2d(a) "
        "kernel=(2, 2) pads=(0, 0, 0, 0) strides=(1, 1)\n"
        "y: float32[1,2,3,4] = transpose(y.nhwc) perm=(0, 3, 1, 2)\n"
    )


# op, second operand's shape (None: no second operand), attributes, output's quant
THROUGH: dict[str, tuple[tuple[int, ...] | None, dict[str, Any]]] = {
    "clip": (None, {"clamp": (0.0, None)}),
    "logistic": (None, {}),
    "leaky_relu": (None, {"alpha": 0.1}),
    "pad": (None, {"pads": ((0, 0), (1, 0), (0, 2), (3, 0)), "value": 1.0}),
    "slice": (
        None, {"begin": (0, 1, 3, 0), "end": (1, 2, 0, 4), "strides": (1, 1, -1, 2)},
    ),
    "softmax": (None, {"axis": 1, "beta": 1.0}),
    "mean": (None, {"axes": (1, 3), "keepdims": True}),
    "reduce": (None, {"fn": "max", "axis": 1}),
    "cumulate": (
        None, {"fn": "sum", "axis": 2, "exclusive": False, "reverse": True},
    ),
    "map": ((2, 1, 1), {"fn": "maximum"}),
    "add": ((2, 1, 1), {}),
    "sub": ((1,), {}),
    "mul": ((1, 1, 4, 5), {}),
}  # fmt: skip


@pytest.mark.parametrize("op", THROUGH)
def test_a_transpose_sinks_through(op: str) -> None:
    shape, attrs = THROUGH[op]
    g = Small()
    g.input("x", 1, 2, 5, 6)
    reads = rows(g, "x", "a")
    if shape is not None:
        g.weights("k", *shape)
        reads += " k"
    g.node(op, reads, "b", **attrs)
    g.node("transpose", "b", "y", perm=LAST)
    made = after(fold_transposes, g.graph("y"), 1e-6)
    assert ops(made)[:3] == ["transpose", "max_pool2d", op]
    assert "transpose" not in ops(made)[1:]


def test_quantisation_is_passed() -> None:
    g = Small()
    g.input("x", 1, 2, 5, 6)
    g.node("quantize", rows(g, "x", "a"), "q", quant=Q)
    g.node("dequantize", "q", "d")
    g.node("transpose", "d", "y", perm=LAST)
    made = after(fold_transposes, g.graph("y"))
    assert ops(made)[:4] == ["transpose", "max_pool2d", "quantize", "dequantize"]
    assert made.tensor(made.nodes[2].output).quant == Q
    assert "transpose" not in ops(made)[1:]


def test_residuals_concats_and_means_keep_the_order() -> None:
    g = Small()
    g.input("x", 1, 2, 6, 6)
    a = rows(g, "x", "a")
    g.node("add", f"{a} {a}", "s")
    g.node("concat", "s a", "c", axis=1)
    g.node("mean", "c", "y", axes=(2, 3), keepdims=False)
    made = after(fold_transposes, g.graph("y"), 1e-6)
    assert ops(made) == ["transpose", "max_pool2d", "add", "concat", "mean"]
    assert made.nodes[3].attrs["axis"] == 3 and made.nodes[4].attrs["axes"] == (1, 2)


def test_an_operand_in_another_order_is_brought_into_this_one() -> None:
    g = Small()
    g.input("x", 1, 2, 5, 6)
    g.input("z", 1, 2, 4, 5)
    g.input("v", 4, 5)
    g.node("add", f"{rows(g, 'x', 'a')} z", "b")
    g.node("mul", "v b", "y")
    made = after(fold_transposes, g.graph("y"), settled=False)
    assert ops(made).count("transpose") == 3


def test_a_transpose_that_moves_nothing_is_a_reshape() -> None:
    g = Small()
    g.input("x", 1, 1, 5, 6)
    rows(g, "x", "y")
    made = after(fold_transposes, g.graph("y"))
    assert ops(made) == ["reshape", "max_pool2d", "reshape"]


def test_a_flatten_reorders_the_weights_of_a_dense_layer() -> None:
    g = Small()
    g.input("x", 2, 3, 4, 5)
    g.node("clip", rows(g, "x", "a"), "r", clamp=(0.0, None))
    g.node("reshape", "r", "f", shape=(2, 36))
    g.node("logistic", "f", "l")
    g.weights("w", 4, 36)
    g.weights("b", 4)
    g.node("dense", "l w b", "y")
    made = after(fold_transposes, g.graph("y"), 1e-6)
    assert ops(made) == [
        "transpose", "max_pool2d", "clip", "logistic", "reshape", "dense",
    ]  # fmt: skip


def test_a_flatten_read_otherwise_is_computed() -> None:
    g = Small()
    g.input("x", 1, 3, 4, 5)
    g.node("reshape", rows(g, "x", "a"), "f", shape=(9, 4))
    g.node("softmax", "f", "y", axis=1, beta=1.0)
    made = after(fold_transposes, g.graph("y"))
    assert ops(made) == ["transpose", "max_pool2d", "transpose", "reshape", "softmax"]


def test_constants_are_transposed_by_folding() -> None:
    g = Small()
    g.input("x", 3, 2)
    g.constant("k", np.arange(6, dtype=F).reshape(2, 3))
    g.node("transpose", "k", "t", perm=(1, 0))
    g.node("add", "x t", "y")
    assert ops(fold_transposes(fold_constants(g.graph("y")))) == ["add"]


def test_outputs_keep_their_names_and_order() -> None:
    """One tensor as two outputs, one of them not transposed at all."""
    g = Small()
    g.input("x", 1, 2, 5, 6)
    rows(g, "x", "a")
    g.node("transpose", "a", "y", perm=LAST)
    made = after(fold_transposes, g.graph("a", "y"), settled=False)
    assert made.outputs == ("a", "y") and made.tensor("y").shape == (1, 4, 5, 2)


@pytest.mark.parametrize(
    ("shape", "perm", "found"),
    [
        ((8, 15), (1, 0), ((2, 3, 0, 1), (15, 8))),  # whole axes change places
        ((2, 4, 15), (2, 0, 1), ((2, 3, 0, 1), (15, 2, 4))),
        ((8, 3, 5), (0, 2, 1), ((0, 1, 3, 2), (8, 5, 3))),
        ((4, 2, 15), (2, 0, 1), ((2, 3, 0, 1), (15, 4, 2))),
        ((4, 2, 15), (1, 0, 2), None),  # of two axes neither is one of the base
    ],
)
def test_a_transpose_behind_a_reshape(
    shape: tuple[int, ...], perm: tuple[int, ...], found: Any
) -> None:
    base, view = (2, 4, 3, 5), View("x", (0, 1, 2, 3), shape)
    made = turned(base, view, perm)
    assert made == (None if found is None else View("x", *found))
    if made is not None:
        x = np.arange(120).reshape(base)
        wanted = x.reshape(shape).transpose(perm)
        assert (x.transpose(made.perm).reshape(made.shape) == wanted).all()
