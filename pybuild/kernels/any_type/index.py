"""gather, lookup, scatter, top_k: loops over indices, each clamped to its tensor; and
places, which finds indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    BOOL,
    INT16,
    INT32,
    Expr,
    Var,
    cast,
    const,
    equal,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.any_type.elements import computed, memory, read, write
from pybuild.kernels.any_type.expressions import apply, number_form
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.nan import above, ignores, numbers_mark
from pybuild.kernels.base.operands import (
    elementwise_operands,
    offer,
    short,
    whole_operands,
)
from pybuild.kernels.math.curves16 import BETWEEN
from pybuild.kernels.moves.shape import element
from pybuild.ops.index import JOINS, outer_inner
from pybuild.targets.target import Target

_COST = 8


def _place(k: Builder, found: Expr, size: Expr, tensor: Tensor) -> Expr:
    """Return an index clamped to 0 .. size - 1; negative ones count from the end."""
    del tensor
    # wide ones are held first, so that none of them turns into another
    whole = i32(maximum(minimum(i64(found), 2**31 - 1), -(2**31) + 1))
    at = k.let("index", whole)
    up = k.let("up", select(at < 0, at + size, at))
    return k.let("place", maximum(minimum(up, size - 1), 0))


def gather(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for gather."""
    x, indices = (graph.tensor(n) for n in node.inputs)
    y = graph.tensor(node.output)
    outer, size, inner = outer_inner(x.shape, int(node.attrs["axis"]))
    operands = whole_operands(node, graph)
    elem = element(y)
    mark = "" if inner == 1 else "_rows"
    doc = told(
        f"y = x at {indices.dtype.value} indices, elements of {elem.bytes} bytes; "
        "indices outside are held within x",
        "index by index",
    )
    k = Builder(f"gather_{short(elem)}_{short(indices.dtype)}{mark}", doc)
    to = k.row("y", 0, elem, writable=True)
    source = k.row("x", operands.numbers[0], elem)
    wanted = k.row("indices", operands.numbers[1], indices.dtype)
    outers, n = k.arg("outer", outer), k.arg("size", size)
    count = k.arg("count", math.prod(indices.shape))
    width = const(1) if inner == 1 else k.arg("inner", inner)
    with k.loop("i", outers) as i:
        rows = k.let("rows", offset(source, i * n * width))
        made = k.let("made", offset(to, i * count * width))
        with k.loop("j", count) as j:
            place = _place(k, load(wanted, j), n, indices)
            with k.loop("c", width) as c:
                k.store(made, j * width + c, load(rows, place * width + c))
    return [offer(k, operands, cost=_COST * y.size)]


def lookup(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for lookup."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    operands, elem = elementwise_operands(node, graph), element(y)
    wide = x.dtype is DType.INT16
    what = f"y = table[x], {x.dtype.value} to elements of {elem.bytes} bytes"
    if wide:
        what = "y = between two points of a curve, int16; points are 128 values apart"
    doc = told(what, "element by element")
    k = Builder(f"lookup_{short(x.dtype)}_{short(elem)}", doc)
    to = k.row("y", 0, elem, writable=True)
    source = k.row("x", operands.numbers[0], x.dtype)
    table = k.row("table", operands.numbers[1], elem)
    count = y.size // (operands.images * operands.bands)
    with k.loop("i", k.arg("count", count)) as i:
        v = i32(load(source, i)) - x.dtype.low
        if wide:
            v = k.let("v", v)
            at = k.let("at", v >> const(7))
            first, last = i32(load(table, at)), i32(load(table, at + 1))
            k.store(to, i, cast(BETWEEN(first, last, v), INT16))
        else:
            k.store(to, i, load(table, v))
    over = (
        (0,)
        if (elem.bytes == 1 or wide) and node.inputs[0] not in graph.constants
        else ()
    )
    return [offer(k, operands, in_place=over, cost=(12 if wide else 5) * y.size)]


def scatter(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for scatter. Where the output lies over x, x is not copied."""
    x, indices, updates = (graph.tensor(n) for n in node.inputs)
    joins, axis = JOINS[node.attrs["join"]], int(node.attrs.get("axis", 0))
    operands = whole_operands(node, graph)
    kind = memory(x.dtype) if joins else element(x)
    outer, size, inner = outer_inner(x.shape, axis)
    mark = f"_{node.attrs['join']}_{short(x.dtype)}" if joins else f"_{short(kind)}"
    mark += "" if inner == 1 else "_rows"
    mark += ("" if outer == 1 else "_each") + numbers_mark(node)
    how = f"joined by {node.attrs['join']}" if joins else "replaced"
    doc = told(
        f"y = x with updates at {indices.dtype.value} indices, {how}; indices outside "
        "are held within x",
        "all of x is copied, unless y lies over x; then update by update",
    )
    k = Builder(f"scatter_{short(indices.dtype)}{mark}", doc)
    to = k.row("y", 0, kind, writable=True)
    source = k.row("x", operands.numbers[0], kind)
    wanted = k.row("indices", operands.numbers[1], indices.dtype)
    new = k.row("updates", operands.numbers[2], kind)
    copied = len(k.values)
    with k.loop("i", k.arg("copied", x.size)) as i:
        k.store(to, i, load(source, i))
    n, count = k.arg("size", size), k.arg("count", indices.size)
    width = const(1) if inner == 1 else k.arg("inner", inner)
    outers = const(1) if outer == 1 else k.arg("outer", outer)

    def put(at: Expr, update: Expr) -> None:
        if not joins:
            k.store(to, at, load(new, update))
            return
        pair = read(to, at, x.dtype), read(new, update, x.dtype)
        value = apply(number_form(joins, node), pair, computed(x.dtype))
        write(k, to, at, value, x.dtype)

    with k.loop("j", count) as j:
        place = _place(k, load(wanted, j), n, indices)
        with k.loop("o", outers) as o, k.loop("c", width) as c:
            at = k.let("at", (o * n + place) * width + c)
            put(at, (o * count + j) * width + c)
    whole = () if node.inputs[0] in graph.constants else (0,)
    cost = _COST * (x.size + updates.size)
    made = offer(k, operands, in_place=whole, ordered=bool(whole), cost=cost)
    args = (*made.args[:copied], 0, *made.args[copied + 1 :])
    return [replace(made, over=args if whole else None)]


def top_k(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the candidates for top_k: each result is found in one pass over the
    elements that rank after the previous result."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    largest = bool(node.attrs["largest"])
    operands = whole_operands(node, graph)
    most = "largest" if largest else "least"
    doc = told(
        f"the {most} elements of each line in order, and where they are, "
        f"{x.dtype.value}",
        "line by line; the line is searched once for each result",
    )
    k = Builder(f"top_{most}_{short(x.dtype)}{numbers_mark(node)}", doc)
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", operands.numbers[0], memory(x.dtype))
    outer, count, inner = (
        k.arg(n, s) for n, s in zip(("outer", "count", "inner"), x.shape, strict=True)
    )
    wanted = k.arg("wanted", y.shape[1])

    whole = not x.dtype.is_float or ignores(node)

    def before(a: Expr, b: Expr) -> Expr:
        """NaN counts as the largest value."""
        a, b = (a, b) if largest else (b, a)
        return b < a if whole else above(a, b)

    with k.loop("i", outer) as i:
        rows = k.let("rows", offset(source, i * count * inner))
        made = k.let("made", offset(to, i * wanted * inner))
        with k.loop("j", inner) as j:
            last = k.let("last", const(-1))
            with k.loop("n", wanted) as n:
                there = k.let("there", maximum(last, 0))
                edge = k.let("edge", read(rows, there * inner + j, x.dtype))
                best = k.let("best", const(-1))
                with k.loop("m", count) as m:
                    value = k.let("value", read(rows, m * inner + j, x.dtype))
                    free = _after(k, edge, (last, m), value, before)
                    with k.when(free):
                        at = maximum(best, 0)
                        held = k.let("held", read(rows, at * inner + j, x.dtype))
                        first = select(best < 0, const(1, BOOL), before(value, held))
                        with k.when(first):
                            k.assign(best, m)
                k.store(made, n * inner + j, i64(best))
                k.assign(last, best)
    return [offer(k, operands, cost=_COST * x.size * y.shape[1])]


def places(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the candidates for places: one pass finds the indices; those without room
    are only counted."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    operands = whole_operands(node, graph)
    what = "how many elements are not zero, and where the first of them are"
    k = Builder("places", told(what, "element by element, once"))
    to = k.row("y", 0, INT32, writable=True)
    source = k.row("x", operands.numbers[0], memory(x.dtype))
    wanted = k.arg("wanted", y.size - 1)
    found = k.let("found", const(0))
    with k.loop("i", k.arg("count", x.size)) as i, k.when(read(source, i, x.dtype)):
        k.assign(found, found + 1)
        with k.when(found <= wanted):
            k.store(to, found, i)
    k.store(to, const(0), found)
    first = k.let("first", minimum(found, wanted) + 1)
    with k.loop("j", wanted + 1 - first) as j:
        k.store(to, first + j, const(-1))
    return [offer(k, operands, cost=5 * x.size + y.size)]


def distinct(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the candidates for distinct: each row is compared with all before; a new
    one moves those that sort after it."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    ordered = bool(node.attrs["sorted"])
    operands = whole_operands(node, graph)
    doc = told(
        f"the number of each row among the distinct ones, {x.dtype.value}, in the "
        f"order {'of their values' if ordered else 'in which they are met'}",
        "row by row, each compared with all before",
    )
    name = f"distinct_{'sorted' if ordered else 'first'}_{short(x.dtype)}"
    k = Builder(name, doc)
    to = k.row("y", 0, INT32, writable=True)
    source = k.row("x", operands.numbers[0], memory(x.dtype))
    count, width = k.arg("count", x.shape[0]), k.arg("width", x.shape[1])
    total = k.let("total", const(0))
    with k.loop("i", count) as i:
        mine = k.let("mine", offset(source, i * width))
        number = k.let("number", const(0) if ordered else total)
        new = k.let("new", const(1))
        with k.loop("j", i) as j:
            other = k.let("other", offset(source, j * width))
            order = _order(k, x, (other, mine), width)
            with k.when(equal(order, const(0))):
                k.assign(number, load(to, j))
                k.assign(new, const(0))
            if ordered:
                with k.when(order < 0):
                    k.assign(number, maximum(number, load(to, j) + 1))
        with k.when(new > 0):
            k.assign(total, total + 1)
            if ordered:
                with k.loop("m", i) as m, k.when(number <= load(to, m)):
                    k.store(to, m, load(to, m) + 1)
        k.store(to, i, number)
    return [offer(k, operands, cost=_COST * x.size * y.size // 2)]


def _order(k: Builder, x: Tensor, rows: tuple[Expr, Expr], width: Expr) -> Var:
    """Return -1 if the first row sorts before the other, 0 if they are equal."""

    def less(a: Expr, b: Expr) -> Expr:
        if not x.dtype.is_float:
            return a < b
        return select(equal(b, b), a < b, equal(a, a))

    order = k.let("order", const(0))
    with k.loop("c", width) as c, k.when(equal(order, const(0))):
        a, b = (k.let("part", read(row, c, x.dtype)) for row in rows)
        after = select(less(b, a), const(1), const(0))
        k.assign(order, select(less(a, b), const(-1), after))
    return order


def _after(
    k: Builder, edge: Expr, places: tuple[Expr, Expr], value: Expr,
    before: Callable[[Expr, Expr], Expr],
) -> Expr:  # fmt: skip
    """Return True if an element ranks after the last one found, `edge`."""
    last, m = places
    same = select(before(edge, value), const(1, BOOL), last < m)
    later = select(before(value, edge), const(0, BOOL), same)
    return k.let("free", select(last < 0, const(1, BOOL), later))
