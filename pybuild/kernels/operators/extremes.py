"""map, and of it maximum and minimum of int8 and int16: elements side by side in a
vector (M55) or a word (cores with DSP), else one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    UINT32,
    Expr,
    Intrin,
    cast,
    const,
    i32,
    load,
    offset,
    wide,
)
from pybuild.kernels.any_type import map
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.extremes import (
    MAX8,
    MAX_HALVES,
    MIN4,
    MIN8,
    MIN_BYTES,
    MIN_HALVES,
)
from pybuild.kernels.base.intrin import MAX_BYTES
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.kernels.base.vector_eights import ALL8
from pybuild.kernels.base.vectors import (
    ALL4,
    ALL16,
    MAX4,
    MAX16,
    MIN16,
    bytes_at,
    halves_at,
    words_at,
)
from pybuild.records import dataclass
from pybuild.targets.target import Target

_Pick = tuple[Intrin, Intrin]  # the greater, the less
_EXTREMES = ("maximum", "minimum")
_WORDS_IN_A_TURN = 4


@dataclass(frozen=True)
class Lanes:
    """Elements that are compared together.

    count  of them; turn: of such in a turn of the loop
    read   them at a pointer and an index; spread: one of them to all
    """

    kind: str
    count: int
    turn: int
    pick: _Pick
    read: Callable[[Expr, Expr], Expr]
    spread: Callable[[Expr], Expr]

    @property
    def in_word(self) -> bool:
        return self.kind.startswith("dsp")


def _repeated(value: Expr, mask: int, times: int) -> Expr:
    """The low bits of a number again and again in a word."""
    low = cast(value & mask, UINT32)
    return cast(low * const(times, UINT32), INT32)


def _lanes(tensor: Tensor, size: int, target: Target) -> Lanes | None:
    """The most that fit in a row of that size; None where fewer than four bytes do, or
    the core compares one by one."""
    narrow = tensor.dtype is INT8
    if tensor.dtype not in (INT8, INT16):
        return None
    if "mve" in target.features:
        full = Lanes("mve16", 16, 1, (MAX16, MIN16), bytes_at, ALL16)
        if not narrow:
            full = Lanes("mve8", 8, 1, (MAX8, MIN8), halves_at, ALL8)
        few = Lanes("mve4", 4, 1, (MAX4, MIN4), words_at, ALL4)
        return next((one for one in (full, few) if size >= one.count), None)
    count = 4 if narrow else 2
    if "dsp" not in target.features or size < count:
        return None
    pick = (MAX_BYTES, MIN_BYTES) if narrow else (MAX_HALVES, MIN_HALVES)
    mask, times = (0xFF, 0x01010101) if narrow else (0xFFFF, 0x00010001)
    turn = _WORDS_IN_A_TURN if size >= _WORDS_IN_A_TURN * count else 1
    return Lanes(
        f"dsp{count * turn}", count, turn, pick, wide,
        lambda value: _repeated(value, mask, times),
    )  # fmt: skip


def element_map(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for map."""
    plain = map.element_map(node, graph, target)
    name, y = str(node.attrs["fn"]), graph.tensor(node.output)
    if name not in _EXTREMES:
        return plain
    axes = map.join(y.shape, [graph.tensor(n).shape for n in node.inputs])
    steps, size = axes[-1].steps, axes[-1].size
    lanes = _lanes(y, size, target)
    if lanes is None or steps[0] != 1 or not {*steps[1:]} <= {0, 1}:
        return plain
    return [*plain, _by_lanes(node, graph, axes, lanes, plain[0])]


def _by_lanes(
    node: Node,
    graph: Graph,
    axes: Sequence[map.Axis],
    lanes: Lanes,
    plain: Candidate,
) -> Candidate:
    """The last lanes of a row reach back: what was compared already stays as it is, so
    the output may lie on an operand."""
    name, y = str(node.attrs["fn"]), graph.tensor(node.output)
    operands, size = whole_operands(node, graph), axes[-1].size
    step = lanes.count * lanes.turn
    rest = "_rest" if size % step else ""
    doc = told(
        f"y = {name} of elements, {y.dtype.value}",
        f"{len(axes)} loop{'s' * (len(axes) > 1)}, y forward; operands are broadcast; "
        f"{step} elements in a turn{'; the last reach back' if rest else ''}",
    )
    kind = f"{short(y.dtype)}_{lanes.kind}{rest}"
    k = Builder(f"{name}_{kind}_{map.form(axes)}", doc)
    pointers = [k.row("y", 0, y.dtype, writable=True)]
    pointers += [k.row("x", number, y.dtype) for number in operands.numbers]
    pick = lanes.pick[_EXTREMES.index(name)]
    moves = [step != 0 for step in axes[-1].steps[1:]]

    def row(at: Sequence[Expr], count: Expr, _: Sequence[Expr]) -> None:
        to = k.let("to", at[0])
        given = [
            k.let("from", x) if moving else k.let("all", lanes.spread(i32(load(x))))
            for x, moving in zip(at[1:], moves, strict=True)
        ]
        moving_on = [to, *(x for x, moving in zip(given, moves, strict=True) if moving)]

        def turn() -> None:
            for first in range(0, step, lanes.count):
                values = [
                    lanes.read(x, const(first)) if moving else x
                    for x, moving in zip(given, moves, strict=True)
                ]
                k.store(to, first, pick(*values), wide=lanes.in_word)

        with k.loop("i", count - (step - 1), 0, step, rolled=True):
            turn()
            for pointer in moving_on:
                k.assign(pointer, offset(pointer, step))
        if rest:
            back = k.let("back", count % step - step)
            for pointer in moving_on:
                k.assign(pointer, offset(pointer, back))
            turn()

    map.rows(k, axes, pointers, row)
    cost = plain.cost * 2 // lanes.count
    return offer(k, operands, in_place=plain.in_place, cost=cost)
