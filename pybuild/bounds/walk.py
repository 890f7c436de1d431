"""Walks once through a kernel for all inputs: which bytes its loads and stores reach.

A loop is walked twice: first to see by how much each turn moves what it changes, then
with that for all turns at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from pybuild.bounds.arithmetic import (
    any_of,
    certain,
    compare,
    fitting,
    numeric,
    one_of,
)
from pybuild.bounds.linear import EVERYTHING, Facts, Linear, Steps, unknown
from pybuild.bounds.loops import Move, Turns, moved, towards, turns_of
from pybuild.bounds.values import Access, Address, Memory, Truth, Value, address
from pybuild.dtype import DType
from pybuild.ir.loop import (
    COMPARISONS,
    INT32,
    Assign,
    Binary,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    For,
    Func,
    If,
    Lane,
    Lanes,
    Let,
    Load,
    Offset,
    Part,
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
    children,
    pointer_type,
)
from pybuild.ir.loop_verify import changed, names_in
from pybuild.ir.relevant import leading_to_addresses, reads_memory
from pybuild.records import dataclass

# of loops: what a name stays within is tried so often
MOST_TRIES = 6
# loops of so few turns are walked turn by turn
FEW_TURNS = 4


def accesses(
    func: Func, args: Sequence[int], pointers: Sequence[Memory]
) -> list[Access]:
    """All loads and stores of a kernel on these arguments and pointers."""
    walk = _Walk(tuple(pointers), leading_to_addresses(func))
    for var, value in zip(func.args, args, strict=True):
        walk.known[var.name] = Linear(value)
    for var, length in func.arrays:
        size = length * pointer_type(var).elem.bytes
        walk.known[var.name] = address(Memory(f"array {var.name}", size))
    walk.block(func.body)
    return walk.found or []


@dataclass
class _Walk:
    """At one place of a kernel: what each name holds, and what is known there.

    followed  the names that lead to addresses; others are anything
    found     None: it is not asked what is reached
    """

    pointers: tuple[Memory, ...]
    followed: frozenset[str]
    known: dict[str, Value] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)
    found: list[Access] | None = field(default_factory=list)

    def inside(
        self, more: Iterable[Linear] = (), known: Mapping[str, Value] | None = None
    ) -> _Walk:
        """A walk for a block: facts and names of the block end with it."""
        names = dict(self.known if known is None else known)
        facts = self.facts.inside(*more)
        return _Walk(self.pointers, self.followed, names, facts, self.found)

    # ---- statements ------------------------------------------------------

    def block(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case Let(var, value) | Assign(var, value):
                is_followed = var.name in self.followed
                self.known[var.name] = self.value(value) if is_followed else None
                if not is_followed:
                    self.touch(value)
            case Store(pointer, index, value, _, Expr() as count):
                self.touch(value)
                self.some(pointer, index, count)
            case Store(pointer, index, value, wide):
                self.touch(value)
                to = pointer_type(pointer).elem
                each = isinstance(index.type, VectorType)
                size = to.bytes if each else 4 if wide else _bytes(value.type, to)
                self.reach(pointer, index, to, size, is_store=True)
            case For():
                self.loop(stmt)
            case If(condition, body, otherwise):
                self.branch(condition, body, otherwise)
            case Part(_, params, args, body):
                values = [self.value(arg) for arg in args]
                names = [param.name for param in params]
                called = self.inside(known=dict(zip(names, values, strict=True)))
                called.block(body)

    def branch(
        self, condition: Expr, body: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]
    ) -> None:
        truth = self.truth(condition)
        first, second = self.inside(truth.holds), self.inside(truth.fails)
        first.block(body)
        second.block(otherwise)
        for name in changed(body + otherwise) & set(self.known):
            one, other = first.known[name], second.known[name]
            self.known[name] = one_of(one, other, first.facts, second.facts)

    def some(self, pointer: Expr, index: Expr, count: Expr) -> None:
        """Stores so many elements."""
        lanes = turns_of(Linear(), self.number(count), 1, self.facts)
        if lanes is not None:
            each, to = self.inside(lanes.facts), pointer_type(pointer).elem
            lane = Var("the lane", INT32)
            each.known[lane.name] = lanes.value
            each.reach(pointer, index + lane, to, to.bytes, is_store=True)

    def loop(self, loop: For) -> None:
        start, stop = self.number(loop.start), self.number(loop.stop)
        turns = turns_of(start, stop, loop.step, self.facts)
        if turns is None:
            return
        count = turns.count.known
        if count is not None and count <= FEW_TURNS:
            for turn in range(count):
                self.known[loop.var.name] = start.plus(Linear(turn * loop.step))
                self.block(loop.body)
            return
        moves = self.moves(loop, turns)
        each = self.inside(turns.facts)
        each.known[loop.var.name] = turns.value
        for name, move in moves.items():
            each.known[name] = move.at(turns.turn, turns.most, each.facts)
        each.block(loop.body)
        self.facts.add(*turns.after)
        for name, move in moves.items():
            self.known[name] = move.at(turns.count, turns.most + 1, self.facts)

    def moves(self, loop: For, turns: Turns) -> dict[str, Move]:
        """The change that iterations make to each name."""
        names = sorted(changed(loop.body) & set(self.known))
        before = {name: self.known[name] for name in names}
        begun = {name: _anything_like(before[name]) for name in names}
        moves = self.tried(loop, turns, before, begun)
        ends = {
            name: self.facts.range(move.other)
            for name, move in moves.items()
            if isinstance(move.other, Linear) and move.is_open(self.facts)
        }
        spans = {name: self.left_by(Move(None, None, before[name])) for name in ends}
        for _ in range(MOST_TRIES):
            if not spans:
                break
            inside = {name: span.number() for name, span in spans.items()}
            again = self.tried(loop, turns, before, {**begun, **inside})
            for name, span in list(spans.items()):
                move = again[name]
                reached = span if move.by == 0 else span.hull(self.left_by(move))
                if reached == span:
                    moves[name] = Move(span.number(), 0)
                    del spans[name]
                else:
                    spans[name] = towards(span, reached, ends[name])
        return moves

    def left_by(self, move: Move) -> Steps:
        """The steps of a value that an iteration sets; nothing is known here of one
        that it adds to."""
        if move.by is None and isinstance(move.other, Linear):
            return self.facts.steps(move.other)
        return Steps(*EVERYTHING)

    def tried(
        self, loop: For, turns: Turns, before: dict[str, Value], begun: dict[str, Value]
    ) -> dict[str, Move]:
        """The change that one iteration makes to names that begin with `begun`."""
        trial = self.inside(turns.facts, {**self.known, **begun})
        trial.found = None
        trial.known[loop.var.name] = turns.value
        trial.block(loop.body)
        return {
            name: moved(first, begun, name, trial.known[name], trial.facts)
            for name, first in before.items()
        }

    # ---- expressions -----------------------------------------------------

    def number(self, expr: Expr) -> Linear:
        value = self.value(expr)
        assert isinstance(value, Linear), expr
        return value

    def value(self, expr: Expr) -> Value:
        match expr:
            case Const(value, dtype):
                if dtype is DType.BOOL:
                    return certain(bool(value))
                return None if dtype.is_float else Linear(int(value))
            case Var(name):
                return self.known[name]
            case Load(pointer, index):
                elem = pointer_type(pointer).elem
                return self.loaded(pointer, index, elem, elem.bytes)
            case WideLoad(pointer, index, dtype):
                elem = pointer_type(pointer).elem
                if isinstance(dtype, VectorType):
                    return self.loaded(pointer, index, elem, dtype.lanes * elem.bytes)
                self.reach(pointer, index, elem, dtype.bytes)
                return any_of(dtype)
            case Row(index):
                return self.pointer(self.number(index))
            case Offset(pointer, index):
                return self.moved(pointer, index)
            case Binary(op, a, b):
                return self.binary(op, a, b)
            case Select(condition, a, b):
                return self.select(condition, a, b)
            case Cast(value, to):
                return self.cast(self.value(value), _elem(to))
            case Bitcast(value, to):
                self.value(value)
                return any_of(_elem(to))
            case Call(intrin, args):
                values = [self.value(arg) for arg in args]
                names = [param.name for param in intrin.params]
                called = self.inside(known=dict(zip(names, values, strict=True)))
                for var, let in intrin.lets:
                    called.known[var.name] = called.value(let)
                return self.kept(called.value(intrin.result), called)
            case Lane(vector, _):
                lanes = self.value(vector)
                if not isinstance(lanes, Linear):
                    return lanes
                return unknown(*self.facts.range(lanes))  # another number in each
            case Lanes(values):
                found = [self.value(value) for value in values]
                made = found[0]
                for other in found[1:]:
                    made = one_of(made, other, self.facts, self.facts)
                return made
        raise TypeError(expr)

    def touch(self, expr: Expr) -> None:
        """Reaches what it loads; of its value nothing is asked."""
        if isinstance(expr, Load | WideLoad):
            elem = pointer_type(expr.pointer).elem
            size = expr.type.bytes if isinstance(expr.type, DType) else 0
            self.reach(expr.pointer, expr.index, elem, size or _bytes(expr.type, elem))
            return
        asks = isinstance(expr, Call) and reads_memory(expr.intrin)
        if asks or isinstance(expr, Select):
            self.value(expr)
            return
        for child in children(expr):
            self.touch(child)

    def truth(self, condition: Expr) -> Truth:
        """The facts of a condition; a condition on data may be true or false."""
        if names_in(condition) <= self.followed:
            found = self.value(condition)
            return found if isinstance(found, Truth) else Truth()
        self.touch(condition)
        return Truth()

    def kept(self, value: Value, called: _Walk) -> Value:
        """The result of a function, with the facts about it."""
        self.facts = called.facts
        return value

    def pointer(self, number: Linear) -> Address:
        least, most = self.facts.range(number)
        if least < 0 or most >= len(self.pointers):
            return address(Memory("a pointer that there is not", 0))
        rows = {} if most < least else self.pointers[int(least) : int(most) + 1]
        return Address(tuple((row, Linear()) for row in dict.fromkeys(rows)))

    def moved(self, pointer: Expr, index: Expr) -> Address:
        begin = self.value(pointer)
        assert isinstance(begin, Address)
        return begin.plus(self.number(index), pointer_type(pointer).elem.bytes)

    def reach(
        self, pointer: Expr, index: Expr, elem: DType, size: int, is_store: bool = False
    ) -> Address:
        where, found = self.moved(pointer, index), self.found
        if found is None:
            return where
        for memory, at in where.places:
            least, most = self.facts.range(at, (0, memory.bytes - size))
            end = most + size if least <= most else least
            found.append(Access(memory, least, end, is_store, at, size))
        return where

    def loaded(self, pointer: Expr, index: Expr, elem: DType, size: int) -> Value:
        spans = [
            memory.values(self.facts.steps(at), elem)
            for memory, at in self.reach(pointer, index, elem, size).places
        ]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return any_of(elem)
        return unknown(min(low for low, _ in known), max(high for _, high in known))

    def binary(self, op: str, left: Expr, right: Expr) -> Value:
        a, b = self.value(left), self.value(right)
        if isinstance(a, Address) and isinstance(b, Address):
            (first, a), (second, b) = a.places[0], b.places[0]
            if first is not second:
                return Truth()
        if isinstance(a, Linear) and isinstance(b, Linear):
            if op in COMPARISONS:
                return compare(op, a, b, self.facts)
            return numeric(op, a, b, _elem(left.type), self.facts)
        if isinstance(a, Truth) and isinstance(b, Truth) and op == "&":
            return Truth(a.holds + b.holds)
        if isinstance(a, Truth) and isinstance(b, Truth) and op == "|":
            return Truth((), a.fails + b.fails)
        return Truth() if op in COMPARISONS else any_of(_elem(left.type))

    def select(self, condition: Expr, left: Expr, right: Expr) -> Value:
        truth = self.truth(condition)
        first, second = self.inside(truth.holds), self.inside(truth.fails)
        one, other = first.value(left), second.value(right)
        return one_of(one, other, first.facts, second.facts)

    def cast(self, value: Value, to: DType) -> Value:
        if isinstance(value, Linear) and not to.is_float and to is not DType.BOOL:
            return fitting(value, to, self.facts)
        if isinstance(value, Truth) and not to.is_float:
            return unknown(0, 1)
        return any_of(to)


def _anything_like(value: Value) -> Value:
    """Any value of the same kind; an address stays in its memory."""
    if isinstance(value, Address):
        return value.plus(unknown(*EVERYTHING))
    if isinstance(value, Linear):
        return unknown(*EVERYTHING)
    return Truth() if isinstance(value, Truth) else None


def _elem(kind: Type) -> DType:
    """The element type; for a vector, its lane type."""
    assert not isinstance(kind, PointerType)
    return kind.elem if isinstance(kind, VectorType) else kind


def _bytes(kind: Type, elem: DType) -> int:
    """The size of a value of this type, whose elements are `elem`."""
    return (kind.lanes if isinstance(kind, VectorType) else 1) * elem.bytes
