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
from tests.passes.passes_graph import ONES, Q, Small, after, ops

SEEDS = range(40)


def _spread(small: Small, x: str, axis: int, stride: int, pads: tuple[int, int]) -> str:
    """As front ends write it: zeros behind each row, then around all, or fewer."""
    tensor = small.tensors[x]
    shape = tensor.shape
    if stride > 1:
        apart = (*shape[: axis + 1], 1, *shape[axis + 1 :])
        x = small.node("reshape", x, f"r{axis}", apart, tensor.quant)
        few = [(0, 0)] * 5
        few[axis + 1] = (0, stride - 1)
        x = small.node("pad", x, f"p{axis}", quant=tensor.quant, pads=tuple(few))
        full = (*shape[:axis], shape[axis] * stride, *shape[axis + 1 :])
        x = small.node("reshape", x, f"f{axis}", full, tensor.quant)
    shape = small.tensors[x].shape
    ends = tuple(n + min(pads[1], 0) * (a == axis) for a, n in enumerate(shape))
    begins = tuple(max(-pads[0], 0) * (a == axis) for a in range(4))
    attrs = {"begin": begins, "end": ends, "strides": (1,) * 4}
    x = small.node("slice", x, f"s{axis}", quant=tensor.quant, **attrs)
    around = [(0, 0)] * 4
    around[axis] = (max(pads[0], 0), max(pads[1], 0))
    return small.node("pad", x, f"a{axis}", quant=tensor.quant, pads=tuple(around))


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
    for axis in (1, 2):
        reach = (kernel[axis - 1] - 1) * gaps[axis - 1]
        pads = reach - int(chance.integers(2)), reach - int(chance.integers(3))
        x = _spread(small, x, axis, strides[axis - 1], pads)
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
    attrs |= {**ONES, "dilations": tuple(gaps)}
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


def test_most_layers_of_the_test_are_split() -> None:
    split = 0
    for seed in SEEDS:
        graph, _ = _transposed(seed, False)
        split += ops(split_phases(graph)) != ops(graph)
    assert split > len(SEEDS) // 2


def test_rows_that_something_else_lies_between_stay() -> None:
    small = Small()
    x = small.input("x", 1, 3, 3, 2, quant=Q)
    r = small.node("reshape", x, "r", (1, 3, 1, 3, 2), Q)
    p = small.node("pad", r, "p", quant=Q, value=1.0,
                   pads=((0, 0), (0, 0), (0, 1), (0, 0), (0, 0)))  # fmt: skip
    f = small.node("reshape", p, "f", (1, 6, 3, 2), Q)
    small.constant("w", np.ones((2, 2, 1, 2), np.int8), Quant((0.1,), (0,)))
    small.node("conv2d", f"{f} w", "y", quant=Q, groups=1, **ONES)
    graph = set_rounding(small.graph("y"), "litert")
    assert ops(after(split_phases, graph)) == ops(graph)


def _weights(graph: Graph) -> list[Tensor]:
    layers = ("conv2d", "depthwise_conv2d")
    return [graph.tensor(n.inputs[1]) for n in graph.nodes if n.op in layers]
