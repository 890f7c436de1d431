"""Finds the names of a kernel that lead to addresses; all others are data, and need not
be known.

x[4 * row + c] asks for row and c, and for what they are made of; acc + x * w asks for
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.ir.loop import (
    Assign,
    Call,
    Expr,
    For,
    Func,
    If,
    Intrin,
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


def leading_to_addresses(func: Func) -> frozenset[str]:
    """Names that addresses, ends of loops and the conditions on these depend on."""
    all_statements = statements(func.body)
    made: dict[str, set[str]] = {}
    conditions: list[set[str]] = []
    found: set[str] = set()
    for stmt in all_statements:
        for var, value in _made(stmt):
            names = names_in(value)
            made.setdefault(var.name, set()).update(names)
            if isinstance(var.type, PointerType):
                found |= {var.name} | names
        if isinstance(stmt, If):
            conditions.append(names_in(stmt.condition))
        for expr in operands(stmt):
            for inner in walked(expr):
                if isinstance(inner, Load | WideLoad | Offset):
                    found |= names_in(inner.pointer) | names_in(inner.index)
                elif isinstance(inner, Row):
                    found |= names_in(inner.index)
                elif isinstance(inner, Call) and reads_memory(inner.intrin):
                    found |= names_in(inner)
                elif isinstance(inner, Select):
                    conditions.append(names_in(inner.condition))
        if isinstance(stmt, For):
            found |= names_in(stmt.start) | names_in(stmt.stop)
        elif isinstance(stmt, Store):
            found |= names_in(stmt.pointer) | names_in(stmt.index)
            found |= names_in(stmt.count) if stmt.count is not None else set()
    return _closed(found, made, conditions)


def deciding(func: Func) -> frozenset[str]:
    """Names that say how often code is run, or whether: that ends of loops and
    conditions of statements depend on, and steps of addresses."""
    made: dict[str, set[str]] = {}
    found: set[str] = set()
    for stmt in statements(func.body):
        for var, value in _made(stmt):
            made.setdefault(var.name, set()).update(names_in(value))
        match stmt:
            case For():
                found |= names_in(stmt.start) | names_in(stmt.stop)
            case If():
                found |= names_in(stmt.condition)
            case Assign(_, Offset(_, by)):
                found |= names_in(by)
    return _closed(found, made, [])


def _closed(
    found: set[str], made: dict[str, set[str]], conditions: list[set[str]]
) -> frozenset[str]:
    """With what they are made of, and what is asked together with them."""
    before = -1
    while len(found) > before:
        before = len(found)
        for name, names in made.items():
            if name in found:
                found |= names
        for names in conditions:
            if names & found:
                found |= names
    return frozenset(found)


def _made(stmt: Stmt) -> Iterator[tuple[Var, Expr]]:
    match stmt:
        case Let(var, value) | Assign(var, value):
            yield var, value
        case Part(_, params, args):
            yield from zip(params, args, strict=True)
        case For(var, start, stop):
            yield var, start
            yield var, stop


def reads_memory(intrin: Intrin) -> bool:
    """True if it takes an address: its meaning loads from there."""
    return any(isinstance(param.type, PointerType) for param in intrin.params)
