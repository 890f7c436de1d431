"""A kernel that computes a slice of what it computed: loops from a number to another.

All stores to outputs must lie in loops of the same length; these get arguments for
where they begin and end. The rest each core does for itself, in scratch of its own.
Whether slices may be computed at the same time is for disjoint.py to prove.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pybuild.cores.steady import ahead, steps_of
from pybuild.ir.loop import (
    FOLDED,
    INT32,
    Assign,
    Binary,
    Const,
    Expr,
    For,
    Func,
    If,
    Let,
    Offset,
    Part,
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Var,
    offset,
    pointer_type,
)
from pybuild.ir.loop_verify import names_in, operands, statements, verify
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.specialise import rows_of
from pybuild.records import dataclass

BEGIN, END, OWN = (
    Var("slice_begin", INT32),
    Var("slice_end", INT32),
    Var("scratch_begin", INT32),
)
_Path = tuple[int, ...]


@dataclass(frozen=True)
class Sliced:
    """A kernel with arguments for its slice, and for where its scratch begins.

    extent  the number at which the last slice ends; unit: slices begin at multiples
    """

    func: Func
    extent: int
    unit: int

    def shares(self, cores: int) -> list[tuple[int, int]]:
        """The slice of each core, as equal as they can be."""
        units = -(-self.extent // self.unit)
        ends = [units * core // cores * self.unit for core in range(cores)]
        return list(zip(ends, [*ends[1:], self.extent], strict=True))


@dataclass(frozen=True)
class _Turn:
    """A loop around a store: where it is in the kernel, and its numbers."""

    path: _Path
    start: int | None
    stop: int | None
    step: int


def sliced(candidate: Candidate) -> Iterator[Sliced]:
    """The ways to slice the kernel of a candidate, as outer loops come first."""
    func = candidate.func
    assert func is not None
    found = _Stores(candidate)
    if not found.stacks:
        return
    for extent in dict.fromkeys(t.stop for t in found.stacks[0] if t.start == 0):
        chosen = [
            next((t for t in stack if (t.start, t.stop) == (0, extent)), None)
            for stack in found.stacks
        ]
        loops = {turn.path: turn for turn in chosen if turn is not None}
        if extent is None or None in chosen:
            continue
        unit = math.lcm(*(turn.step for turn in loops.values()))
        turns = (turn for stack in found.stacks for turn in stack)
        once = frozenset(t.path for t in turns if (t.start, t.stop) == (0, 1))
        made = _rewritten(func, frozenset(loops), found.scratch_rows(), once)
        if made is not None and extent > unit:
            yield Sliced(made, extent, unit)


class _Stores:
    """The loops around each store to an output, outermost first."""

    def __init__(self, candidate: Candidate) -> None:
        func = candidate.func
        assert func is not None
        accesses = (*candidate.outputs, *candidate.inputs)
        self.func, self.args = func, candidate.args
        self.scratch = sum(a.window for a in accesses) + len(candidate.constants)
        self.outputs = sum(a.window for a in candidate.outputs)
        self.stacks: list[list[_Turn]] = []
        arrays = {var.name: False for var, _ in func.arrays}
        values = dict(zip((a.name for a in func.args), candidate.args, strict=True))
        self.block(func.body, (), [], dict(values), arrays)

    def scratch_rows(self) -> list[Row]:
        """The pointers to scratch that the kernel binds."""
        names = (a.name for a in self.func.args)
        values: dict[str, int | None] = dict(zip(names, self.args, strict=True))
        numbers = ((row, _number(row.index, values)) for row in rows_of(self.func))
        return [row for row, at in numbers if at is not None and at >= self.scratch]

    def block(
        self,
        body: tuple[Stmt, ...],
        path: _Path,
        turns: list[_Turn],
        values: dict[str, int | None],
        outer: dict[str, bool],
    ) -> None:
        """values  of names, where they are known; outer: may a pointer be an output"""
        for number, stmt in enumerate(body):
            here = (*path, number)
            match stmt:
                case Let(var, value) | Assign(var, value):
                    if isinstance(var.type, PointerType):
                        outer[var.name] = self.is_output(value, values, outer)
                    known = _number(value, values)
                    values[var.name] = known if isinstance(stmt, Let) else None
                case Store(pointer):
                    if self.is_output(pointer, values, outer):
                        self.stacks.append(list(turns))
                case For(var, start, stop, step, inner):
                    for each in statements(inner):
                        if isinstance(each, Assign):
                            values[each.var.name] = None
                    ends = _number(start, values), _number(stop, values)
                    values[var.name] = None
                    turn = _Turn(here, *ends, step)
                    self.block(inner, (*here, 0), [*turns, turn], values, outer)
                case If(_, first, second):
                    self.block(first, (*here, 0), turns, values, outer)
                    self.block(second, (*here, 1), turns, values, outer)
                case Part(_, params, args, inner):
                    pairs = list(zip(params, args, strict=True))
                    given = {p.name: _number(a, values) for p, a in pairs}
                    to = {
                        p.name: self.is_output(a, values, outer)
                        for p, a in pairs
                        if isinstance(p.type, PointerType)
                    }
                    self.block(inner, (*here, 0), turns, given, to)

    def is_output(
        self, expr: Expr, values: Mapping[str, int | None], outer: Mapping[str, bool]
    ) -> bool:
        match expr:
            case Var(name):
                return outer[name]
            case Offset(pointer):
                return self.is_output(pointer, values, outer)
            case Select(_, a, b):
                either = self.is_output(a, values, outer)
                return either or self.is_output(b, values, outer)
            case Row(index, kind):
                at = _number(index, values)
                return kind.writable and (at is None or at < self.outputs)
        return True


def _number(expr: Expr, values: Mapping[str, int | None]) -> int | None:
    match expr:
        case Const(int() as value):
            return value
        case Var(name):
            return values.get(name)
        case Binary(op, a, b):
            one, other = _number(a, values), _number(b, values)
            if one is None or other is None or (op in "/%" and not other):
                return None
            return int(FOLDED[op](one, other))
    return None


def _rewritten(
    func: Func,
    loops: frozenset[_Path],
    scratch: Sequence[Row],
    once: frozenset[_Path],
) -> Func | None:
    """The kernel with these loops from BEGIN to END, and these pointers moved by OWN;
    None if a loop cannot begin in its middle. once: loops of a single iteration."""
    body = _block(func.body, (), loops, _Around(once))
    if body is None:
        return None
    made = replace(
        func,
        name=f"{func.name}_slice",
        args=(*func.args, BEGIN, END, OWN),
        body=body,
    )
    body = tuple(one for stmt in body for one in _own(stmt, scratch))
    made = replace(made, body=body)
    try:
        verify(made)
    except ValueError:
        return None
    return made


def _own(stmt: Stmt, scratch: Sequence[Row]) -> Iterator[Stmt]:
    """A statement that binds scratch, so that the name is of the core's own."""
    if not (isinstance(stmt, Let) and stmt.value in scratch):
        yield stmt
        return
    whole = Var(f"{stmt.var.name}_of_all", stmt.var.type)
    size = pointer_type(whole).elem.bytes
    yield Let(whole, stmt.value)
    yield Let(stmt.var, offset(whole, OWN >> (size.bit_length() - 1)))


@dataclass(frozen=True)
class _Around:
    """What is around a statement: the blocks that go on behind it, outermost first, and
    its number in each. A loop of a single iteration belongs to the block around it.

    once  these loops; open: names of before the first block may go on behind it
    """

    once: frozenset[_Path]
    blocks: tuple[tuple[tuple[Stmt, ...], int], ...] = ()
    open: bool = False

    def at(self, body: tuple[Stmt, ...], number: int) -> _Around:
        return replace(self, blocks=(*self.blocks, (body, number)))

    def inside(self, stmt: Stmt, here: _Path) -> _Around:
        """Around the first statement of its body."""
        is_once = isinstance(stmt, For) and here in self.once
        return self if is_once else _Around(self.once, (), True)

    def goes_on(self, steps: Mapping[Var, object]) -> bool:
        """True if a name that the loop changes is used behind it."""
        names = {var.name for var in steps}
        for body, number in reversed(self.blocks):
            behind = statements(body[number + 1 :])
            if any(names & names_in(e) for stmt in behind for e in operands(stmt)):
                return True
            names -= {s.var.name for s in body[:number] if isinstance(s, Let)}
        return self.open and bool(names)


def _block(
    body: tuple[Stmt, ...], path: _Path, loops: frozenset[_Path], around: _Around
) -> tuple[Stmt, ...] | None:
    if not any(loop[: len(path)] == path for loop in loops):
        return body
    found: list[Stmt] = []
    for number, stmt in enumerate(body):
        here = (*path, number)
        if here in loops:
            assert isinstance(stmt, For)
            steps = steps_of(stmt)
            if steps is None or around.at(body, number).goes_on(steps):
                return None
            moved = [(v, step) for v, step in steps.items() if step]
            found += [ahead(v, step, stmt.step, BEGIN) for v, step in moved]
            found.append(replace(stmt, start=BEGIN, stop=END))
            continue
        inside = [loop for loop in loops if loop[: len(here)] == here]
        if not inside:
            found.append(stmt)
            continue
        made = _inside(stmt, here, loops, around.at(body, number))
        if made is None:
            return None
        found.append(made)
    return tuple(found)


def _inside(
    stmt: Stmt, here: _Path, loops: frozenset[_Path], around: _Around
) -> Stmt | None:
    assert isinstance(stmt, For | If | Part)
    inner = around.inside(stmt, here)
    body = _block(stmt.body, (*here, 0), loops, inner)
    if body is None:
        return None
    match stmt:
        case If():
            other = _block(stmt.otherwise, (*here, 1), loops, inner)
            return None if other is None else replace(stmt, body=body, otherwise=other)
        case Part(name, params, args):
            own = [v for v in (BEGIN, END) if v not in params]
            name = f"{name}_slice"
            given = (*params, *own), (*args, *own)
            return Part(name, *given, body, stmt.in_place, stmt.doc)
    return replace(stmt, body=body)
