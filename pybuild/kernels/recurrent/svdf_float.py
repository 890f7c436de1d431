"""svdf of float32 on any core; weights of the states may be int8 times a scale.

Sums are those of LiteRT on processors with four lanes: every fourth product is added
up, then these four sums, then what is left over.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    Bitcast,
    Expr,
    Var,
    cast,
    const,
    load,
    offset,
    select,
)
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.recurrent.svdf import Svdf
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.svdf import FEATURE, LANES, TIME, sizes

Product = Callable[[Expr], Expr]


class RealSvdf(Svdf):
    """The pieces of the kernel being written.

    filtered  the input is what the filters made of it: there are no weights for it
    """

    per_mac = 5.0

    def __init__(self, node: Node, graph: Graph) -> None:
        self.filtered = not node.inputs[FEATURE]
        self.time = graph.tensor(node.inputs[TIME])
        self.is_scaled = self.time.dtype is INT8
        self.ending = "_time_s8" * self.is_scaled + "_filtered" * self.filtered
        super().__init__(node, graph)

    def body(self, to: Var, kept: Var, x: Var, old: Var) -> None:
        """All images; `to` and `kept` are written."""
        node, graph, k = self.node, self.graph, self.k
        batch, width, units, rank, memory = sizes(node, graph)
        feature: Var | None = None
        if not self.filtered:
            feature = self.rows.table("feature", constant(node, graph, FEATURE))
        time = self.rows.table("time", constant(node, graph, TIME))
        bias = self.bias()
        clamp = FloatClamp(*clamp_of(node))
        at = self.rows.after
        self.rows.tables += clamp.tables()
        bound = clamp.bind(k, const(at))
        filters, inputs = k.arg("filters", units * rank), k.arg("width", width)
        scale: Expr | None = None
        if self.is_scaled:
            bits = int(np.float32(self.time.scale).view(np.int32))
            scale = k.let("scale", Bitcast(k.arg("scale_bits", bits), FLOAT32))
        steps, ranks = k.arg("memory", memory), k.arg("rank", rank)
        outs, last = k.arg("units", units), k.let("last", steps - 1)
        with k.loop("b", k.arg("batch", batch)) as b:
            row = k.let("row", offset(x, b * inputs))

            def result(f: Expr) -> Var:
                """What one filter makes of its states and the input."""
                here = self.moved(kept, old, (b * filters + f) * steps, last)
                if feature is None:
                    seen = k.let("seen", load(row, f))
                else:
                    w = k.let("w", offset(feature, f * inputs))
                    seen = self._sum(width, inputs, lambda i: load(row, i) * load(w, i))
                k.store(here, last, seen)
                u = k.let("u", offset(time, f * steps))
                return self._sum(memory, steps, _products(here, u, scale))

            with k.loop("unit", outs) as unit:
                first = k.let("first", unit * ranks)
                total = self._total(rank, ranks, lambda r: result(first + r))
                k.assign(total, total + load(bias, unit))
                k.store(to, b * outs + unit, bound.apply(total, 0))

    def _sum(self, count: int, many: Expr, product: Product) -> Var:
        """The sum of a filter."""
        k, whole = self.k, count // LANES * LANES
        total = k.let("sum", const(0, FLOAT32))
        begin: Expr = const(0)
        if whole:
            lanes = [k.let(f"lane{i}", const(0, FLOAT32)) for i in range(LANES)]
            begin = k.let("whole", many - many % LANES)
            with k.loop("i", begin, 0, LANES, rolled=True) as i:
                for number, lane in enumerate(lanes):
                    k.assign(lane, lane + product(i + number))
            for lane in lanes:
                k.assign(total, total + lane)
        if count % LANES:
            with k.loop("i", many, begin, rolled=True) as i:
                k.assign(total, total + product(i))
        return total

    def _total(self, count: int, many: Expr, result: Callable[[Expr], Var]) -> Var:
        """The sum of a unit's filters."""
        k, whole = self.k, count // LANES * LANES
        if not whole:
            total = k.let("total", const(0, FLOAT32))
            with k.loop("r", many) as r:
                k.assign(total, total + result(r))
            return total
        slots = LANES + count % LANES  # the lanes, and those that are left over
        sums = k.array("sums", FLOAT32, slots)
        for i in range(slots):
            k.store(sums, i, const(0, FLOAT32))
        with k.loop("r", many) as r:
            slot: Expr = r % LANES
            if count % LANES:
                begin = k.let("begin", many - many % LANES)
                slot = select(r < begin, slot, r - begin + LANES)
            slot = k.let("slot", slot)
            one = result(r)
            k.store(sums, slot, load(sums, slot) + one)
        total = k.let("total", load(sums, 0))
        for i in range(1, slots):
            k.assign(total, total + load(sums, i))
        return total


def _products(states: Expr, weights: Expr, scale: Expr | None) -> Product:
    def product(at: Expr) -> Expr:
        weight = load(weights, at)
        if scale is not None:
            weight = cast(weight, FLOAT32) * scale
        return load(states, at) * weight

    return product
