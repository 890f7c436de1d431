"""The loops of add, sub and mul: axes are joined where possible; an operand moves along
an axis or stays. Knows no operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.ir.loop import Expr, Var, const, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.records import dataclass

FOUR = 4  # elements that are done together, where there is code for that


def in_a_turn(size: int) -> int:
    """Return the elements of a row per iteration of its loop, processed in fours."""
    return 2 * FOUR if size % (2 * FOUR) == 0 else FOUR


@dataclass(frozen=True)
class Axis:
    """One loop: its iterations, and whether each operand moves along it."""

    size: int
    a: bool
    b: bool

    @property
    def key(self) -> str:
        return "e" if self.a and self.b else "a" if self.a else "b"


Pointers = tuple[Expr, Expr, Expr]  # y, a, b
Innermost = Callable[[Builder, Axis, Expr, Pointers], None]


@dataclass(frozen=True)
class Given:
    """Four neighbouring values of an operand at `pointer`, or one `term` for all of
    them."""

    pointer: Expr | None
    term: Expr | None


@dataclass(frozen=True)
class Arithmetic:
    """What the loops do: the terms of a and b, each hoisted if it can be, and y.

    four  the values of four neighbours, of pointers to them, or terms where an
          operand stays; None: one is made at a time
    """

    a: Callable[[Expr], Expr]
    b: Callable[[Expr], Expr]
    y: Callable[[Expr, Expr], Expr]
    four: Callable[[Given, Given], list[Expr]] | None = None


def join(y: Sequence[int], a: Sequence[int], b: Sequence[int]) -> tuple[Axis, ...]:
    """Return the fewest axes for shapes of one rank."""
    joined: list[Axis] = []
    for size, of_a, of_b in zip(y, a, b, strict=True):
        if size == 1:
            continue
        axis = Axis(size, of_a == size, of_b == size)
        if joined and joined[-1].key == axis.key:
            axis = Axis(joined.pop().size * size, axis.a, axis.b)
        joined.append(axis)
    return tuple(joined) or (Axis(1, True, True),)


def loops(
    k: Builder,
    axes: Sequence[tuple[Axis, Expr]],
    pointers: Pointers,
    last: Innermost,
) -> None:
    """Write `last` inside loops over all other axes."""
    (axis, size), inner = axes[0], axes[1:]
    y, a, b = pointers
    if not inner:
        last(k, axis, size, pointers)
        return
    y_step = _product(k, "y_step", [s for _, s in inner])
    if axis.a:
        a_step = _product(k, "a_step", [s for x, s in inner if x.a])
    if axis.b:
        b_step = _product(k, "b_step", [s for x, s in inner if x.b])
    with k.loop("i", size) as i:
        y = k.let("y_row", offset(y, i * y_step))
        a = k.let("a_row", offset(a, i * a_step)) if axis.a else a
        b = k.let("b_row", offset(b, i * b_step)) if axis.b else b
        loops(k, inner, (y, a, b), last)


def _product(k: Builder, name: str, sizes: Sequence[Expr]) -> Expr:
    total: Expr = const(1)
    for size in sizes:
        total = total * size
    return k.let(name, total) if len(sizes) > 1 else total


def _fours(
    k: Builder,
    size: Expr,
    pointers: Pointers,
    fixed: tuple[Var | None, Var | None],
    values: Callable[[Given, Given], list[Expr]],
    turn: int,
) -> None:
    """Write a row of elements in fours, with `turn` elements per iteration."""
    to = k.let("to", pointers[0])
    moving = [
        None if term is not None else k.let("at", pointer)
        for pointer, term in zip(pointers[1:], fixed, strict=True)
    ]
    with k.loop("j", size, 0, turn, rolled=True):
        for first in range(0, turn, FOUR):
            given = [
                Given(None if at is None else offset(at, first), term)
                for at, term in zip(moving, fixed, strict=True)
            ]
            made = values(given[0], given[1])
            found = [k.let(f"y{first + i}", y) for i, y in enumerate(made)]
            for i, value in enumerate(found):
                k.store(to, first + i, value)
        for at in (*moving, to):
            if at is not None:
                k.assign(at, offset(at, turn))


def innermost(
    k: Builder,
    axis: Axis,
    size: Expr,
    pointers: Pointers,
    arithmetic: Arithmetic,
) -> None:
    """Write the innermost axis, four elements at a time if there is code for that."""
    y, a, b = pointers
    fixed_a = None if axis.a else k.let("a_term", arithmetic.a(load(a)))
    fixed_b = None if axis.b else k.let("b_term", arithmetic.b(load(b)))
    start: Expr = const(0)
    if arithmetic.four is not None and axis.size >= FOUR:
        start = size
        if axis.size % FOUR:
            start = k.let("whole", size / FOUR * FOUR)
        fixed = (fixed_a, fixed_b)
        _fours(k, start, pointers, fixed, arithmetic.four, in_a_turn(axis.size))
        if start is size:
            return
    with k.loop("j", size, start) as j:
        term_a = arithmetic.a(load(a, j)) if fixed_a is None else fixed_a
        term_b = arithmetic.b(load(b, j)) if fixed_b is None else fixed_b
        k.store(y, j, arithmetic.y(term_a, term_b))
