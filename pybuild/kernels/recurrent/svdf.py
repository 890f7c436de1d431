"""svdf of integers on any core: the state moves one step on, takes what the input
gives, and is weighed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import FLOAT32, INT32, UINT32, Expr, Var, cast, const, load, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, whole
from pybuild.kernels.base.node_rows import NodeRows
from pybuild.kernels.base.operands import short
from pybuild.kernels.epilogues.requantise import CLAMP, DOUBLE
from pybuild.kernels.layers.weights import constant
from pybuild.ops.recurrent import Pair
from pybuild.ops.svdf import (
    BIAS,
    FEATURE,
    STATE,
    TIME,
    X,
    macs,
    sizes,
    svdf_parameters,
)

End = Callable[[Expr], Expr]
_COST = 60


class Svdf:
    """The pieces of the kernel being written.

    ending    of its name
    order     in which it reads and writes, for readers of the C
    per_mac   estimated instructions of a product
    """

    ending, per_mac = "", 6.0
    order = "image by image, unit by unit, filter by filter; weights forward"

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        self.y, self.state = graph.tensor(node.output), graph.tensor(node.inputs[STATE])
        kinds = f"{self.y.dtype.value} with a state of {self.state.dtype.value}"
        doc = told(
            f"svdf, {kinds}: each filter's state moves one step on, takes what the "
            "input gives, and is weighed over time",
            self.order,
        )
        name = f"svdf_{short(self.y.dtype)}_{short(self.state.dtype)}{self.ending}"
        self.k = Builder(name, doc)
        self.rows = NodeRows(self.k, node, graph, FEATURE)

    def written(self) -> Candidate:
        node, graph, k = self.node, self.graph, self.k
        to = k.row("y", 0, self.y.dtype, writable=True)
        kept = k.row("kept", 1, self.state.dtype, writable=True)
        x, old = self.rows.source(X, "x"), self.rows.source(STATE, "old")
        self.body(to, kept, x, old)
        return Candidate(
            func=k.finish(in_place=True, ordered=True),
            args=tuple(k.values),
            outputs=tuple(whole(graph.tensor(n)) for n in node.outputs),
            inputs=tuple(whole(graph.tensor(n)) for n in self.rows.computed),
            constants=tuple(self.rows.tables),
            also_in_place=((1, STATE),),
            cost=round(self.per_mac * macs(node, graph)) + _COST * self.y.size,
        )

    def body(self, to: Var, kept: Var, x: Var, old: Var) -> None:
        """All images; `to` and `kept` are written."""
        node, graph, k = self.node, self.graph, self.k
        batch, width, units, rank, memory = sizes(node, graph)
        feature = self.rows.table("feature", constant(node, graph, FEATURE))
        time = self.rows.table("time", constant(node, graph, TIME))
        bias = self.bias()
        new, made = self._ends()
        filters, inputs = k.arg("filters", units * rank), k.arg("width", width)
        steps, ranks = k.arg("memory", memory), k.arg("rank", rank)
        outs, last = k.arg("units", units), k.let("last", steps - 1)
        with k.loop("b", k.arg("batch", batch)) as b:
            row = k.let("row", offset(x, b * inputs))
            with k.loop("unit", outs) as unit:
                # the sum over time wraps
                total = k.let("total", cast(load(bias, unit), UINT32))
                with k.loop("r", ranks) as r:
                    f = k.let("f", unit * ranks + r)
                    place = k.let("place", (b * filters + f) * steps)
                    here = self.moved(kept, old, place, last)
                    seen = self._seen(row, offset(feature, f * inputs), inputs)
                    k.store(here, last, cast(new(seen, f), self.state.dtype))
                    self._weighed(total, here, offset(time, f * steps), steps)
                result = made(cast(total, INT32))
                k.store(to, b * outs + unit, cast(result, self.y.dtype))

    def moved(self, kept: Var, old: Var, place: Expr, last: Expr) -> Var:
        """The state of a filter, moved one step on; its last value is the old one."""
        k = self.k
        here = k.let("here", offset(kept, place))
        before = k.let("before", offset(old, place))
        with k.loop("m", last) as m:
            k.store(here, m, load(before, m + 1))
        return here

    def bias(self) -> Var:
        kind = FLOAT32 if self.y.dtype is FLOAT32 else INT32
        none = np.zeros(sizes(self.node, self.graph)[2], kind.numpy)
        return self.rows.table("bias", constant(self.node, self.graph, BIAS, none))

    # ---- sums -------------------------------------------------------------------

    def _seen(self, row: Expr, weights: Expr, count: Expr) -> Var:
        """The result of one filter for the input."""
        k = self.k
        w, seen = k.let("w", weights), k.let("seen", const(0))
        with k.loop("i", count) as i:
            a, c = (cast(load(p, i), INT32) for p in (row, w))
            k.assign(seen, seen + a * c)
        return seen

    def _weighed(self, total: Var, here: Expr, weights: Expr, steps: Expr) -> None:
        """Adds the results of one filter for all steps."""
        k, zero = self.k, self.state.zero_point if self.state.quant else 0
        w = k.let("weights", weights)
        with k.loop("m", steps) as m:
            a, c = (cast(load(p, m), INT32) for p in (here, w))
            a = a - k.arg("state_zero", zero) if zero else a
            k.assign(total, total + cast(a * c, UINT32))

    # ---- ends -------------------------------------------------------------------

    def _ends(self) -> tuple[Callable[[Expr, Expr], Expr], End]:
        made = svdf_parameters(self.node, self.graph)
        zeros = self.zeros(made.x_zero)
        seen_end = self.end("seen", made.seen, 0, self.state.dtype)
        zero: Expr = const(0)
        if made.state_zero:
            zero = self.k.arg("new_zero", made.state_zero)
        end = self.end("made", made.made, made.y_zero, self.y.dtype)

        def new(seen: Expr, f: Expr) -> Expr:
            q = seen_end(seen if zeros is None else seen + load(zeros, f))
            return q + zero

        return new, end

    def zeros(self, x_zero: int) -> Var | None:
        """What the zero point makes of each filter's weights."""
        weights = constant(self.node, self.graph, FEATURE).astype(np.int64)
        sums = (-x_zero * weights.sum(1)).astype(np.int32)
        return self.rows.table("zeros", sums) if x_zero else None

    def end(self, name: str, pair: Pair, zero_point: int, dtype: DType) -> End:
        k, (multiplier, shift) = self.k, pair
        by = k.arg(f"{name}_by", multiplier)
        right = k.arg(f"{name}_right", min(max(-shift, 0), 30))
        left = k.arg(f"{name}_left", 1 << shift) if shift > 0 else const(1)
        zero = k.arg(f"{name}_zero", zero_point)
        return lambda total: CLAMP(
            DOUBLE(total * left, by, right) + zero, dtype.low, dtype.high
        )
