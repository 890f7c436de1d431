"""What each iteration of a loop adds to the names that it changes.

A loop can begin in its middle if these sums are known: pointers that walk along, and
counters. Values that depend on data, or on earlier iterations otherwise, have none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from pybuild.ir.loop import (
    Assign,
    Binary,
    Const,
    Expr,
    For,
    If,
    Let,
    Offset,
    PointerType,
    Stmt,
    Var,
    const,
    i32,
    offset,
)
from pybuild.ir.loop_verify import changed

# a sum of products: the names of each, and how often it counts
Sum = dict[tuple[str, ...], int]
# the name of a value that is not such a sum
_OPEN = "?"


def carried(loop: For) -> list[Var]:
    """The names from before the loop that it changes, in their order."""
    inside = list(_inside(loop.body))
    own = {s.var.name for s in inside if isinstance(s, Let)}
    found: dict[str, Var] = {}
    for stmt in inside:
        if isinstance(stmt, Assign) and stmt.var.name not in own:
            found[stmt.var.name] = stmt.var
    return list(found.values())


def _inside(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements of a block but those of its functions, whose names are others."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, For | If):
            yield from _inside(stmt.body)
        if isinstance(stmt, If):
            yield from _inside(stmt.otherwise)


def steps_of(loop: For) -> dict[Var, Sum] | None:
    """The sum that each iteration adds to each name from before the loop that it
    changes; None if one of them has none."""
    moved = _Moved()
    names = carried(loop)
    found = moved.added(loop, {}, [var.name for var in names])
    made = {var: found[var.name] for var in names}
    return None if any(map(_is_open, made.values())) else made


def ahead(var: Var, step: Sum, by: int, begin: Expr) -> Assign:
    """Moves a name as the iterations before `begin` do; the loop counts by `by`."""
    more: Expr = i32(0)
    for names, factor in sorted(step.items()):
        exact = factor % by == 0
        turns = begin if exact else begin / by
        term = turns * const(factor // by if exact else factor)
        for name in names:
            term = term * Var(name, begin.type)
        more = more + term
    if isinstance(var.type, PointerType):
        return Assign(var, offset(var, more))
    return Assign(var, var + more)


def _is_open(found: Sum) -> bool:
    return any(name.startswith(_OPEN) for names in found for name in names)


def _plus(a: Sum, b: Sum, times: int = 1) -> Sum:
    made = dict(a)
    for names, factor in b.items():
        total = made.get(names, 0) + factor * times
        if total:
            made[names] = total
        else:
            made.pop(names, None)
    return made


def _times(a: Sum, b: Sum) -> Sum:
    made: Sum = {}
    for (one, f), (other, g) in itertools.product(a.items(), b.items()):
        made = _plus(made, {tuple(sorted(one + other)): f * g})
    return made


class _Moved:
    """Walks through a loop's body with names as unknowns."""

    def __init__(self) -> None:
        self.fresh: Iterator[int] = itertools.count()

    def unknown(self) -> Sum:
        return {(f"{_OPEN}{next(self.fresh)}",): 1}

    def added(
        self, loop: For, known: dict[str, Sum], names: list[str]
    ) -> dict[str, Sum]:
        begun: dict[str, Sum] = {name: {(name,): 1} for name in names}
        inside: dict[str, Sum] = {**known, **begun, loop.var.name: self.unknown()}
        self.block(loop.body, inside)
        made = {name: _plus(inside[name], begun[name], -1) for name in names}
        free = {n for n, sum_ in made.items() if not self._uses(sum_, set(names))}
        return {name: made[name] if name in free else self.unknown() for name in names}

    def _uses(self, found: Sum, names: set[str]) -> bool:
        return any(names & set(each) for each in found)

    def block(self, body: tuple[Stmt, ...], known: dict[str, Sum]) -> None:
        for stmt in body:
            match stmt:
                case Let(var, value) | Assign(var, value):
                    known[var.name] = self.value(value, known)
                case If(_, first, second):
                    one, other = dict(known), dict(known)
                    self.block(first, one)
                    self.block(second, other)
                    for name in changed(first + second):
                        same = name in one and one.get(name) == other.get(name)
                        known[name] = one[name] if same else self.unknown()
                case For():
                    self.loop(stmt, known)

    def loop(self, loop: For, known: dict[str, Sum]) -> None:
        names = [var.name for var in carried(loop)]
        added = self.added(loop, known, names)
        turns = self.turns(loop, known)
        for name in names:
            before = known.get(name, {(name,): 1})
            step = added[name]
            known[name] = self.unknown()
            if not _is_open(step) and not self._uses(step, changed(loop.body)):
                known[name] = _plus(before, _times(step, turns)) if step else before

    def turns(self, loop: For, known: dict[str, Sum]) -> Sum:
        span = _plus(self.value(loop.stop, known), self.value(loop.start, known), -1)
        if loop.step == 1:
            return span
        if set(span) <= {()}:
            return {(): -(-span.get((), 0) // loop.step)}
        return self.unknown()

    def value(self, expr: Expr, known: dict[str, Sum]) -> Sum:
        match expr:
            case Const(int() as value):
                return {(): value} if value else {}
            case Var(name):
                return known.get(name, {(name,): 1})
            case Offset(pointer, index):
                return _plus(self.value(pointer, known), self.value(index, known))
            case Binary("+", a, b):
                return _plus(self.value(a, known), self.value(b, known))
            case Binary("-", a, b):
                return _plus(self.value(a, known), self.value(b, known), -1)
            case Binary("*", a, b):
                return _times(self.value(a, known), self.value(b, known))
        return self.unknown()
