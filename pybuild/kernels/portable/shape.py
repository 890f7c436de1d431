"""Kernels that only move elements: transpose, slice, concat, pad, copy.

All are one strided copy, as deep as the layer needs after joining axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import INT8, Expr, Var, cast, const, load, offset, wide
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess, by_rows
from pybuild.kernels.base.operands import (
    Operands,
    elementwise_operands,
    inner_shape,
    offer,
    short,
    whole_operands,
)
from pybuild.kernels.base.vectors import ALL16, bytes_at
from pybuild.ops.shape import pad_fill
from pybuild.records import dataclass
from pybuild.targets.target import Target

_BY_SIZE = {1: INT8, 2: DType.INT16, 4: DType.INT32, 8: DType.INT64}
_COST = 6  # instructions an element, about


@dataclass(frozen=True)
class Axis:
    """One loop of a copy: turns, and how far each turn moves, in elements."""

    size: int
    x_step: int
    y_step: int


def row_major(shape: Sequence[int]) -> list[int]:
    """Elements from one index of each axis to the next."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def join(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Fewest loops that copy the same elements in the same order."""
    joined: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.x_step == axis.size * axis.x_step
            and last.y_step == axis.size * axis.y_step
        ):
            joined[-1] = Axis(last.size * axis.size, axis.x_step, axis.y_step)
        else:
            joined.append(axis)
    return tuple(joined) or (Axis(1, 1, 1),)


@dataclass(frozen=True)
class Blocks:
    """Bytes that move together, in words or in a vector.

    A row of bytes that is not a number of blocks has a last one that reaches back.
    """

    bytes: int
    vector: bool

    def move(self, k: Builder, size: Expr, rest: bool, x: Expr, y: Expr) -> None:
        """A row of `size` bytes."""
        self._each(k, size, rest, lambda i: self._move(k, i, x, y))

    def fill(self, k: Builder, size: Expr, rest: bool, y: Expr, word: Expr) -> None:
        """A row of `size` bytes with four again and again."""
        self._each(k, size, rest, lambda i: self._fill(k, i, y, word))

    def _each(
        self, k: Builder, size: Expr, rest: bool, at: Callable[[Expr], None]
    ) -> None:
        with k.loop("i", size - (self.bytes - 1), 0, self.bytes, rolled=True) as i:
            at(i)
        if rest:
            at(k.let("last", size - self.bytes))

    def _move(self, k: Builder, i: Expr, x: Expr, y: Expr) -> None:
        if self.vector:
            k.store(y, i, bytes_at(offset(x, i)))
            return
        for at in range(0, self.bytes, 4):
            k.store(y, i + at, wide(x, i + at), wide=True)

    def _fill(self, k: Builder, i: Expr, y: Expr, word: Expr) -> None:
        if self.vector:
            k.store(y, i, ALL16(word >> 24))
            return
        for at in range(0, self.bytes, 4):
            k.store(y, i + at, word, wide=True)


def blocks(target: Target, axes: Sequence[Axis], elem: DType) -> Blocks | None:
    """The largest that fit in rows of the innermost axis, of bytes.

    axes  joined
    """
    if elem.bytes > 1 or _strided(axes):
        return None
    size = axes[-1].size
    if "mve" in target.features:
        return Blocks(16, True) if size >= 16 else None
    if "words" in target.features:
        return next((Blocks(n, False) for n in (16, 8, 4) if size >= n), None)
    return None


def key(axes: Sequence[Axis], by: Blocks | None = None) -> str:
    """The key that distinguishes the code of two copies."""
    kind = f"{len(axes)}d" + ("_strided" if _strided(axes) else "")
    if by is None:
        return kind
    rest = "_rest" if axes[-1].size % by.bytes else ""
    return f"{kind}_{'vectors' if by.vector else 'words'}{by.bytes}{rest}"


def _order(axes: Sequence[Axis], by: Blocks | None) -> str:
    """`key` for readers of the C."""
    loops = f"{len(axes)} loop{'s' * (len(axes) > 1)}, y forward"
    if _strided(axes):
        return f"{loops}, gaps between the elements of the innermost"
    if by is None:
        return loops
    back = "; the last reaches back" if axes[-1].size % by.bytes else ""
    return f"{loops}, the innermost by {by.bytes} bytes{back}"


def _width(elem: DType) -> str:
    return f"{elem.bytes} byte{'s' * (elem.bytes > 1)}"


def _strided(axes: Sequence[Axis]) -> bool:
    return (axes[-1].x_step, axes[-1].y_step) != (1, 1)


def copy_axes(
    k: Builder,
    axes: Sequence[Axis],
    x: Expr,
    y: Expr,
    mark: str = "",
    by: Blocks | None = None,
) -> None:
    """The loops of a copy from x to y; its numbers become arguments."""
    bound = []
    for depth, axis in enumerate(axes):
        size = k.arg(f"size{mark}{depth}", axis.size)
        inner = depth + 1 == len(axes) and not _strided(axes)
        x_step: Expr = const(1) if inner else k.arg(f"x_step{mark}{depth}", axis.x_step)
        y_step: Expr = const(1) if inner else k.arg(f"y_step{mark}{depth}", axis.y_step)
        bound.append((size, x_step, y_step))
    if by is None:
        _copy_loop(k, bound, x, y, None)
        return
    rest = axes[-1].size % by.bytes > 0
    _copy_loop(k, bound, x, y, lambda *row: by.move(k, row[0], rest, *row[1:]))


def _copy_loop(
    k: Builder,
    bound: Sequence[tuple[Expr, Expr, Expr]],
    x: Expr,
    y: Expr,
    row: Callable[[Expr, Expr, Expr], None] | None,
) -> None:
    """row  copies as many elements that lie side by side, if there is a way"""
    size, x_step, y_step = bound[0]
    if len(bound) == 1 and row is not None:
        row(size, x, y)
        return
    with k.loop("i", size) as i:
        if len(bound) == 1:
            k.store(y, i * y_step, load(x, i * x_step))
        else:
            inner_x = k.let("from", offset(x, i * x_step))
            inner_y = k.let("to", offset(y, i * y_step))
            _copy_loop(k, bound[1:], inner_x, inner_y, row)


def element(tensor: Tensor) -> DType:
    """The type that moves a tensor's elements: only their size counts."""
    kinds = (DType.FLOAT32, *_BY_SIZE.values())
    return tensor.dtype if tensor.dtype in kinds else _BY_SIZE[tensor.dtype.bytes]


def raw(tensor: Tensor) -> DType:
    """The integer type of the same size."""
    return _BY_SIZE[tensor.dtype.bytes]


def _moved(
    name: str,
    axes: Sequence[Axis],
    begin: int | None,
    operands: Operands,
    y: Tensor,
    target: Target,
) -> Candidate:
    """One input copied to the whole output, from element `begin` on, which is an
    argument; without it from the first."""
    joined = join(axes)
    elem = element(y)
    by = blocks(target, joined, elem)
    doc = told(f"{name} of elements of {_width(elem)}", _order(joined, by))
    k = Builder(f"{name}_{short(elem)}_{key(joined, by)}", doc)
    x: Expr = k.row("x", operands.numbers[0], elem)
    to = k.row("y", 0, elem, writable=True)
    if begin is not None:
        x = k.let("first", offset(x, k.arg("begin", begin)))
    copy_axes(k, joined, x, to, by=by)
    return offer(k, operands, cost=_COST * y.size)


def copy(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, element by element: copy, reshape."""
    y = graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    if graph.tensor(node.inputs[0]).shape != y.shape:
        operands = whole_operands(node, graph)
    count = y.size // (operands.images * operands.bands)
    return [_moved("copy", (Axis(count, 1, 1),), None, operands, y, target)]


def assign(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, in one piece: all has been read that was in y."""
    y = graph.tensor(node.output)
    axes = (Axis(y.size, 1, 1),)
    return [_moved("copy", axes, None, whole_operands(node, graph), y, target)]


def transpose(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y[i0,i1,...] = x[the same indices, axis perm[n] of x for axis n of y]."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    steps = row_major(x.shape)
    axes = [
        Axis(x.shape[p], steps[p], to)
        for p, to in zip(node.attrs["perm"], row_major(y.shape), strict=True)
    ]
    return [_moved("transpose", axes, None, whole_operands(node, graph), y, target)]


def strided_slice(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y[i,...] = x[begin + i * stride, ...]"""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    steps = row_major(x.shape)
    begin = sum(b * s for b, s in zip(node.attrs["begin"], steps, strict=True))
    axes = [
        Axis(size, step * stride, to)
        for size, step, stride, to in zip(
            y.shape, steps, node.attrs["strides"], row_major(y.shape), strict=True
        )
    ]
    return [_moved("slice", axes, begin, whole_operands(node, graph), y, target)]


def concat(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The inputs one after the other along an axis."""
    y = graph.tensor(node.output)
    axis: int = node.attrs["axis"]
    by_row = axis >= 2 and not any(n in graph.constants for n in node.inputs)
    choose = elementwise_operands if by_row else whole_operands
    operands = choose(node, graph)
    first = 2 if operands.bands > 1 else 0
    outer = math.prod(y.shape[first:axis])
    chunks = [math.prod(graph.tensor(n).shape[axis:]) for n in node.inputs]
    elem = element(y)
    parts = [join((Axis(outer, c, sum(chunks)), Axis(c, 1, 1))) for c in chunks]
    by = [blocks(target, part, elem) for part in parts]
    keys = [key(part, some) for part, some in zip(parts, by, strict=True)]
    shapes = "_".join(keys if len(set(keys)) > 1 else keys[:1])
    what = f"{len(parts)} inputs one after the other, elements of {_width(elem)}"
    doc = told(what, "input by input, each from its first element to its last")
    k = Builder(f"concat{len(parts)}_{short(elem)}_{shapes}", doc)
    to: Expr = k.row("y", 0, elem, writable=True)
    for index, (part, chunk) in enumerate(zip(parts, chunks, strict=True)):
        x = k.row(f"x{index}", operands.numbers[index], elem)
        copy_axes(k, part, x, to, f"{index}_", by[index])
        if index + 1 < len(parts):
            to = k.let("next", offset(to, k.arg(f"chunk{index}", chunk)))
    return [offer(k, operands, cost=_COST * y.size)]


def pad(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """x within a border of one value.

    Units  the border is a real number; quantised tensors get its integer
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    pads: tuple[tuple[int, int], ...] = node.attrs["pads"]
    operands = whole_operands(node, graph)
    value = pad_fill(node, graph)
    by_row = len(y.shape) == 4 and tuple(pads[0]) == (0, 0) and y.shape[1] > 1
    if by_row and node.inputs[0] not in graph.constants:
        operands = _padded_rows(x, y, pads[1][0], value)
    shape = inner_shape(x, operands, len(y.shape))
    around = inner_shape(y, operands, len(y.shape))
    before = [b for b, _ in pads[len(pads) - len(shape) :]]
    return [_pad_kernel(operands, (shape, around, before), value, y, target)]


def _padded_rows(x: Tensor, y: Tensor, above: int, value: float) -> Operands:
    """Rows above and below are the runner's, as the rows of a convolution."""
    rows = by_rows(x)
    width = rows.row_bytes // x.dtype.bytes
    border = np.full(width, value, x.dtype.numpy).tobytes()
    source = RowAccess(x.name, x.shape[1], rows.row_bytes, 1, 1, above, border)
    return Operands(by_rows(y), (source,), (), (1,), y.shape[0], y.shape[1])


def _pad_kernel(
    operands: Operands,
    shapes: tuple[Sequence[int], Sequence[int], Sequence[int]],
    value: float,
    y: Tensor,
    target: Target,
) -> Candidate:
    """Fills the output, then copies the input into it."""
    shape, around, before = shapes
    elem = element(y)
    to_steps = row_major(around)
    axes = join(
        [
            Axis(size, step, to)
            for size, step, to in zip(shape, row_major(shape), to_steps, strict=True)
        ]
    )
    begin = sum(b * s for b, s in zip(before, to_steps, strict=True))
    by, all_around = blocks(target, axes, elem), math.prod(around)
    odd = by is not None and all_around % by.bytes > 0
    name = f"pad_{short(elem)}_{key(axes, by)}"
    what = f"x within a border of one value, elements of {_width(elem)}"
    order = f"the whole output is filled; then x: {_order(axes, by)}"
    k = Builder(name + ("_odd" if odd else ""), told(what, order))
    x = k.row("x", operands.numbers[0], elem)
    to = k.row("y", 0, elem, writable=True)
    stored = np.full(1, value, y.dtype.numpy).view(elem.numpy)
    count = k.arg("count", all_around)
    tables: tuple[Packed, ...] = ()
    if by is not None:
        word = int(np.full(4, stored[0]).view(np.int32)[0])
        by.fill(k, count, odd, to, k.arg("value", word))
    else:
        border, tables = _border(k, stored, elem, operands.after)
        with k.loop("i", count) as i:
            k.store(to, i, border)
    inner = k.let("inner", offset(to, k.arg("begin", begin)))
    copy_axes(k, axes, x, inner, by=by)
    return offer(k, operands, tables=tables, cost=_COST * y.size)


def _border(
    k: Builder, stored: Array, elem: DType, pointer: int
) -> tuple[Var, tuple[Packed, ...]]:
    """The value around: of the arguments, or where it is none of their integers a
    table."""
    if elem.is_float or elem.bytes == 8:
        value = load(k.row("value", pointer, elem))
        return k.let("border", value), (Packed("border", stored, order="one element"),)
    return k.let("border", cast(k.arg("value", int(stored[0])), elem)), ()
