"""map: one loop nest over broadcast inputs, and the expression of every function.

The twin of ops/map.py's table of meanings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import UINT32, Expr, const, load, offset
from pybuild.kernels.any_type.elements import computed, memory, read, write
from pybuild.kernels.any_type.expressions import apply, number_form
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import (
    Operands,
    elementwise_operands,
    inner_shape,
    offer,
    short,
    whole_operands,
)
from pybuild.kernels.layers.largest import largest
from pybuild.kernels.math import angles
from pybuild.kernels.moves.shape import raw
from pybuild.records import dataclass
from pybuild.targets.target import Target

_COST = 8


@dataclass(frozen=True)
class Axis:
    """One loop: its iterations, and the step of each pointer, in elements."""

    size: int
    steps: tuple[int, ...]


def join(shape: Sequence[int], inputs: Sequence[Sequence[int]]) -> tuple[Axis, ...]:
    """Return the fewest loops over a broadcast; a pointer's step is 0 where its operand
    has one element."""
    rank = len(shape)
    steps = []
    for own in (shape, *inputs):
        full = (1,) * (rank - len(own)) + tuple(own)
        row = [math.prod(full[i + 1 :]) for i in range(rank)]
        steps.append([0 if full[i] == 1 else row[i] for i in range(rank)])
    joined: list[Axis] = []
    for depth, size in enumerate(shape):
        if size == 1:
            continue
        axis = Axis(size, tuple(s[depth] for s in steps))
        if joined and joined[-1].steps == tuple(size * s for s in axis.steps):
            axis = Axis(joined.pop().size * size, axis.steps)
        joined.append(axis)
    return tuple(joined) or (Axis(1, (1,) * len(steps)),)


def nest(
    k: Builder,
    axes: Sequence[Axis],
    pointers: Sequence[Expr],
    body: Callable[[Sequence[Expr], Sequence[Expr]], None],
    mark: str = "",
) -> None:
    """Loops over `axes`; `body` gets the pointers and their indices."""

    def row(at: Sequence[Expr], size: Expr, steps: Sequence[Expr]) -> None:
        with k.loop("i", size) as i:
            body(at, [i * step for step in steps])

    rows(k, axes, pointers, row, mark)


def rows(
    k: Builder,
    axes: Sequence[Axis],
    pointers: Sequence[Expr],
    row: Callable[[Sequence[Expr], Expr, Sequence[Expr]], None],
    mark: str = "",
) -> None:
    """Loop over `axes` but the last; `row` receives the pointers, and the last axis's
    size and steps. Steps are 0, 1 in the innermost loop, or arguments."""
    bound = []
    for depth, axis in enumerate(axes):
        size = k.arg(f"size{mark}{depth}", axis.size)
        inner = depth + 1 == len(axes)
        steps = [
            const(s) if s == 0 or (s == 1 and inner)
            else k.arg(f"step{mark}{depth}_{n}", s)
            for n, s in enumerate(axis.steps)
        ]  # fmt: skip
        bound.append((size, steps))
    _nested(k, bound, pointers, row)


def _nested(
    k: Builder,
    bound: Sequence[tuple[Expr, Sequence[Expr]]],
    pointers: Sequence[Expr],
    row: Callable[[Sequence[Expr], Expr, Sequence[Expr]], None],
) -> None:
    size, steps = bound[0]
    if len(bound) == 1:
        row(pointers, size, steps)
        return
    with k.loop("i", size) as i:
        moved = [
            p if step == const(0) else k.let("at", offset(p, i * step))
            for p, step in zip(pointers, steps, strict=True)
        ]
        _nested(k, bound[1:], moved, row)


def form(axes: Sequence[Axis]) -> str:
    """The key that distinguishes the code of two loop nests."""
    rows = (
        "".join("0" if s == 0 else "1" if s == 1 else "s" for s in axis.steps)
        for axis in axes
    )
    return "_".join(
        row if depth + 1 == len(axes) else row.replace("1", "s")
        for depth, row in enumerate(rows)
    )


def _memory(tensor: Tensor) -> DType:
    return memory(tensor.dtype)


class Way(Enum):
    """How an angle is reduced; the value is a part of the kernel's name."""

    USUAL = ""  # one expression, as of any other function
    NEAR = "_near"  # the graph says that it is small
    ANY = "_any"  # by the bits of 2 / pi, where it is not


def _way(name: str, node: Node, graph: Graph) -> Way:
    kind = graph.tensor(node.inputs[0]).dtype
    if name not in angles.ANGLES or kind not in (DType.FLOAT32, DType.BFLOAT16):
        return Way.USUAL
    return Way.NEAR if largest(graph, node.inputs[0]) < angles.NEAR else Way.ANY


def _operands(name: str, node: Node, graph: Graph) -> Operands:
    """A cast stands before or behind layers that go by rows, and goes along."""
    by_rows = name == "cast"
    return (elementwise_operands if by_rows else whole_operands)(node, graph)


def element_map(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for map."""
    name: str = node.attrs["fn"]
    y = graph.tensor(node.output)
    inputs = [graph.tensor(n) for n in node.inputs]
    operands = _operands(name, node, graph)
    shapes = [inner_shape(t, operands, len(y.shape)) for t in (y, *inputs)]
    axes = join(shapes[0], shapes[1:])
    kinds = "_".join(short(t.dtype) for t in inputs)
    kinds += f"_{short(y.dtype)}" if name in ("bits", "cast") else ""
    given = " x ".join(t.dtype.value for t in inputs)
    doc = told(
        f"y = {name} of elements, {given} to {y.dtype.value}",
        f"{len(axes)} loop{'s' * (len(axes) > 1)}, y forward; operands are broadcast",
    )
    way = _way(name, node, graph)
    k = Builder(f"{number_form(name, node)}_{kinds}{way.value}_{form(axes)}", doc)
    bits: Expr | None = None
    tables: tuple[Packed, ...] = ()
    if way is Way.ANY:
        bits = k.row("bits", operands.after, UINT32)
        order = "2 / pi, the highest bits first"
        tables = (Packed("quarters", angles.quarters_table(), order=order),)
    seen = raw if name == "bits" else _memory
    pointers = [k.row("y", 0, seen(y), writable=True)]
    for number, tensor in zip(operands.numbers, inputs, strict=True):
        pointers.append(k.row("x", number, seen(tensor)))

    def body(at: Sequence[Expr], index: Sequence[Expr]) -> None:
        if name == "bits":
            k.store(at[0], index[0], load(at[1], index[1]))
            return
        values = [
            read(p, i, t.dtype)
            for p, i, t in zip(at[1:], index[1:], inputs, strict=True)
        ]
        if way is Way.USUAL:
            made = apply(number_form(name, node), values, computed(y.dtype))
        else:
            made = angles.value(k, name, values[0], bits)
        write(k, at[0], index[0], made, y.dtype)

    nest(k, axes, pointers, body)
    over = tuple(
        position
        for position, tensor in enumerate(inputs)
        if node.inputs[position] not in graph.constants
        and (tensor.shape, tensor.dtype.bytes) == (y.shape, y.dtype.bytes)
        and node.inputs.count(node.inputs[position]) == 1
    )
    return [offer(k, operands, tables=tables, in_place=over, cost=_COST * y.size)]
