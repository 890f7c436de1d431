"""Computes layers along one column of pixels as layers along one row. A convolution
over time is [N,T,1,C] in the graph, so that it can advance row by row. Its bytes equal
those of [N,1,T,C], of which kernels compute several pixels together: all of them, or a
band of rows that is copied to scratch and back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    Const,
    Expr,
    Func,
    PointerType,
    Row,
    const,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.operands import short
from pybuild.kernels.moves.blocks import ways
from pybuild.kernels.operators.part import as_part, with_known_rows
from pybuild.ops.base.swapped_axes import POOLS, WEIGHTS, exchanged, swapped
from pybuild.targets.target import Target

_ALIGN = 16
# rows of a band, the best first: few are enough for most kernels and need small rings
_FEW, _MANY = (4, 5, 3, 2), (8, 6, 7, 9, 10)
# times the instructions of the cheapest kernel, up to which others are tried, too
_NEAR = 1.2
Offers = Callable[[Node, Graph], list[Candidate]]


def turned(node: Node, graph: Graph) -> tuple[Node, Graph] | None:
    """Return the layer with its column as a row; None if it is not a column.

    Shapes  x [N,H,1,C], window [KH,1], y [N,OH,1,O] -> [N,1,H,C], [1,KH], [N,1,OH,O]
    """
    if node.op not in (*WEIGHTS, *POOLS) or not _is_column(node, graph):
        return None
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    pairs = [(node.inputs[0], 1), (node.output, 1)]
    if node.op in WEIGHTS:
        pairs.append((node.inputs[1], WEIGHTS[node.op]))
    for name, axis in pairs:
        shape = swapped(tensors[name].shape, axis)
        tensors[name] = replace(tensors[name], shape=shape)
        if name in constants:
            constants[name] = constants[name].reshape(shape)
    made = replace(node, attrs=exchanged(node.attrs))
    return made, replace(graph, tensors=tensors, constants=constants)


def _is_column(node: Node, graph: Graph) -> bool:
    """Return True if the tensors have a single column, and windows cover no other."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    _, left, _, right = node.attrs.get("pads", (0, 0, 0, 0))
    column = x.shape[2] == y.shape[2] == 1 and not (left or right)
    return column and x.shape[1] > 1


def of_columns(
    node: Node, graph: Graph, target: Target, offers: Offers
) -> list[Candidate]:
    """Return the candidates of a layer; for a column, also those that make several rows
    a call.

    offers  returns the candidates of a layer as it is
    """
    found, row = offers(node, graph), turned(node, graph)
    if row is None:
        return found
    by_rows = next((c for c in found if c.bands > 1 and _makes_one(c)), None)
    found = [*found, *offers(*row)]
    if by_rows is None:
        return found
    for count in _counts(graph.tensor(node.output).shape[1]):
        band = _Band(row, target, by_rows, count)
        able = [c for c in offers(band.node, band.graph) if _is_plain(c)]
        least = min((c.cost for c in able), default=0)
        near = [c for c in able if c.cost <= _NEAR * least]
        found += filter(None, map(band.joined, near))
    return found


def _makes_one(candidate: Candidate) -> bool:
    """Return True if a call makes one row, from rows of one tensor."""
    made, read = candidate.outputs[0], candidate.inputs
    return (made.window, made.stride) == (1, 1) and len(read) == 1


def _counts(rows: int) -> list[int]:
    """Return a small and a large number of rows per band that divide all rows."""
    found = (next((n for n in each if rows % n == 0), 1) for each in (_FEW, _MANY))
    return sorted({*found} - {1})


def _is_plain(candidate: Candidate) -> bool:
    """Return True if the layer is a single call of a single function."""
    once = candidate.images * candidate.bands == 1 and candidate.finish is None
    return once and isinstance(candidate.func, Func) and not candidate.func.arrays


class _Copy:
    """Copies rows of one size to or from scratch.

    elem, size  of a row; blocks are of bytes, and cores without blocks move elements
    """

    def __init__(self, access: RowAccess, elem: DType, target: Target) -> None:
        self.by = next(iter(ways(target, access.row_bytes)), None)
        self.elem = elem if self.by is None else INT8
        self.size = access.row_bytes // self.elem.bytes

    @property
    def key(self) -> str:
        return short(self.elem) if self.by is None else self.by.key

    def write(self, k: Builder, size: Expr, x: Expr, y: Expr) -> None:
        if self.by is not None:
            self.by.move(k, size, x, y)
            return
        with k.loop("i", size) as i:
            k.store(y, i, load(x, i))


class _Band:
    """A call: rows of x are copied to scratch, the layer of a row runs, its pixels are
    copied to rows of y.

    node, graph  that layer: x [1,1,window,C], y [1,1,count,O], without padding
    """

    def __init__(
        self, row: tuple[Node, Graph], target: Target, one: Candidate, count: int
    ) -> None:
        """row: the layer as `turned` has it; one: its kernel of a row a call"""
        made, read = one.outputs[0], one.inputs[0]
        self.one, self.target, self.count = one, target, count
        self.window = (count - 1) * read.stride + read.window
        self.made = replace(made, window=count, stride=count)
        self.read = replace(read, window=self.window, stride=count * read.stride)
        node, whole = row
        self.node = node.with_attrs(pads=(0,) * 4)
        tensors = dict(whole.tensors)
        for access, pixels in ((self.made, count), (self.read, self.window)):
            tensor = tensors[access.tensor]
            shape = (1, 1, pixels, tensor.shape[3])
            tensors[access.tensor] = replace(tensor, shape=shape)
        self.graph = replace(whole, tensors=tensors)

    def joined(self, layer: Candidate) -> Candidate | None:
        """Return the candidate with a layer's kernel; None if its pointers are
        unknown."""
        assert isinstance(layer.func, Func)
        fixed = with_known_rows(layer.func, layer.args)
        if fixed is None:
            return None
        func, values = fixed
        into, out = (self._copy(access) for access in (self.read, self.made))
        k = Builder(
            f"{func.name}_band_{into.key}_{out.key}",
            f"{func.doc}\nBand      rows are copied to scratch, side by side, and back",
        )
        x_at = _aligned(layer.scratch)
        y_at = _aligned(x_at + self.window * self.read.row_bytes)
        work = self.count + self.window + len(layer.constants)
        count, window = k.arg("count", self.count), k.arg("window", self.window)
        x_size, y_size = k.arg("x_size", into.size), k.arg("y_size", out.size)
        x_unit, y_unit = k.arg("x_at", x_at // _ALIGN), k.arg("y_at", y_at // _ALIGN)
        places = {0: (work, y_unit), 1: (work, x_unit)}
        places[2 + len(layer.constants)] = work, const(0)

        bound: dict[Row, Expr] = {}

        def pointer(number: int, kind: PointerType) -> Expr:
            """Return the layer's pointer of that number."""
            table = number - 2 + self.count + self.window
            at, unit = places.get(number, (table, const(0)))
            row = Row(const(at), kind)
            if row not in bound:
                bound[row] = k.early("work" if at == work else "table", row)
            return offset(bound[row], unit * (_ALIGN // kind.elem.bytes))

        with k.loop("i", window) as i:
            from_x = k.row("x", i + count, into.elem)
            to = k.let("to", pointer(1, PointerType(into.elem, True)))
            into.write(k, x_size, from_x, offset(to, i * x_size))
        rows, part = as_part(func)
        given = [pointer(_number(row), row.type) for row in rows]
        numbers = [k.arg(a.name, n) for a, n in zip(func.args, values, strict=True)]
        k.apart(replace(part, args=(*given, *numbers)))
        with k.loop("i", count) as i:
            to = k.row("y", i, out.elem, writable=True)
            made = k.let("made", pointer(0, PointerType(out.elem, True)))
            out.write(k, y_size, offset(made, i * y_size), to)
        bands = self.one.bands // self.count
        return Candidate(
            # pointers to scratch meet: none is for it alone
            func=k.finish(in_place=True),
            args=tuple(k.values),
            outputs=(self.made,),
            inputs=(self.read,),
            constants=layer.constants,
            images=self.one.images,
            bands=bands,
            scratch=y_at + self.count * self.made.row_bytes,
            cost=self.one.images * bands * (layer.cost + self.window * into.size),
        )

    def _copy(self, access: RowAccess) -> _Copy:
        elem = self.graph.tensor(access.tensor).dtype
        return _Copy(access, elem, self.target)


def _number(row: Row) -> int:
    assert isinstance(row.index, Const)
    return int(row.index.value)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
