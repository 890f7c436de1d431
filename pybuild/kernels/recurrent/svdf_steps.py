"""svdf of int8 with a state of int16 in three steps: the whole state moves on, filters
take what the input gives, units weigh their filters over time.

A core says how many values one instruction moves, and how it sums. The last of fours of
filters, and of units, begins earlier: it is done twice.
"""

from __future__ import annotations

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT32,
    Expr,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.intrin import LONG_DOT2, SATURATE16
from pybuild.kernels.base.vector_rounds import HOLD4
from pybuild.kernels.base.vectors import (
    DOT16,
    FIRST16,
    LONG_DOT8,
    PLUS4,
    bytes_at,
    halves_at,
    words_at,
)
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.recurrent import by_pairs
from pybuild.kernels.recurrent.scale4 import Scale4, scale4
from pybuild.kernels.recurrent.svdf import End, Svdf
from pybuild.ops.fixed_point.quant import accumulator_bound
from pybuild.ops.svdf import FEATURE, TIME, X, sizes, svdf_parameters

_FOUR = 4  # filters, and units, that are done together
_LANES = 16  # products of bytes in one instruction of vectors


def fits(node: Node, graph: Graph) -> bool:
    """Whether there are four units, a state of int16, and eight of its values."""
    _, _, units, rank, memory = sizes(node, graph)
    state = graph.tensor(node.outputs[1]).dtype
    return state is INT16 and units >= _FOUR and units * rank * memory > _FOUR * 2


def fits_pairs(node: Node, graph: Graph) -> bool:
    """The same, and weights of four filters are known and fit pairs."""
    known = by_pairs.is_known(node, graph) and fits(node, graph)
    return known and by_pairs.fits(_fours(node, graph))


def _fours(node: Node, graph: Graph) -> list[np.ndarray]:
    """Of each four filters the first, the second, ...: [fours, inputs]"""
    weights = constant(node, graph, FEATURE)
    first = np.minimum(np.arange(0, len(weights), _FOUR), len(weights) - _FOUR)
    return [weights[first + i] for i in range(_FOUR)]


class Steps(Svdf):
    """The pieces of the kernel that all such cores have."""

    order = "image by image: all of the state, four filters at a time, units"
    at_once = 8  # values of the state

    def body(self, to: Var, kept: Var, x: Var, old: Var) -> None:
        k = self.k
        batch, width, units, rank, memory = sizes(self.node, self.graph)
        self.begin()
        with k.loop("b", k.arg("batch", batch)) as b:
            size = k.arg("kept", units * rank * memory)
            here = k.let("here", offset(kept, b * size))
            self._moved(here, k.let("before", offset(old, b * size)), size)
            row = k.let("row", offset(x, b * k.arg("width", width)))
            self.filters(row, here)
            self.units(k.let("to", offset(to, b * k.arg("units", units))), here)

    def begin(self) -> None:
        """Binds tables and numbers."""
        raise NotImplementedError

    def filters(self, row: Expr, here: Expr) -> None:
        """The newest values of all filters."""
        raise NotImplementedError

    def units(self, to: Expr, here: Expr) -> None:
        """What goes out."""
        raise NotImplementedError

    def _moved(self, here: Expr, before: Expr, size: Expr) -> None:
        """All values one place on, from the first, since the new ones may lie over the
        old; the last of all filters are written anew later."""
        k, n = self.k, self.at_once
        _, _, units, rank, memory = sizes(self.node, self.graph)
        count = units * rank * memory - 1
        whole = k.arg("moved", count // n * n)
        with k.loop("i", whole, 0, n, rolled=True) as at:
            self.move(here, before, at)
        if count % n:
            with k.loop("i", size - 1, whole, rolled=True) as at:
                k.store(here, at, load(before, at + 1))

    def move(self, here: Expr, before: Expr, at: Expr) -> None:
        for word in range(0, self.at_once, 2):
            value = wide(before, at + (word + 1))
            self.k.store(here, at + word, value, wide=True)

    def first_of(self, at: Expr, many: Expr, count: int) -> Expr:
        """Of four; of the last ones that there are."""
        return self.k.let("first", minimum(at, many - _FOUR)) if count % _FOUR else at


class DspSvdf(Steps):
    """The kernel of cores with DSP instructions."""

    ending, per_mac = "_dsp", 2.0

    def begin(self) -> None:
        node, graph = self.node, self.graph
        made = svdf_parameters(node, graph)
        order = (
            "fours of filters, four inputs a turn, two filters 256 * a + b in each half"
        )
        self.feature = self.rows.table(
            "feature", by_pairs.packed(_fours(node, graph)), order
        )
        self.time = self.rows.table("time", constant(node, graph, TIME))
        self.first, self.zeros_of = self.bias(), self.zeros(made.x_zero)
        x = graph.tensor(node.inputs[X])
        weights = constant(node, graph, FEATURE)
        low, high = accumulator_bound(weights, None, x.zero_point, x.dtype)
        reach = int(np.maximum(-low, high).max(initial=0))
        scaled = by_pairs.scaler(self.k, "seen", made.seen, reach)
        self.seen_end: End = self.end("seen", made.seen, 0, INT16)
        if scaled is not None:
            by_halves = scaled
            self.seen_end = lambda total: SATURATE16(by_halves(total))
        self.made_end = self.end("made", made.made, made.y_zero, self.y.dtype)

    def filters(self, row: Expr, here: Expr) -> None:
        k = self.k
        _, width, units, rank, memory = sizes(self.node, self.graph)
        many, steps = k.arg("filters", units * rank), k.arg("memory", memory)
        words = by_pairs.turns(width)
        newest = k.let("newest", offset(here, steps - 1))
        with k.loop("f", many, 0, _FOUR) as f:
            weights = offset(self.feature, f * words)
            sums = by_pairs.sums(k, weights, row, width)
            first = self.first_of(f, many, units * rank)
            for i, total in enumerate(sums):
                if self.zeros_of is not None:
                    total = total + load(self.zeros_of, first + i)
                value = self.seen_end(k.let("total", total))
                k.store(newest, (first + i) * steps, cast(value, INT16))

    def units(self, to: Expr, here: Expr) -> None:
        k = self.k
        _, _, units, rank, memory = sizes(self.node, self.graph)
        count = rank * memory
        taps = k.arg("taps", count)
        with k.loop("unit", k.arg("units", units)) as unit:
            total = k.let("total", i64(load(self.first, unit)))
            a = k.let("kept", offset(here, unit * taps))
            w = k.let("weights", offset(self.time, unit * taps))
            if count > 1:
                with k.loop("m", taps - 1, 0, 2) as m:
                    k.assign(total, LONG_DOT2(wide(a, m), wide(w, m), total))
            if count % 2:
                last = i32(load(a, taps - 1)) * i32(load(w, taps - 1))
                k.assign(total, total + i64(last))
            k.store(to, unit, cast(self.made_end(i32(total)), self.y.dtype))


class MveSvdf(Steps):
    """The kernel of a Cortex-M55."""

    ending, per_mac = "_mve", 0.5
    seen_by: Scale4

    def begin(self) -> None:
        node, graph, k = self.node, self.graph, self.k
        made = svdf_parameters(node, graph)
        weights = np.stack(_fours(node, graph), 1)
        turns = -(-weights.shape[2] // _LANES)
        sixteens = np.zeros((*weights.shape[:2], turns * _LANES), np.int8)
        sixteens[..., : weights.shape[2]] = weights
        sixteens = sixteens.reshape(-1, _FOUR, turns, _LANES).transpose(0, 2, 1, 3)
        order = "fours of filters, sixteen inputs a turn, filter by filter"
        table = np.ascontiguousarray(sixteens)
        self.feature = self.rows.table("feature", table, order)
        self.time = self.rows.table("time", constant(node, graph, TIME))
        self.first, self.zeros_of = self.bias(), self.zeros(made.x_zero)
        self.seen_by = scale4(k, "seen", made.seen)
        self.made_by = scale4(k, "made", made.made)
        self.y_zero = k.arg("y_zero", made.y_zero)
        self.sums = k.array("sums", INT32, _FOUR)

    def move(self, here: Expr, before: Expr, at: Expr) -> None:
        self.k.store(here, at, halves_at(before, at + 1))

    def filters(self, row: Expr, here: Expr) -> None:
        k = self.k
        _, width, units, rank, memory = sizes(self.node, self.graph)
        many, steps = k.arg("filters", units * rank), k.arg("memory", memory)
        newest = k.let("newest", offset(here, steps - 1))
        w = k.let("w", self.feature)
        whole, rest = k.arg("whole", width // _LANES * _LANES), width % _LANES
        tail = None
        if rest:
            tail = k.let("tail", FIRST16(offset(row, whole), k.arg("rest", rest)))
        with k.loop("f", many, 0, _FOUR) as f:
            four = [k.let(f"sum{i}", 0) for i in range(_FOUR)]
            if width >= _LANES:
                with k.loop("i", whole, 0, _LANES, rolled=True) as at:
                    self._turn(four, k.let("values", bytes_at(row, at)), w)
            if tail is not None:
                self._turn(four, tail, w)
            for i, one in enumerate(four):
                k.store(self.sums, i, one)
            first = self.first_of(f, many, units * rank)
            total = words_at(self.sums, 0)
            if self.zeros_of is not None:
                total = PLUS4(total, words_at(self.zeros_of, first))
            value = HOLD4(self.seen_by.of(total), -(1 << 15), (1 << 15) - 1, 0)
            k.store(self.sums, 0, value)
            for i in range(_FOUR):
                k.store(newest, (first + i) * steps, cast(load(self.sums, i), INT16))

    def _turn(self, four: list[Var], x: Var, w: Var) -> None:
        for i, total in enumerate(four):
            self.k.assign(total, DOT16(total, x, bytes_at(w, _LANES * i)))
        self.k.assign(w, offset(w, _LANES * _FOUR))

    def units(self, to: Expr, here: Expr) -> None:
        k = self.k
        _, _, units, rank, memory = sizes(self.node, self.graph)
        many, count = k.arg("units", units), rank * memory
        taps, whole = k.arg("taps", count), k.arg("whole_taps", count // 8 * 8)
        with k.loop("unit", many, 0, _FOUR) as unit:
            first = self.first_of(unit, many, units)
            for i in range(_FOUR):
                long = k.let("total", i64(load(self.first, first + i)))
                a = k.let("kept", offset(here, (first + i) * taps))
                w = k.let("weights", offset(self.time, (first + i) * taps))
                if count >= 8:
                    with k.loop("m", whole, 0, 8, rolled=True) as m:
                        dot = LONG_DOT8(long, halves_at(a, m), halves_at(w, m))
                        k.assign(long, dot)
                if count % 8:
                    with k.loop("m", taps, whole) as m:
                        product = i32(load(a, m)) * i32(load(w, m))
                        k.assign(long, long + i64(product))
                k.store(self.sums, i, i32(long))
            ended = self.made_by.of(words_at(self.sums, 0))
            low, high = (n - self.y_zero for n in (const(-128), const(127)))
            value = HOLD4(ended, low, high, self.y_zero)
            k.store(to, first, value)
