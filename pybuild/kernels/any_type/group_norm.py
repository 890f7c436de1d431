"""group_norm of float32: each group is read for its mean, for its deviation, and for
its result. Channels go eight at a time, so that their sums and factors stay in
registers; on vectors they are two of four lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    Expr,
    Var,
    const,
    load,
    maximum,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.floats import (
    ADD_PRODUCTS4,
    ADD_REALS4,
    ALL_REALS4,
    MUL_REALS4,
    SUB_REALS4,
)
from pybuild.kernels.base.operands import elementwise_operands, offer, whole_operands
from pybuild.kernels.base.real_vectors import MVE, real_vectors
from pybuild.kernels.base.reals import REALS
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.math.floats import sqrt
from pybuild.ops.base.operator import clamp_of, optional
from pybuild.ops.group_norm import FACTORS, OFFSETS
from pybuild.records import dataclass
from pybuild.targets.target import Target

_STEPS = (8, 4, 1)  # elements at a time
_LONG = (16, 4, 1)  # of a group that is one line
_LANES = MVE.lanes
_SUMS = 4  # of one group, of elements that follow each other
_ROOT = sqrt(FLOAT32)


def group_norm(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for group_norm."""
    groups, inner = node.attrs["view"][2:]
    aligned = (inner if inner > 1 else groups) % _LANES == 0
    units = _FOURS if real_vectors(target) is MVE and aligned else _ONES
    return [_Code(node, graph, units).written()]


@dataclass(frozen=True)
class _Units:
    """What a kernel computes with: floats, or vectors of four."""

    key: str
    lanes: int
    at: Callable[[Expr, Expr], Expr]
    every: Callable[[Expr], Expr]
    plus: Callable[[Expr, Expr], Expr]
    less: Callable[[Expr, Expr], Expr]
    times: Callable[[Expr, Expr], Expr]
    plus_square: Callable[[Expr, Expr], Expr]
    held: Callable[[Expr, Expr | None, Expr | None], Expr]


def _held(value: Expr, low: Expr | None, high: Expr | None) -> Expr:
    if low is not None:
        value = maximum(value, low)
    return value if high is None else minimum(value, high)


_ONES = _Units(
    "", 1, load, lambda x: x, lambda a, b: a + b, lambda a, b: a - b,
    lambda a, b: a * b, lambda a, b: a + b * b, _held,
)  # fmt: skip
_FOURS = _Units(
    "_mve", _LANES, lambda p, i: wide(p, i, REALS), ALL_REALS4, ADD_REALS4,
    SUB_REALS4, MUL_REALS4, lambda a, b: ADD_PRODUCTS4(a, b, b), MVE.clamped,
)  # fmt: skip
# so many elements, from a place to before another
Piece = tuple[int, Expr, Expr]
# factors and offsets
Each = tuple[Var | None, Var | None]


class _Code:
    """The kernel being written.

    flat   the elements of a group lie side by side
    lines  they are one line, and each has factors of its own
    """

    def __init__(self, node: Node, graph: Graph, units: _Units) -> None:
        outer, rows, groups, inner = node.attrs["view"]
        self.node, self.graph, self.units = node, graph, units
        self.centred = bool(node.attrs["centred"])
        self.lines, self.flat = rows == 1, rows == 1 or groups == 1
        self.alone = inner == 1 and not self.lines  # each channel is a group
        row = math.prod(graph.tensor(node.output).shape[2:])
        by_rows = self.lines and groups == 1 and row % inner == 0
        make = elementwise_operands if by_rows else whole_operands
        self.operands = make(node, graph)
        self.limits = FloatClamp(*clamp_of(node))
        self.count = rows * inner
        self.pair = 2 - rows % 2 if self.alone else 1  # rows at a time
        there = [optional(node, graph, i) is not None for i in (FACTORS, OFFSETS)]
        marks = "_rms" * (not self.centred) + "_factors" * there[0]
        marks += "_pairs" * (self.pair > 1)
        marks += "_offsets" * there[1] + f"_{self.limits.key}" * bool(self.limits.key)
        run = groups if self.alone else inner
        marks += "".join(f"_{step}" for step, _, _ in _spans(run, units.lanes))
        how = "lines" if self.lines else "channels" if self.alone else "groups"
        if how == "groups" and self.flat:
            how = "image" + "".join(
                f"_{step}" for step, _, _ in _spans(self.count, units.lanes, _LONG)
            )
        k = self.k = Builder(f"group_norm_f32_{how}{units.key}{marks}", self._doc())
        numbers = iter(self.operands.numbers)
        self.to = k.row("y", 0, FLOAT32, writable=True)
        self.source = k.row("x", next(numbers), FLOAT32)
        self.factors, self.offsets = (
            k.row(name, next(numbers), FLOAT32) if given else None
            for name, given in zip(("factors", "offsets"), there, strict=True)
        )
        after = self.operands.after
        terms = k.row("terms", after, FLOAT32)
        self.share = k.let("share", load(terms))
        self.epsilon = k.let("epsilon", load(terms, 1))
        self.low, self.high = self.limits.bind_ends(k, const(after + 1))
        calls = self.operands.images * self.operands.bands
        self.outer = k.arg("outer", outer // calls)
        self.rows = k.arg("rows", rows)
        self.groups, self.inner = k.arg("groups", groups), k.arg("inner", inner)
        self.channels = k.arg("channels", groups * inner)
        self.columns = self._pieces("column", run)
        self.run = self.columns
        if self.flat and not self.lines:
            self.run = self._pieces("element", self.count, _LONG)
        last = after + 1 + len(self.limits.tables())
        self.working: Var | None = None
        if units.lanes > 1:
            self.working = k.row("working", last, FLOAT32, writable=True)

    def _doc(self) -> str:
        kind = "less their mean, over their deviation"
        if not self.centred:
            kind = "over the root of their mean square"
        end = f", {self.limits.words}" if self.limits.words else ""
        order = "each group is read for its sums, then for its elements"
        return told(f"y = elements of groups {kind}, float32{end}", order)

    def _pieces(
        self, name: str, count: int, steps: tuple[int, ...] = _STEPS
    ) -> list[Piece]:
        found: list[Piece] = []
        begin: Expr = const(0)
        for step, _, stop in _spans(count, self.units.lanes, steps):
            end = self.k.arg(f"{name}{step}", stop)
            found.append((step, begin, end))
            begin = end
        return found

    def written(self) -> Candidate:
        k = self.k
        with k.loop("a", self.outer) as a:
            first = a * self.rows * self.channels
            x, y = (k.let("image", offset(p, first)) for p in (self.source, self.to))
            if self.alone:
                self._each_channel(x, y)
            else:
                with k.loop("g", self.groups) as g:
                    self._group(x, y, k.let("begin", g * self.inner))
        tables = (self._terms(), *self.limits.tables())
        over = (0,) if self.node.inputs[0] not in self.graph.constants else ()
        size = self.graph.tensor(self.node.output).size
        made = offer(k, self.operands, tables=tables, in_place=over, cost=14 * size)
        return made if self.working is None else replace(made, scratch=4 * _STEPS[0])

    def _terms(self) -> Packed:
        values = np.asarray([1 / self.count, self.node.attrs["epsilon"]], np.float32)
        return Packed("terms", values, order="1 / elements of a group, epsilon")

    # ---- a group of many elements ----------------------------------------------------

    def _group(self, x: Var, y: Var, begin: Var) -> None:
        k, units = self.k, self.units
        at, to = (k.let("group", offset(p, begin)) for p in (x, y))
        mean = self._total(at, None) if self.centred else None
        spread = self._total(at, mean, squares=True)
        root = k.let("root", const(1.0, FLOAT32) / _ROOT(spread + self.epsilon))
        each = self._own((self.factors, self.offsets), begin)
        for step, start, stop in self.columns:
            with k.loop("c", stop, start, step) as c:
                cell, out = (k.let("cell", offset(p, c)) for p in (at, to))
                own = self._own(each, c)
                count = step // units.lanes
                if self.lines:
                    self._line((cell, out), count, (mean, root), own)
                else:
                    roots = [units.every(root)] * count
                    means = [None if mean is None else units.every(mean)] * count
                    self._column((cell, out), self._ends(roots, means, own))

    def _own(self, each: Each, first: Expr) -> Each:
        """The factors and offsets from a channel on."""
        one, two = (
            None if row is None else self.k.let("own", offset(row, first))
            for row in each
        )
        return one, two

    def _total(self, at: Var, mean: Var | None, squares: bool = False) -> Var:
        """The mean of a group, or of its squares, less a mean."""
        k, units = self.k, self.units
        middle = None if mean is None else units.every(mean)
        if middle is not None and units.lanes > 1:
            middle = k.let("middle", middle)
        zero = units.every(const(0.0, FLOAT32))
        count = min(_SUMS, max(step for step, _, _ in self.run) // units.lanes)
        sums = [k.let("sum", zero) for _ in range(count)]

        def add(line: Expr) -> None:
            for step, start, stop in self.run:
                with k.loop("e", stop, start, step) as e:
                    cell = k.let("cell", offset(line, e))
                    for n in range(step // units.lanes):
                        value = units.at(cell, const(n * units.lanes))
                        total = sums[n % count]
                        if not squares:
                            k.assign(total, units.plus(total, value))
                            continue
                        if middle is not None:
                            value = k.let("away", units.less(value, middle))
                        else:
                            value = k.let("value", value)
                        k.assign(total, units.plus_square(total, value))

        if self.flat:
            add(at)
        else:
            line = k.let("line", at)
            with k.loop("r", self.rows):
                add(line)
                k.assign(line, offset(line, self.channels))
        whole: Expr = sums[0]
        for more in sums[1:]:
            whole = units.plus(whole, more)
        if self.working is not None:
            k.store(self.working, const(0), whole)
            whole = load(self.working)
            for lane in range(1, units.lanes):
                whole = whole + load(self.working, lane)
        return k.let("mean", whole * self.share)

    def _line(
        self,
        cells: tuple[Var, Var],
        count: int,
        known: tuple[Var | None, Var],
        each: Each,
    ) -> None:
        """Elements of which each has its own factor and offset."""
        k, units, (mean, root) = self.k, self.units, known
        for n in range(count):
            index = const(n * units.lanes)
            value = units.at(cells[0], index)
            if mean is not None:
                value = units.less(value, units.every(mean))
            value = units.times(value, units.every(root))
            if each[0] is not None:
                value = units.times(value, units.at(each[0], index))
            if each[1] is not None:
                value = units.plus(value, units.at(each[1], index))
            k.store(cells[1], index, units.held(value, self.low, self.high))

    # ---- channels --------------------------------------------------------------------

    def _each_channel(self, x: Var, y: Var) -> None:
        """Channels of which each is a group."""
        k, units = self.k, self.units
        for step, start, stop in self.columns:
            with k.loop("c", stop, start, step) as c:
                cell, out = (k.let("cell", offset(p, c)) for p in (x, y))
                count = step // units.lanes
                means: list[Var | None] = [None] * count
                if self.centred:
                    means = [*self._means(cell, means)]
                spreads = self._means(cell, means, squares=True)
                own = self._own((self.factors, self.offsets), c)
                ends = self._ends(self._roots(spreads), means, own)
                self._column((cell, out), ends)

    def _means(
        self, cell: Var, means: Sequence[Var | None], squares: bool = False
    ) -> list[Var]:
        k, units = self.k, self.units
        zero = units.every(const(0.0, FLOAT32))
        sums = [k.let("sum", zero) for _ in means]
        at = k.let("at", cell)
        with k.loop("r", self.rows, 0, self.pair):
            for _ in range(self.pair):
                for n, (total, mean) in enumerate(zip(sums, means, strict=True)):
                    value = units.at(at, const(n * units.lanes))
                    if squares:
                        away = value if mean is None else units.less(value, mean)
                        value = k.let("away", away)
                    add = units.plus_square if squares else units.plus
                    k.assign(total, add(total, value))
                k.assign(at, offset(at, self.channels))
        share = units.every(self.share)
        return [k.let("mean", units.times(total, share)) for total in sums]

    def _roots(self, spreads: Sequence[Var]) -> list[Expr]:
        """1 / sqrt(spread + epsilon) of each lane."""
        k, one = self.k, const(1.0, FLOAT32)
        if self.working is None:
            return [k.let("root", one / _ROOT(v + self.epsilon)) for v in spreads]
        for n, spread in enumerate(spreads):
            k.store(self.working, const(n * _LANES), spread)
        with k.loop("lane", const(len(spreads) * _LANES)) as lane:
            value = load(self.working, lane) + self.epsilon
            k.store(self.working, lane, one / _ROOT(value))
        return [
            self.units.at(self.working, const(n * _LANES)) for n in range(len(spreads))
        ]

    def _ends(
        self,
        roots: Sequence[Expr],
        means: Sequence[Expr | None],
        each: Each,
    ) -> list[tuple[Var, Var | None]]:
        """Of some channels what elements are multiplied by, and what is added."""
        k, units, found = self.k, self.units, []
        for n, (root, mean) in enumerate(zip(roots, means, strict=True)):
            factor, term, index = root, None, const(n * units.lanes)
            if each[0] is not None:
                factor = units.times(root, units.at(each[0], index))
            factor = k.let("factor", factor)
            if each[1] is not None:
                term = units.at(each[1], index)
            if mean is not None:
                away = units.times(mean, factor)
                zero = units.every(const(0.0, FLOAT32))
                term = units.less(zero if term is None else term, away)
            found.append((factor, None if term is None else k.let("term", term)))
        return found

    def _column(
        self, cells: tuple[Var, Var], ends: Sequence[tuple[Var, Var | None]]
    ) -> None:
        """All rows of some channels."""
        k, units = self.k, self.units
        at, to = (k.let("at", cell) for cell in cells)
        with k.loop("r", self.rows):
            for n, (factor, term) in enumerate(ends):
                index = const(n * units.lanes)
                value = units.times(units.at(at, index), factor)
                if term is not None:
                    value = units.plus(value, term)
                k.store(to, index, units.held(value, self.low, self.high))
            for pointer in (at, to):
                k.assign(pointer, offset(pointer, self.channels))


def _spans(
    count: int, lanes: int, steps: tuple[int, ...] = _STEPS
) -> list[tuple[int, int, int]]:
    """How many elements at a time, from which one, to before which one."""
    found, at = [], 0
    for step in steps:
        end = at + (count - at) // step * step
        if step >= lanes and end > at:
            found.append((step, at, end))
            at = end
    return found
