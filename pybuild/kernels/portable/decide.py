"""Decisions after a net that runs again and again: averages over time, and which class
is heard.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    BOOL,
    FLOAT32,
    INT32,
    Expr,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    maximum,
    select,
)
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.portable.signal import Writer
from pybuild.ops.decide import NONE, limit
from pybuild.targets.target import Target


def moving_average(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for moving_average."""
    x_tensor, past_tensor = (graph.tensor(n) for n in node.inputs)
    kind = x_tensor.dtype
    text = f"y = the mean of x and of what it was before, {kind.value}; half: up"
    w = Writer(node, graph, text)
    k, x, past = w.k, w.x(0, "x"), w.x(1, "past")
    n, runs = k.arg("size", x_tensor.size), k.arg("runs", past_tensor.shape[0])
    wide = FLOAT32 if kind is FLOAT32 else INT32
    with k.loop("c", n) as c:
        new = k.let("new", load(x, c))
        total = k.let("total", cast(load(past, c), wide))
        with k.loop("r", runs, 1) as r:
            one = k.let("one", load(past, r * n + c))
            k.assign(total, total + cast(one, wide))
            k.store(w.to[1], (r - 1) * n + c, one)
        k.assign(total, total + cast(new, wide))
        k.store(w.to[1], (runs - 1) * n + c, new)
        k.store(w.to[0], c, cast(_mean(total, runs + 1, kind), kind))
    # it may forget the oldest where it stands
    return w.written(12 * past_tensor.size)


def _mean(total: Expr, count: Expr, kind: DType) -> Expr:
    if kind is FLOAT32:
        return total / cast(count, FLOAT32)
    # from the least number on, so that no quotient is below 0
    above = total - count * kind.low
    return (above * 2 + count) // (count * 2) + kind.low


class _Choice:
    """The best of scores, and what is above a limit."""

    def __init__(self, node: Node, graph: Graph, text: str) -> None:
        self.tensor = graph.tensor(node.inputs[0])
        kind = self.tensor.dtype
        self.wide = FLOAT32 if kind is FLOAT32 else INT32
        self.w = Writer(node, graph, f"{text}, {kind.value} to int32")
        self.k, self.x = self.w.k, self.w.x(0, "x")
        self.size = self.k.arg("size", self.tensor.size)

    def limit(self, name: str) -> Expr:
        number = limit(self.tensor, float(self.w.node.attrs[name]))
        if self.wide is FLOAT32:
            return const(number, FLOAT32)
        return self.k.arg(name, int(number))

    def score(self, at: Expr | int) -> Expr:
        return cast(load(self.x, at), self.wide)

    def best(self, least: Expr) -> Var:
        k = self.k
        best, most = k.let("best", const(0)), k.let("most", self.score(0))
        self.numbers = k.let("numbers", 1) if self.wide is FLOAT32 else None
        with k.loop("c", self.size) as c:
            score = k.let("score", self.score(c))
            with k.when(score > most):
                k.assign(most, score)
                k.assign(best, c)
            if self.numbers is not None:
                with k.when(equal(equal(score, score), 0)):
                    k.assign(self.numbers, 0)
        reached = most >= least
        if self.numbers is not None:
            reached = reached & (self.numbers > 0)
        found = k.let("found", select(reached, best, const(NONE)))
        for index, ignored in enumerate(self.w.node.attrs["ignore"]):
            with k.when(equal(best, k.arg(f"ignore{index}", ignored))):
                k.assign(found, NONE)
        return found


def best_above(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for best_above."""
    c = _Choice(node, graph, "y = the class of the greatest score from `least` on")
    c.k.store(c.w.to[0], 0, c.best(c.limit("least")))
    return c.w.written(6 * c.tensor.size)


def hysteresis(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for hysteresis."""
    text = "y = the best from `high` on, or what is held while it is from `low` on"
    c = _Choice(node, graph, text)
    k = c.k
    held = k.let("held", i32(load(c.w.x(1, "kept"))))
    found = c.best(c.limit("high"))
    known: Expr = k.let("known", (held >= 0) & (held < c.size))
    if c.numbers is not None:
        known = known & (c.numbers > 0)
    with k.when(known & (found < 0)):
        lasts = k.let("lasts", c.score(held) >= c.limit("low"), BOOL)
        k.assign(found, select(lasts, held, const(NONE)))
    k.store(c.w.to[0], 0, found)
    return c.w.written(6 * c.tensor.size)


def refractory(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for refractory."""
    text = "y = x where it begins, but in the runs after another; else -1, int32"
    w = Writer(node, graph, text)
    k, kept = w.k, w.x(1, "kept")
    x = k.let("x", i32(load(w.x(0, "word"))))
    before = k.let("before", i32(load(kept)))
    wait = k.let("wait", maximum(i32(load(kept, 1)) - 1, 0))
    found = k.let("found", const(NONE))
    with k.when((x >= 0) & (wait < 1)), k.when(_differ(x, before)):
        k.assign(found, x)
        k.assign(wait, w.number("runs") + 1)
    k.store(w.to[0], 0, found)
    k.store(w.to[1], 0, x)
    k.store(w.to[1], 1, wait)
    return w.written(20)


def _differ(a: Expr, b: Expr) -> Expr:
    return (a < b) | (b < a)


DECIDE = {
    "best_above": best_above,
    "hysteresis": hysteresis,
    "moving_average": moving_average,
    "refractory": refractory,
}
