"""Kernels of pad: the whole output is filled, then x is copied into it; or, where bytes
move in blocks, the border alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import INT8, Expr, Var, cast, const, load, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess, by_rows
from pybuild.kernels.base.operands import (
    Operands,
    inner_shape,
    offer,
    short,
    whole_operands,
)
from pybuild.kernels.moves.blocks import Blocks, Value, filling, ways
from pybuild.kernels.moves.shape import (
    Axis,
    copies,
    copy_axes,
    element,
    row_major,
)
from pybuild.ops.shape import pad_fill
from pybuild.records import dataclass
from pybuild.targets.target import Target

# units of a border that are written out
_EDGE = 8
_FILL = 4  # instructions an element, about


@dataclass(frozen=True)
class _Dim:
    """Elements, or rows, of x, and how many are before and after them in y."""

    size: int
    before: int
    after: int

    @property
    def total(self) -> int:
        return self.before + self.size + self.after


@dataclass(frozen=True)
class _Layer:
    """What one call sees, the last dim in elements; `stored`: the value around."""

    dims: tuple[_Dim, ...]
    operands: Operands
    stored: Array
    y: Tensor

    @property
    def calls(self) -> int:
        return self.operands.images * self.operands.bands


def pad(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """x within a border of one value.

    Units  the border is a real number; quantised tensors get its integer
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    pads: tuple[tuple[int, int], ...] = node.attrs["pads"]
    value = pad_fill(node, graph)
    all_operands = [whole_operands(node, graph)]
    by_row = len(y.shape) == 4 and tuple(pads[0]) == (0, 0) and y.shape[1] > 1
    if by_row and node.inputs[0] not in graph.constants:
        all_operands.insert(0, _padded_rows(x, y, pads[1][0], value))
    stored = np.full(1, value, y.dtype.numpy).view(element(y).numpy)
    layers = []
    for operands in all_operands:
        sizes = inner_shape(x, operands, len(y.shape))
        around = pads[len(pads) - len(sizes) :]
        dims = [_Dim(size, *pair) for size, pair in zip(sizes, around, strict=True)]
        layers.append(_Layer(_joined(dims), operands, stored, y))
    found = [_filled(layers[0], target)]
    return found + [one for layer in layers for one in _bordered(layer, target)]


def _padded_rows(x: Tensor, y: Tensor, above: int, value: float) -> Operands:
    """Rows above and below are the runner's, as the rows of a convolution."""
    rows = by_rows(x)
    width = rows.row_bytes // x.dtype.bytes
    border = np.full(width, value, x.dtype.numpy).tobytes()
    source = RowAccess(x.name, x.shape[1], rows.row_bytes, 1, 1, above, border)
    return Operands(by_rows(y), (source,), (), (1,), y.shape[0], y.shape[1])


def _joined(dims: Sequence[_Dim]) -> tuple[_Dim, ...]:
    """Fewest dims: the last ones without a border are rows of the one before."""
    joined = [dims[-1]]
    for dim in reversed(dims[:-1]):
        inner = joined[0]
        if inner.size == inner.total:
            given = (dim.size, dim.before, dim.after)
            joined[0] = _Dim(*(inner.size * count for count in given))
        elif (dim.size, dim.total) != (1, 1):
            joined.insert(0, dim)
    return tuple(joined)


def _filled(layer: _Layer, target: Target) -> Candidate:
    """Fills the output, then copies the input into it."""
    dims, y, operands = layer.dims, layer.y, layer.operands
    x_steps = row_major([dim.size for dim in dims])
    y_steps = row_major([dim.total for dim in dims])
    axes = [
        Axis(dim.size, *steps)
        for dim, *steps in zip(dims, x_steps, y_steps, strict=True)
    ]
    one, elem = copies(target, axes, element(y))[0], element(y)
    count = math.prod(dim.total for dim in dims) * elem.bytes // one.elem.bytes
    by = None if one.by is None else filling(target, count)
    kind = "" if by is None else f"_{by.key}"
    what = "x within a border of one value, elements of"
    order = f"the whole output is filled; then x: {one.order}"
    doc = told(f"{what} {elem.bytes} byte{'s' * (elem.bytes > 1)}", order)
    k = Builder(f"pad_{short(one.elem)}_{one.key}{kind}", doc)
    x = k.row("x", operands.numbers[0], one.elem)
    to = k.row("y", 0, one.elem, writable=True)
    size = k.arg("count", count)
    tables: tuple[Packed, ...] = ()
    if by is not None:
        by.fill(k, size, to, Value.bind(k, k.arg("value", _word(layer.stored))))
    else:
        border, tables = _border(k, layer.stored, elem, operands.after)
        with k.loop("i", size) as i:
            k.store(to, i, border)
    begin = sum(d.before * step for d, step in zip(dims, y_steps, strict=True))
    first = k.arg("begin", begin * elem.bytes // one.elem.bytes)
    copy_axes(k, one, x, k.let("inner", offset(to, first)))
    each = _FILL * count if by is None else by.cost // 2
    cost = (each + one.cost) * layer.calls
    return offer(k, operands, tables=tables, cost=cost)


def _word(stored: Array) -> int:
    """Four bytes of the value again and again."""
    return int(np.resize(stored, 4).view(np.int32)[0])


def _border(
    k: Builder, stored: Array, elem: DType, pointer: int
) -> tuple[Var, tuple[Packed, ...]]:
    """The value around: of the arguments, or where it is none of their integers a
    table."""
    if elem.is_float or elem.bytes == 8:
        value = load(k.row("value", pointer, elem))
        return k.let("border", value), (Packed("border", stored, order="one element"),)
    return k.let("border", cast(k.arg("value", int(stored[0])), elem)), ()


def _bordered(layer: _Layer, target: Target) -> list[Candidate]:
    """The border and x, from the first byte to the last; of each row its ends are
    filled in units, which x then covers where they reach too far."""
    elem = element(layer.y)
    row = layer.dims[-1]
    size = row.size * elem.bytes
    if elem.bytes > 4:
        return []
    return [_Border(layer, by, target).write() for by in ways(target, size)]


class _Border:
    """A kernel being written; `by`: how a row of x is copied."""

    def __init__(self, layer: _Layer, by: Blocks, target: Target) -> None:
        self.layer, self.by, self.target = layer, by, target
        elem = element(layer.y)
        *outer, last = layer.dims
        self.row = _Dim(*(elem.bytes * n for n in (last.size, last.before, last.after)))
        self.dims = (*outer, self.row)
        self.x_steps = row_major([dim.size for dim in self.dims])
        self.y_steps = row_major([dim.total for dim in self.dims])
        self.unit = filling(target, self.row.total).unit
        self.ends = tuple(-(-n // self.unit) for n in (self.row.before, self.row.after))
        what = "x within a border of one value, elements of"
        order = f"rows of x {by.words}; before each its ends, which x covers"
        doc = told(f"{what} {elem.bytes} byte{'s' * (elem.bytes > 1)}", order)
        self.k = Builder(self._name(), doc)

    @property
    def spills(self) -> bool:
        """Whether the ends of a row are written out, and lie in it."""
        fit = self.unit * max(self.ends) <= self.row.total
        return fit and sum(self.ends) <= _EDGE

    def _fills(self) -> list[int]:
        """Bytes that are filled, but for ends that x covers."""
        outer = zip(self.dims[:-1], self.y_steps[:-1], strict=True)
        found = [n * step for dim, step in outer for n in (dim.before, dim.after)]
        return found + ([] if self.spills else [self.row.before, self.row.after])

    def _name(self) -> str:
        units = "_".join(map(str, self.ends))
        ends = f"ends{units}of{self.unit}" if self.spills else ""
        fills = [filling(self.target, n).key if n else "none" for n in self._fills()]
        parts = ("pad_border", f"{len(self.dims)}d", self.by.key, ends, *fills)
        return "_".join(part for part in parts if part)

    def write(self) -> Candidate:
        k, operands, layer = self.k, self.layer.operands, self.layer
        x = k.row("x", operands.numbers[0], INT8)
        to = k.row("y", 0, INT8, writable=True)
        self.value = Value.bind(k, k.arg("value", _word(layer.stored)))
        self._level(0, x, to)
        rows = math.prod(dim.size for dim in self.dims[:-1])
        fills = sum(filling(self.target, n).cost for n in self._fills() if n)
        cost = rows * (self.by.cost + sum(self.ends) + 6) + fills
        return offer(k, operands, cost=cost * layer.calls)

    def _level(self, depth: int, x: Expr, y: Expr) -> None:
        k, dim = self.k, self.dims[depth]
        if depth + 1 == len(self.dims):
            self._row(x, y)
            return
        x_step = k.arg(f"x_step{depth}", self.x_steps[depth])
        step = self.y_steps[depth]
        y_step = k.arg(f"y_step{depth}", step)
        y = self._fill(f"before{depth}", dim.before * step, y)
        size = k.arg(f"size{depth}", dim.size)
        with k.loop("i", size) as i:
            inner_x = k.let("from", offset(x, i * x_step))
            self._level(depth + 1, inner_x, k.let("to", offset(y, i * y_step)))
        if dim.after:
            self._fill(f"after{depth}", dim.after * step, offset(y, size * y_step))

    def _row(self, x: Expr, y: Expr) -> None:
        k, row = self.k, self.row
        size = const(row.size) if self.by.whole else k.arg("size", row.size)
        if not self.spills:
            y = self._fill("before", row.before, y)
            self.by.move(k, size, x, y)
            self._fill("after", row.after, offset(y, size))
            return
        total = const(row.total) if self.unit == 1 else k.arg("row", row.total)
        before, after = self.ends
        for unit in range(before):
            self.value.put(k, self.unit, y, const(unit * self.unit))
        end = k.let("end", offset(y, total)) if after else y
        for unit in range(after):
            self.value.put(k, self.unit, end, const(-(unit + 1) * self.unit))
        if row.before:
            y = k.let("inner", offset(y, k.arg("before", row.before)))
        self.by.move(k, size, x, y)

    def _fill(self, name: str, count: int, y: Expr) -> Expr:
        """So many bytes from y on; where they end."""
        if not count:
            return y
        by, k = filling(self.target, count), self.k
        size = const(count) if by.whole else k.arg(name, count)
        by.fill(k, size, y, self.value)
        return k.let("behind", offset(y, size))
