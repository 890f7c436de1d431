"""A transposed convolution without its zeros computes the same, bit for bit, with each
weight once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.ops.interpret import interpret
from pybuild.passes.legalise import set_rounding
from pybuild.passes.phases import split_phases
from tests.passes.passes_graph import ONES, Q, Small, after

SEEDS = range(40)


def _transposed(seed: int, whole: bool) -> tuple[Graph, bool]:
    """A layer, and whether it has zeros between and each output meets a tap."""
    for more in range(99):
        try:
            return _drawn(np.random.default_rng((seed, more)), seed, whole)
        except BuildError:  # nothing is left of it
            continue
    raise AssertionError(seed)


def _drawn(chance: np.random.Generator, seed: int, whole: bool) -> tuple[Graph, bool]:
    size, kernel, strides, gaps = chance.integers(1, (5, 5, 4, 3), (2, 4)).T.tolist()
    groups, inside, each = chance.integers(1, (3, 4, 4)).tolist()
    depthwise = seed % 4 == 3
    groups = 1 if seed % 3 or depthwise else groups
    small = Small()
    x = small.input(
        "x", 1 + seed % 2, *size, groups * inside, quant=Q if whole else None
    )
    pads: list[tuple[int, int]] = []
    for taps, gap in zip(kernel, gaps, strict=True):
        reach = (taps - 1) * gap
        pads.append(tuple(reach - chance.integers((2, 3))))
    (top, bottom), (left, right) = pads
    outs = inside * each if depthwise else groups * each
    form = (*kernel, outs) if depthwise else (outs, *kernel, inside)
    scales = tuple(chance.uniform(0.01, 0.02, outs).tolist())
    quant = Quant(scales, (0,) * outs, len(form) - 1 if depthwise else 0)
    values = chance.integers(-128, 128, form)
    bias = chance.integers(-999, 999, outs)
    kinds = (np.int8, np.int32) if whole else (np.float32, np.float32)
    small.constant("w", values.astype(kinds[0]), quant if whole else None)
    small.constant("b", bias.astype(kinds[1]))
    op = "depthwise_conv2d" if depthwise else "conv2d"
    attrs: dict[str, Any] = {} if depthwise else {"groups": groups}
    attrs |= {**ONES, "dilations": tuple(gaps), "input_dilations": tuple(strides)}
    attrs["pads"] = tuple(map(int, (top, left, bottom, right)))
    y = Quant((2.0,), (-7,)) if whole else None
    small.node(op, f"{x} w b", "y", quant=y, **attrs)
    graph = set_rounding(small.graph("y"), "litert")
    each_meets = all(k >= s for k, s in zip(kernel, strides, strict=True))
    apart = max(strides) > 1 and min(size) > 1
    return graph, apart and each_meets and max(gaps) == 1


@pytest.mark.parametrize("whole", [True, False], ids=["int8", "float"])
@pytest.mark.parametrize("seed", SEEDS)
def test_phases_make_what_the_zeros_made(seed: int, whole: bool) -> None:
    graph, is_usual = _transposed(seed, whole)
    made = after(split_phases, graph)
    assert len({n.name for n in made.nodes}) == len(made.nodes)
    if is_usual:
        assert not any(n.op == "pad" for n in made.nodes)
        assert sum(w.size for w in _weights(made)) == graph.tensor("w").size
    if whole:  # of an input that is nowhere but at its border
        ends = {"x": np.full(graph.tensor("x").shape, -128, np.int8)}
        have, want = (interpret(g, ends)["y"] for g in (made, graph))
        np.testing.assert_array_equal(have, want)


def test_zeros_are_read_by_no_layer() -> None:
    for seed in SEEDS:
        made = split_phases(_transposed(seed, False)[0])
        assert not any("input_dilations" in n.attrs for n in made.nodes)


def test_weights_that_are_computed_are_refused() -> None:
    small = Small()
    small.input("x", 1, 3, 3, 2)
    small.input("w", 2, 2, 2, 2)
    attrs: dict[str, Any] = {**ONES, "groups": 1, "input_dilations": (2, 2)}
    small.node("conv2d", "x w", "y", **attrs)
    with pytest.raises(BuildError, match="the weights of a transposed convolution are"):
        split_phases(small.graph("y"))


@pytest.mark.parametrize(
    ("attrs", "what"),
    [
        ({"pads": (-1, 0, 0, 0)}, r"pads \(-1, 0, 0, 0\) are below 0"),
        ({"input_dilations": (2, 1), "strides": (2, 1)}, r"strides \(2, 1\) of a"),
    ],
)
def test_what_no_transposed_convolution_has(attrs: dict[str, Any], what: str) -> None:
    small = Small()
    small.input("x", 1, 3, 3, 2)
    small.constant("w", np.ones((2, 2, 2, 2), np.float32))
    with pytest.raises(BuildError, match=what):
        every: dict[str, Any] = {**ONES, **attrs}
        small.node("conv2d", "x w", "y", groups=1, **every)


def _weights(graph: Graph) -> list[Tensor]:
    layers = ("conv2d", "depthwise_conv2d")
    return [graph.tensor(n.inputs[1]) for n in graph.nodes if n.op in layers]
