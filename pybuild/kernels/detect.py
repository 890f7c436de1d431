"""suppress: the best of boxes that overlap, a pass over all for each that is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.graph import Graph, Node
from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Candidate, Packed
from pybuild.kernels.operands import offer, whole_operands
from pybuild.loop import (
    BOOL,
    FLOAT32,
    INT32,
    UINT8,
    Expr,
    Intrin,
    Var,
    const,
    i32,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.targets.target import Target

_COST = 30


def _share() -> Intrin:
    """What two boxes both cover, of what either covers; 0 of one without area."""
    a0, a1, a2, a3 = a = tuple(Var(f"a{n}", FLOAT32) for n in range(4))
    b0, b1, b2, b3 = b = tuple(Var(f"b{n}", FLOAT32) for n in range(4))
    first, second, high, wide, both = (
        Var(n, FLOAT32) for n in ("first", "second", "high", "wide", "both")
    )
    zero = const(0.0, FLOAT32)
    lets: tuple[tuple[Var, Expr], ...] = (
        (first, (a2 - a0) * (a3 - a1)),
        (second, (b2 - b0) * (b3 - b1)),
        (high, maximum(minimum(a2, b2) - maximum(a0, b0), zero)),
        (wide, maximum(minimum(a3, b3) - maximum(a1, b1), zero)),
        (both, high * wide),
    )
    empty = select(first <= zero, const(1, BOOL), second <= zero)
    value = select(empty, zero, both / (first + second - both))
    return Intrin("crt_share_of_boxes", a + b, value, lets)


SHARE = _share()


def suppress(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Scratch: a byte for each box, whether it may still be taken."""
    scores, y = graph.tensor(node.inputs[1]), graph.tensor(node.output)
    operands = whole_operands(node, graph)
    k = Builder("suppress_f32")
    to = k.row("y", 0, INT32, writable=True)
    boxes, all_ = (k.row(n, i, FLOAT32) for n, i in zip(
        ("boxes", "all_scores"), operands.numbers, strict=True))  # fmt: skip
    limits = k.row("limits", operands.after, FLOAT32)
    free = k.row("free", operands.after + 1, UINT8, writable=True)
    least, most = k.let("least", load(limits)), k.let("most", load(limits, 1))
    rows, count = k.arg("rows", scores.shape[0]), k.arg("count", scores.shape[1])
    wanted = k.arg("wanted", y.shape[1])
    with k.loop("r", rows) as r:
        own = k.let("scores", offset(all_, r * count))
        made = k.let("made", offset(to, r * wanted))
        with k.loop("i", count) as i:
            fits = least <= load(own, i)
            k.store(free, i, select(fits, const(1, UINT8), const(0, UINT8)))
        with k.loop("n", wanted) as n:
            best = _best(k, own, free, count)
            k.store(made, n, best)
            with k.when(best >= 0):
                k.store(free, best, const(0, UINT8))
                _drop(k, boxes, free, best, count, most)
    limit = np.asarray([node.attrs["score"], node.attrs["overlap"]], np.float32)
    cost = _COST * scores.size * y.shape[1]
    found = offer(k, operands, tables=(Packed("limits", limit),), cost=cost)
    return [replace(found, scratch=scores.shape[1])]


def _best(k: Builder, scores: Expr, free: Expr, count: Expr) -> Var:
    """The first of the best that may be taken, or -1."""
    best = k.let("best", const(-1))
    held = k.let("held", 0.0, FLOAT32)
    with k.loop("i", count) as i, k.when(i32(load(free, i)) > 0):
        value = k.let("value", load(scores, i))
        with k.when(select(best < 0, const(1, BOOL), held < value)):
            k.assign(best, i)
            k.assign(held, value)
    return best


def _drop(
    k: Builder, boxes: Expr, free: Expr, best: Expr, count: Expr, most: Expr
) -> None:
    """No box that overlaps this one may be taken any more."""
    mine = k.let("mine", offset(boxes, best * 4))
    sides = [k.let(f"side{n}", load(mine, n)) for n in range(4)]
    with k.loop("j", count) as j, k.when(i32(load(free, j)) > 0):
        other = k.let("other", offset(boxes, j * 4))
        share = SHARE(*sides, *(load(other, n) for n in range(4)))
        with k.when(most < share):
            k.store(free, j, const(0, UINT8))
