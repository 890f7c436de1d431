"""reduce, arg_reduce, cumulate: loops over the elements before, along and after an
axis.
"""

from __future__ import annotations

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, const, equal, i64, load, offset, scalar_type
from pybuild.kernels.any_type.elements import computed, memory, read, write
from pybuild.kernels.any_type.expressions import apply, number_form
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.nan import above, below, numbers_mark
from pybuild.kernels.base.operands import Operands, offer, short, whole_operands
from pybuild.ops.accumulate import REDUCTIONS, start
from pybuild.ops.index import outer_inner
from pybuild.targets.target import Target

_COST = 8


class _Walk:
    """The pointers of a kernel that walks along an axis."""

    def __init__(self, name: str, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        self.x, self.y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
        self.kind = computed(self.x.dtype)
        sizes = outer_inner(self.x.shape, int(node.attrs["axis"]))
        self.flat = sizes[2] == 1
        self.operands: Operands = whole_operands(node, graph)
        mark = "" if self.flat else "_inner"
        what = f"{node.op} ({name.replace('_', ' ')}) along an axis"
        order = "line by line" if self.flat else "slab by slab, index by index"
        kinds = [self.x.dtype]
        if node.op == "reduce" and self.y.dtype is not self.x.dtype:
            kinds.append(self.y.dtype)
        types = " to ".join(kind.value for kind in kinds)
        doc = told(f"{what}, {types}", f"{order}; each along the axis")
        mark += numbers_mark(node)
        given = "_".join(map(short, kinds))
        self.k = k = Builder(f"{name}_{given}{mark}", doc)
        self.to = k.row("y", 0, memory(self.y.dtype), writable=True)
        self.source = k.row("x", self.operands.numbers[0], memory(self.x.dtype))
        self.outer = k.arg("outer", sizes[0])
        self.count = k.arg("count", sizes[1])
        self.inner = const(1) if self.flat else k.arg("inner", sizes[2])

    def combined(self, a: Expr, b: Expr) -> Expr:
        name = REDUCTIONS[self.node.attrs["fn"]]
        return apply(number_form(name, self.node), (a, b), self.kind)

    def first(self) -> tuple[Expr, tuple[Packed, ...]]:
        """Return the start value of the accumulation, and its table: small integers are
        constants in the code, other values lie in a table."""
        number = start(self.node.attrs["fn"], self.x.dtype)
        if isinstance(number, int) and abs(number) < 1 << 31:
            return const(number, self.kind), ()
        only = np.asarray([number], self.kind.numpy)
        table = Packed("start", only, order="one element")
        row = self.k.row("begin", self.operands.after, self.kind)
        return self.k.let("start", load(row)), (table,)


def reduce(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for reduce."""
    walk = _Walk(f"reduce_{node.attrs['fn']}", node, graph)
    k = walk.k
    first, tables = walk.first()
    with k.loop("i", walk.outer) as i:
        x = k.let("slab", offset(walk.source, i * walk.count * walk.inner))
        y = k.let("row", offset(walk.to, i * walk.inner))
        with k.loop("j", walk.inner) as j:
            total = k.let("total", first)
            with k.loop("n", walk.count) as n:
                value = read(x, n * walk.inner + j, walk.x.dtype)
                k.assign(total, walk.combined(total, value))
            write(k, y, j, total, walk.y.dtype)
    return [offer(k, walk.operands, tables=tables, cost=_COST * walk.x.size)]


def arg_reduce(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for arg_reduce."""
    last = "_last" if node.attrs["last"] else ""
    walk = _Walk(f"arg_{node.attrs['fn']}{last}", node, graph)
    k = walk.k
    with k.loop("i", walk.outer) as i:
        x = k.let("slab", offset(walk.source, i * walk.count * walk.inner))
        y = k.let("row", offset(walk.to, i * walk.inner))
        with k.loop("j", walk.inner) as j:
            best = k.let("best", read(x, j, walk.x.dtype))
            at = k.let("at", const(0))
            with k.loop("n", walk.count, 1) as n:
                value = k.let("value", read(x, n * walk.inner + j, walk.x.dtype))
                with k.when(_replaces(value, best, node)):
                    k.assign(best, value)
                    k.assign(at, n)
            k.store(y, j, i64(at))
    return [offer(k, walk.operands, cost=_COST * walk.x.size)]


def _replaces(value: Expr, best: Expr, node: Node) -> Expr:
    """Return whether a value replaces the best one so far; NaN always does."""
    greatest, last = node.attrs["fn"] == "max", bool(node.attrs["last"])
    if scalar_type(value).is_float:
        before = above if greatest else below
        return equal(before(best, value), 0) if last else before(value, best)
    ahead, behind = (value, best) if greatest else (best, value)
    return behind <= ahead if last else behind < ahead


def cumulate(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for cumulate."""
    exclusive, reverse = bool(node.attrs["exclusive"]), bool(node.attrs["reverse"])
    marks = ("_before" if exclusive else "") + ("_backward" if reverse else "")
    walk = _Walk(f"cumulate_{node.attrs['fn']}{marks}", node, graph)
    k = walk.k
    first, tables = walk.first()
    with k.loop("i", walk.outer) as i:
        x = k.let("slab", offset(walk.source, i * walk.count * walk.inner))
        y = k.let("row", offset(walk.to, i * walk.count * walk.inner))
        with k.loop("j", walk.inner) as j:
            total = k.let("total", first)
            with k.loop("n", walk.count) as n:
                at = k.let("at", walk.count - 1 - n if reverse else n)
                place = k.let("place", at * walk.inner + j)
                value = k.let("value", read(x, place, walk.x.dtype))
                if exclusive:
                    write(k, y, place, total, walk.y.dtype)
                k.assign(total, walk.combined(total, value))
                if not exclusive:
                    write(k, y, place, total, walk.y.dtype)
    return [offer(k, walk.operands, tables=tables, cost=_COST * walk.x.size)]
