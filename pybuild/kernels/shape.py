"""Kernels that only move elements: transpose, slice, concat, pad, copy.

All are one strided copy, as deep as the layer needs after joining axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import DType
from pybuild.graph import Graph, Node, Tensor
from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Candidate, Packed, RowAccess, by_rows
from pybuild.kernels.operands import (
    Operands,
    elementwise_operands,
    inner_shape,
    offer,
    short,
    whole_operands,
)
from pybuild.loop import INT8, Expr, Var, cast, const, load, offset
from pybuild.ops.shape import pad_fill
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


def key(axes: Sequence[Axis]) -> str:
    """What distinguishes the code of two copies."""
    return f"{len(axes)}d" + ("_strided" if _strided(axes) else "")


def _strided(axes: Sequence[Axis]) -> bool:
    return (axes[-1].x_step, axes[-1].y_step) != (1, 1)


def copy_axes(
    k: Builder, axes: Sequence[Axis], x: Expr, y: Expr, mark: str = ""
) -> None:
    """The loops of a copy from x to y; its numbers become arguments."""
    bound = []
    for depth, axis in enumerate(axes):
        size = k.arg(f"size{mark}{depth}", axis.size)
        inner = depth + 1 == len(axes) and not _strided(axes)
        x_step: Expr = const(1) if inner else k.arg(f"x_step{mark}{depth}", axis.x_step)
        y_step: Expr = const(1) if inner else k.arg(f"y_step{mark}{depth}", axis.y_step)
        bound.append((size, x_step, y_step))
    _copy_loop(k, bound, x, y)


def _copy_loop(
    k: Builder, bound: Sequence[tuple[Expr, Expr, Expr]], x: Expr, y: Expr
) -> None:
    size, x_step, y_step = bound[0]
    with k.loop("i", size) as i:
        if len(bound) == 1:
            k.store(y, i * y_step, load(x, i * x_step))
        else:
            inner_x = k.let("from", offset(x, i * x_step))
            inner_y = k.let("to", offset(y, i * y_step))
            _copy_loop(k, bound[1:], inner_x, inner_y)


def element(tensor: Tensor) -> DType:
    """The type that moves a tensor's elements: only their size counts."""
    kinds = (DType.FLOAT32, *_BY_SIZE.values())
    return tensor.dtype if tensor.dtype in kinds else _BY_SIZE[tensor.dtype.bytes]


def raw(tensor: Tensor) -> DType:
    """The integer type of the same size."""
    return _BY_SIZE[tensor.dtype.bytes]


def _moved(
    name: str, axes: Sequence[Axis], begin: int, operands: Operands, y: Tensor
) -> Candidate:
    """One input copied to the whole output, from element `begin` on."""
    joined = join(axes)
    elem = element(y)
    k = Builder(f"{name}_{short(elem)}_{key(joined)}")
    x: Expr = k.row("x", operands.numbers[0], elem)
    to = k.row("y", 0, elem, writable=True)
    if name == "slice":
        x = k.let("first", offset(x, k.arg("begin", begin)))
    copy_axes(k, joined, x, to)
    return offer(k, operands, cost=_COST * y.size)


def copy(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, element by element: copy, reshape."""
    y = graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    if graph.tensor(node.inputs[0]).shape != y.shape:
        operands = whole_operands(node, graph)
    count = y.size // (operands.images * operands.bands)
    return [_moved("copy", (Axis(count, 1, 1),), 0, operands, y)]


def assign(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, in one piece: all has been read that was in y."""
    y = graph.tensor(node.output)
    axes = (Axis(y.size, 1, 1),)
    return [_moved("copy", axes, 0, whole_operands(node, graph), y)]


def transpose(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y[i0,i1,...] = x[the same indices, axis perm[n] of x for axis n of y]."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    steps = row_major(x.shape)
    axes = [
        Axis(x.shape[p], steps[p], to)
        for p, to in zip(node.attrs["perm"], row_major(y.shape), strict=True)
    ]
    return [_moved("transpose", axes, 0, whole_operands(node, graph), y)]


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
    return [_moved("slice", axes, begin, whole_operands(node, graph), y)]


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
    shapes = "_".join(key(p) for p in parts)
    if len(set(map(key, parts))) == 1:
        shapes = key(parts[0])
    k = Builder(f"concat{len(parts)}_{short(elem)}_{shapes}")
    to: Expr = k.row("y", 0, elem, writable=True)
    for index, (part, chunk) in enumerate(zip(parts, chunks, strict=True)):
        x = k.row(f"x{index}", operands.numbers[index], elem)
        copy_axes(k, part, x, to, f"{index}_")
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
    return [_pad_kernel(operands, (shape, around, before), value, element(y), y)]


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
    elem: DType,
    y: Tensor,
) -> Candidate:
    """Fills the output, then copies the input into it."""
    shape, around, before = shapes
    to_steps = row_major(around)
    axes = join(
        [
            Axis(size, step, to)
            for size, step, to in zip(shape, row_major(shape), to_steps, strict=True)
        ]
    )
    begin = sum(b * s for b, s in zip(before, to_steps, strict=True))
    k = Builder(f"pad_{short(elem)}_{key(axes)}")
    x = k.row("x", operands.numbers[0], elem)
    to = k.row("y", 0, elem, writable=True)
    tables: tuple[Packed, ...] = ()
    stored = np.full(1, value, y.dtype.numpy).view(elem.numpy)
    if elem.is_float or elem.bytes == 8:
        tables = (Packed("border", stored),)
        border: Var = k.let("border", load(k.row("value", operands.after, elem)))
    else:
        border = k.let("border", cast(k.arg("value", int(stored[0])), elem))
    with k.loop("i", k.arg("count", math.prod(around))) as i:
        k.store(to, i, border)
    inner = k.let("inner", offset(to, k.arg("begin", begin)))
    copy_axes(k, axes, x, inner)
    return offer(k, operands, tables=tables, cost=_COST * y.size)
