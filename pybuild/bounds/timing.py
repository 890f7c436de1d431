"""Finds whether a kernel's time and addresses depend on its data: which branches, loops
and indices do.

A number is data if it comes from a row, from scratch, or from a constant that may be
replaced, or was decided by such a number. What a constant of the model holds is known.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field

from pybuild.bounds.values import Memory
from pybuild.ir.loop import (
    FOLDED,
    Assign,
    Binary,
    Call,
    Const,
    Expr,
    For,
    Func,
    If,
    Let,
    Load,
    Offset,
    Part,
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Var,
    WideLoad,
)
from pybuild.ir.loop_verify import names_in, operands, statements, walked
from pybuild.records import dataclass

_MOST = 1024  # kernels that are remembered


@dataclass(frozen=True)
class Timing:
    """The number of branches on data in a kernel's code.

    short  tests of data around code without loops: either way is soon over
    loops  loops that turn as often as data says, and tests of data around loops and
           functions: how long it takes is not said here
    places loads and stores whose place data says; of 0, any input leads to the same
           places
    """

    short: int
    loops: int
    places: int = 0


def timing(func: Func, args: Sequence[int], pointers: Sequence[Memory]) -> Timing:
    """The timing of a kernel on these arguments; pointers to known arrays are not
    data."""
    names = _row_names(func)
    known = zip(func.args, args, strict=True)
    values = tuple((var.name, value) for var, value in known if var.name in names)
    return _timing(func, values, tuple(memory.array is None for memory in pointers))


@functools.lru_cache(_MOST)
def _row_names(func: Func) -> frozenset[str]:
    """The names in expressions for the number of a pointer; nearly always none."""
    every = (
        e for s in statements(func.body) for given in operands(s) for e in walked(given)
    )
    rows = (e.index for e in every if isinstance(e, Row))
    return frozenset(name for index in rows for name in names_in(index))


@functools.lru_cache(_MOST)
def _timing(
    func: Func, values: tuple[tuple[str, int], ...], rows: tuple[bool, ...]
) -> Timing:
    """The same as timing, cached for layers that share a kernel."""
    walk = _Walk(rows, dict(values))
    before = -1
    while walk.known_of_data() > before:  # what a turn makes is there in the next one
        before = walk.known_of_data()
        walk.short = walk.loops = walk.places = 0
        walk.block(func.body, False)
    return Timing(walk.short, walk.loops, walk.places)


@dataclass
class _Walk:
    """rows: which pointers lead to data; data: numbers that are; leading: pointers that
    lead to it; moved: whose place it says; names are with the part that they are in"""

    rows: tuple[bool, ...]
    args: Mapping[str, int]
    data: set[tuple[str, str]] = field(default_factory=set)
    leading: set[tuple[str, str]] = field(default_factory=set)
    moved: set[tuple[str, str]] = field(default_factory=set)
    part: str = ""
    short: int = 0
    loops: int = 0
    places: int = 0

    def known_of_data(self) -> int:
        return len(self.data) + len(self.leading) + len(self.moved)

    def block(self, body: tuple[Stmt, ...], decided: bool) -> None:
        """decided: data says whether it is run"""
        for stmt in body:
            every = (inner for given in operands(stmt) for inner in walked(given))
            self.places += sum(map(self.is_placed, every))
            self.statement(stmt, decided)

    def statement(self, stmt: Stmt, decided: bool) -> None:
        match stmt:
            case Let(var, value) | Assign(var, value):
                self.takes(var, value, decided)
            case Store(pointer, index, value):
                places = (index, *operands(stmt)[3:])
                self.places += any(map(self.asks, places)) or self.moves(pointer)
                if decided or self.asks(value) or self.asks(index):
                    self.leading.add((self.part, _root(pointer)))
            case For(var, start, stop, _, body):
                asks = self.asks(start) or self.asks(stop)
                if decided or asks:
                    self.data.add((self.part, var.name))
                self.loops += asks
                self.block(body, decided or asks)
            case If(condition, body, otherwise):
                asks = self.asks(condition)
                if asks and _is_long(body + otherwise):
                    self.loops += 1
                elif asks:
                    self.short += 1
                self.block(body + otherwise, decided or asks)
            case Part(name, params, args, body):
                for param, arg in zip(params, args, strict=True):
                    self.takes(param, arg, decided, name)
                outer, self.part = self.part, name
                self.block(body, decided)
                self.part = outer

    def takes(self, var: Var, value: Expr, decided: bool, part: str = "") -> None:
        """part: that is called with it"""
        name = part or self.part, var.name
        if isinstance(var.type, PointerType):
            if decided or self.leads_to_data(value):
                self.leading.add(name)
            if decided or self.moves(value):
                self.moved.add(name)
        elif decided or self.asks(value):
            self.data.add(name)

    def asks(self, expr: Expr) -> bool:
        """True if a number comes of data."""
        for inner in walked(expr):
            match inner:
                case Load(pointer, _) | WideLoad(pointer, _):
                    if self.leads_to_data(pointer):
                        return True
                case Var(name) if not isinstance(inner.type, PointerType):
                    if (self.part, name) in self.data:
                        return True
                case Call(_, args):
                    pointed = (a for a in args if isinstance(a.type, PointerType))
                    if any(self.leads_to_data(one) for one in pointed):
                        return True
        return False

    def is_placed(self, expr: Expr) -> bool:
        """True if it loads from where data says."""
        match expr:
            case Load(pointer, index) | WideLoad(pointer, index):
                return self.asks(index) or self.moves(pointer)
            case Call(_, args):
                pointed = (a for a in args if isinstance(a.type, PointerType))
                return any(self.moves(one) for one in pointed)
        return False

    def moves(self, pointer: Expr) -> bool:
        """True if data says where it leads."""
        match pointer:
            case Row(index):
                return self.asks(index)
            case Offset(begin, index):
                return self.moves(begin) or self.asks(index)
            case Select(condition, a, b):
                return self.asks(condition) or self.moves(a) or self.moves(b)
            case Var(name):
                return (self.part, name) in self.moved
        return True

    def leads_to_data(self, pointer: Expr) -> bool:
        match pointer:
            case Row(index):
                number = self.known(index)
                return number is None or self.rows[number]
            case Offset(begin, index):
                return self.leads_to_data(begin) or self.asks(index)
            case Select(condition, a, b):
                either = self.leads_to_data(a) or self.leads_to_data(b)
                return either or self.asks(condition)
            case Var(name):
                return (self.part, name) in self.leading
        return True

    def known(self, expr: Expr) -> int | None:
        """A number that is made of arguments alone."""
        match expr:
            case Const(int() as value):
                return value
            case Var(name):
                return self.args.get(name)
            case Binary(op, a, b) if op in "+-*":
                left, right = self.known(a), self.known(b)
                return (
                    None if left is None or right is None else FOLDED[op](left, right)
                )
        return None


def _root(pointer: Expr) -> str:
    """The name that a pointer begins with; "": it has none."""
    while isinstance(pointer, Offset):
        pointer = pointer.pointer
    return pointer.name if isinstance(pointer, Var) else ""


def _is_long(body: tuple[Stmt, ...]) -> bool:
    return any(
        isinstance(stmt, For | Part)
        or (isinstance(stmt, If) and _is_long(stmt.body + stmt.otherwise))
        for stmt in body
    )
