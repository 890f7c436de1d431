"""Kernels that only move elements: transpose, slice, concat, copy.

All are one strided copy, as deep as the layer needs after joining axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import INT8, Expr, const, load, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import (
    Operands,
    elementwise_operands,
    offer,
    short,
    whole_operands,
)
from pybuild.kernels.moves.blocks import WORD, Blocks, ways
from pybuild.records import dataclass
from pybuild.targets.target import Target

_BY_SIZE = {1: INT8, 2: DType.INT16, 4: DType.INT32, 8: DType.INT64}
_COST = 6  # instructions an element, about


@dataclass(frozen=True)
class Axis:
    """One loop of a copy: its iterations, and the step of each pointer, in elements."""

    size: int
    x_step: int
    y_step: int


def row_major(shape: Sequence[int]) -> list[int]:
    """Return the distance, in elements, between neighbours along each axis."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def join(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """Return the fewest loops that copy the same elements in the same order."""
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
class Copy:
    """One way to copy: joined loops over elements of a type, and the blocks in which
    the innermost goes; None: element by element."""

    axes: tuple[Axis, ...]
    elem: DType
    by: Blocks | None = None

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two copies."""
        kind = f"{len(self.axes)}d" + ("_strided" if _strided(self.axes) else "")
        return kind if self.by is None else f"{kind}_{self.by.key}"

    @property
    def order(self) -> str:
        """`key` for readers of the C."""
        loops = f"{len(self.axes)} loop{'s' * (len(self.axes) > 1)}, y forward"
        if _strided(self.axes):
            return f"{loops}, gaps between the elements of the innermost"
        return loops if self.by is None else f"{loops}, the innermost {self.by.words}"

    @property
    def cost(self) -> int:
        """The approximate instructions."""
        rows = math.prod(axis.size for axis in self.axes[:-1])
        each = _COST * self.axes[-1].size if self.by is None else self.by.cost + 4
        return rows * each


def copies(target: Target, axes: Sequence[Axis], elem: DType) -> list[Copy]:
    """The ways to copy, little code first. Where blocks of bytes move, all is bytes."""
    joined = join(axes)
    size = joined[-1].size * elem.bytes
    found = [] if elem.bytes > WORD or _strided(joined) else ways(target, size)
    if not found:
        return [Copy(joined, elem)]
    outer = tuple(
        Axis(a.size, a.x_step * elem.bytes, a.y_step * elem.bytes) for a in joined[:-1]
    )
    return [Copy((*outer, Axis(size, 1, 1)), INT8, by) for by in found]


def _width(elem: DType) -> str:
    return f"{elem.bytes} byte{'s' * (elem.bytes > 1)}"


def _strided(axes: Sequence[Axis]) -> bool:
    return (axes[-1].x_step, axes[-1].y_step) != (1, 1)


def copy_axes(k: Builder, copy: Copy, x: Expr, y: Expr, mark: str = "") -> None:
    """The loops of a copy from x to y; its numbers become arguments."""
    axes, by = copy.axes, copy.by
    bound = []
    for depth, axis in enumerate(axes):
        size = k.arg(f"size{mark}{depth}", axis.size)
        inner = depth + 1 == len(axes) and not _strided(axes)
        x_step: Expr = const(1) if inner else k.arg(f"x_step{mark}{depth}", axis.x_step)
        y_step: Expr = const(1) if inner else k.arg(f"y_step{mark}{depth}", axis.y_step)
        bound.append((size, x_step, y_step))
    row = None if by is None else lambda *given: by.move(k, *given)
    _copy_loop(k, bound, x, y, row)


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
) -> list[Candidate]:
    """One input copied to the whole output, from element `begin` on, which is an
    argument; without it from the first."""
    found = []
    for one in copies(target, axes, element(y)):
        doc = told(f"{name} of elements of {_width(one.elem)}", one.order)
        k = Builder(f"{name}_{short(one.elem)}_{one.key}", doc)
        x: Expr = k.row("x", operands.numbers[0], one.elem)
        to = k.row("y", 0, one.elem, writable=True)
        if begin is not None:
            first = begin * element(y).bytes // one.elem.bytes
            x = k.let("first", offset(x, k.arg("begin", first)))
        copy_axes(k, one, x, to)
        calls = operands.images * operands.bands
        found.append(offer(k, operands, cost=one.cost * calls))
    return found


def copy(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, element by element: copy, reshape."""
    y = graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    if graph.tensor(node.inputs[0]).shape != y.shape:
        operands = whole_operands(node, graph)
    count = y.size // (operands.images * operands.bands)
    return _moved("copy", (Axis(count, 1, 1),), None, operands, y, target)


def assign(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = x, in one piece: all has been read that was in y."""
    y = graph.tensor(node.output)
    axes = (Axis(y.size, 1, 1),)
    return _moved("copy", axes, None, whole_operands(node, graph), y, target)


def transpose(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y[i0,i1,...] = x[the same indices, axis perm[n] of x for axis n of y]."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    steps = row_major(x.shape)
    axes = [
        Axis(x.shape[p], steps[p], to)
        for p, to in zip(node.attrs["perm"], row_major(y.shape), strict=True)
    ]
    if node.attrs["perm"][:2] == (0, 1) and len(axes) == 4:  # each row by itself
        operands = elementwise_operands(node, graph)
        first = 2 if operands.bands > 1 else 0
        return _moved("transpose", axes[first:], None, operands, y, target)
    return _moved("transpose", axes, None, whole_operands(node, graph), y, target)


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
    if len(axes) == 4 and x.shape[:2] == y.shape[:2]:  # each row by itself
        operands = elementwise_operands(node, graph)
        first = 2 if operands.bands > 1 else 0
        return _moved("slice", axes[first:], begin, operands, y, target)
    return _moved("slice", axes, begin, whole_operands(node, graph), y, target)


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
    axes = [(Axis(outer, c, sum(chunks)), Axis(c, 1, 1)) for c in chunks]
    each = [copies(target, one, elem) for one in axes]
    if len({one[0].elem for one in each}) > 1:  # some go element by element
        each = [[Copy(join(one), elem)] for one in axes]
    found = [[one[0] for one in each]]
    if any(len(one) > 1 for one in each):
        found.append([one[-1] for one in each])
    return [_joined(parts, chunks, operands, elem) for parts in found]


def _joined(
    parts: Sequence[Copy], chunks: Sequence[int], operands: Operands, elem: DType
) -> Candidate:
    """One way to copy each input."""
    keys = [part.key for part in parts]
    shapes = "_".join(keys if len(set(keys)) > 1 else keys[:1])
    kind = parts[0].elem
    what = f"{len(parts)} inputs one after the other, elements of {_width(kind)}"
    doc = told(what, "input by input, each from its first element to its last")
    k = Builder(f"concat{len(parts)}_{short(kind)}_{shapes}", doc)
    to: Expr = k.row("y", 0, kind, writable=True)
    for index, (part, chunk) in enumerate(zip(parts, chunks, strict=True)):
        x = k.row(f"x{index}", operands.numbers[index], kind)
        copy_axes(k, part, x, to, f"{index}_")
        if index + 1 < len(parts):
            step = chunk * elem.bytes // kind.bytes
            to = k.let("next", offset(to, k.arg(f"chunk{index}", step)))
    cost = sum(part.cost for part in parts) * operands.images * operands.bands
    return offer(k, operands, cost=cost)


def shift(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """x moved on along an axis, the new elements behind it; y may lie over x."""
    y, operands = graph.tensor(node.output), whole_operands(node, graph)
    axis, elem = int(node.attrs["axis"]), element(y)
    whole = math.prod(y.shape[axis:])
    new = math.prod(graph.tensor(node.inputs[1]).shape[axis:])
    outer = math.prod(y.shape[:axis])
    old = (Axis(outer, whole, whole), Axis(whole - new, 1, 1))
    parts = old, (Axis(outer, new, whole), Axis(new, 1, 1))
    each = [copies(target, one, elem) for one in parts]
    kinds = {one[0].elem for one in each}
    # a block reads all its bytes before it writes some, that others still have to read
    safe = [o for o in each[0] if o.by is None or o.by.bytes <= new * elem.bytes]
    if len(kinds) > 1 or not safe:
        return [
            _shifted([Copy(join(one), elem) for one in parts], whole, new, operands)
        ]
    found = [[safe[0], each[1][0]]]
    if len(safe) > 1 or len(each[1]) > 1:
        found.append([safe[-1], each[1][-1]])
    size = elem.bytes // safe[0].elem.bytes
    return [_shifted(pair, whole * size, new * size, operands) for pair in found]


def _shifted(
    parts: Sequence[Copy], whole: int, new: int, operands: Operands
) -> Candidate:
    """whole, new  elements along the axis, and how many of them are new"""
    kind, keys = parts[0].elem, [part.key for part in parts]
    what = f"x moved on, new elements behind it, elements of {_width(kind)}"
    doc = told(what, "x from its first element to its last, then the new ones")
    k = Builder(f"shift_{short(kind)}_{'_'.join(keys)}", doc)
    to = k.row("y", 0, kind, writable=True)
    x, added = (
        k.row(name, n, kind)
        for name, n in zip(("x", "new"), operands.numbers, strict=True)
    )
    from_ = k.let("from", offset(x, k.arg("moved", new)))
    copy_axes(k, parts[0], from_, to, "0_")
    behind = k.let("behind", offset(to, k.arg("kept", whole - new)))
    copy_axes(k, parts[1], added, behind, "1_")
    cost = sum(part.cost for part in parts)
    return offer(k, operands, in_place=(0,), ordered=True, cost=cost)
