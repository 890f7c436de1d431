"""Operators on loop IR: a loop of one turn less, another shift, operands exchanged.

What a kernel's author writes with a Builder is changed when it is finished, before
either printer sees it: tests that compare with numpy must notice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from pybuild.ir.loop import (
    INT32,
    Assign,
    Binary,
    Const,
    Expr,
    For,
    Func,
    If,
    Load,
    Part,
    Row,
    Select,
    Store,
    binary,
    const,
)
from tests.mutate.mutation import Mutation

Operator = Callable[[Any], Iterator[Any]]
NODES = 8  # a kernel is mutated in its first node, or an eighth further, ...
_NEAR = {"<": "<=", "<=": "<", "==": "!=", "!=": "=="}


def shift(node: Any) -> Iterator[Any]:
    """a >> 5: a >> 6"""
    by = _number(node, ("<<", ">>"))
    if 0 < by < 31:
        yield replace(node, b=replace(node.b, value=by + 1))


def constant(node: Any) -> Iterator[Any]:
    """a + 64: a + 63, and of any other operator on integers"""
    number = _number(node, ("+", "-", "*", "&", "|", "min", "max", "<", "<=", "=="))
    if number:
        yield replace(node, b=replace(node.b, value=number - 1))


def operands(node: Any) -> Iterator[Any]:
    """a - b: b - a; c ? a : b: c ? b : a"""
    if isinstance(node, Binary) and node.op in ("-", "/", "%", "<", "<="):
        if node.a.type == node.b.type and node.a != node.b:
            yield replace(node, a=node.b, b=node.a)
    elif isinstance(node, Select) and node.a != node.b:
        yield replace(node, a=node.b, b=node.a)


def comparison(node: Any) -> Iterator[Any]:
    """a < b: a <= b"""
    if isinstance(node, Binary) and node.op in _NEAR:
        yield replace(node, op=_NEAR[node.op])


def limit(node: Any) -> Iterator[Any]:
    """min(a, b): max(a, b), and the other way round"""
    if isinstance(node, Binary) and node.op in ("min", "max"):
        yield replace(node, op="max" if node.op == "min" else "min")


def term(node: Any) -> Iterator[Any]:
    """a + b: a"""
    if isinstance(node, Binary) and node.op in ("+", "-"):
        yield node.a


def bound(node: Any) -> Iterator[Any]:
    """A loop ends a turn earlier, or begins one later."""
    if isinstance(node, For):
        yield replace(node, stop=binary("-", node.stop, node.step))
        yield replace(node, start=binary("+", node.start, node.step))


def index(node: Any) -> Iterator[Any]:
    """p[i]: p[i + 1]"""
    if isinstance(node, Load | Store) and node.index.type == INT32:
        yield replace(node, index=binary("+", node.index, const(1)))


def statement(node: Any) -> Iterator[Any]:
    """A store, an assignment or the body of an `if` is left out: None."""
    if isinstance(node, Store | Assign):
        yield None
    elif isinstance(node, If):
        yield replace(node, body=(), otherwise=node.otherwise)


OPERATORS: dict[str, Operator] = {
    one.__name__: one
    for one in (shift, constant, operands, comparison, limit, term, bound, index,
                statement)
}  # fmt: skip


def _number(node: Any, ops: tuple[str, ...]) -> int:
    """The integer on the right of one of these; 0 if none is."""
    right = node.b if isinstance(node, Binary) and node.op in ops else None
    whole = isinstance(right, Const) and type(right.value) is int
    return int(right.value) if whole else 0  # type: ignore[union-attr]


def mutants(func: Func, operator: str) -> list[Func]:
    """The kernel with each change that an operator makes, in the order of its body."""
    bodies = _in_tuple(func.body, OPERATORS[operator])
    return [replace(func, body=body) for body in bodies]


def mutated(func: Func, operator: str, node: str) -> Func | None:
    """With the change that stands so far in it (`3 of 8`); None if there is none."""
    all_of_them = mutants(func, operator)
    if not all_of_them:
        return None
    part, parts = map(int, node.split(" of "))
    return all_of_them[part * len(all_of_them) // parts]


def _in_tuple(nodes: tuple[Any, ...], operator: Operator) -> Iterator[tuple[Any, ...]]:
    for i, node in enumerate(nodes):
        for new in _of(node, operator):
            yield (*nodes[:i], *((new,) if new is not None else ()), *nodes[i + 1 :])


def _of(node: Any, operator: Operator) -> Iterator[Any]:
    """All that a node may become: itself changed, then what is inside."""
    yield from operator(node)
    if isinstance(node, Row | Const):
        return
    for one in fields(node):
        value = getattr(node, one.name)
        if isinstance(value, tuple) and one.name not in ("params", "lets"):
            inside: Iterator[Any] = _in_tuple(value, operator)
        elif isinstance(value, Expr):
            inside = _of(value, operator)
        else:
            continue
        keeps = isinstance(node, Part) and one.name == "args"
        yield from (replace(node, **{one.name: new}) for new in inside if not keeps)


def mutations(file: str, source: str) -> list[Mutation]:
    """Of each function of a file that makes a Builder: all operators, all eighths."""
    from tests.mutate.python_ops import places

    found = {
        function: None
        for function, node in places(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Builder"
    }
    return [
        Mutation(file, function, f"loop {operator}", f"{part} of {NODES}", "changed")
        for function in found for operator in OPERATORS for part in range(NODES)
    ]  # fmt: skip
