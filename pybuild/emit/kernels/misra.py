"""The rules of MISRA C:2012 that a printed function deviates from, as words of the tag
in its comment. docs/misra.md has the reasons at length; here is the one list.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.dtype import DType
from pybuild.ir.loop import (
    Assign,
    Binary,
    Cast,
    Const,
    Expr,
    Func,
    Intrin,
    Let,
    Piece,
    PointerType,
    Row,
    Select,
    Stmt,
    children,
)
from pybuild.ir.loop_verify import operands, statements

REASONS = {
    "8.14": "restrict: these pointers meet nowhere",
    "10.1": "shifts of signed numbers are arithmetic",
    "10.6": "a choice of two constants has their type",
    "10.8": "sums are cast as a whole, their range is known",
}
_SIGNED = (DType.INT8, DType.INT16, DType.INT32, DType.INT64)
_COMPOSITE = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")


def tag(func: Func | Intrin) -> str:
    """`8.14: reason; 10.1: reason`; "" where all rules are kept."""
    rules = sorted(_rules(func), key=lambda rule: [int(n) for n in rule.split(".")])
    return "; ".join(f"{rule}: {REASONS[rule]}" for rule in rules)


def _rules(func: Func | Intrin) -> set[str]:
    found: set[str] = set()
    if _is_restricted(func):
        found.add("8.14")
    for value in _values(func):
        if isinstance(value, Select):
            both = isinstance(value.a, Const) and isinstance(value.b, Const)
            found |= {"10.6"} if both else set()
    for expr in _expressions(func):
        if isinstance(expr, Binary):
            shifts = expr.op in ("<<", ">>") and expr.a.type in _SIGNED
            found |= {"10.1"} if shifts else set()
        elif isinstance(expr, Cast) and isinstance(expr.value, Binary):
            found |= {"10.8"} if expr.value.op in _COMPOSITE else set()
    return found


def _is_restricted(func: Func | Intrin) -> bool:
    if isinstance(func, Piece):
        pointers = [p for p in func.params if isinstance(p.type, PointerType)]
        return bool(pointers) and not func.in_place
    if isinstance(func, Func):
        rows = [s for s in func.body if isinstance(s, Let) and isinstance(s.value, Row)]
        return bool(rows) and not func.in_place
    return False


def _body(func: Func | Intrin) -> tuple[Stmt, ...]:
    return func.body if isinstance(func, Func | Piece) else ()


def _values(func: Func | Intrin) -> list[Expr]:
    """The values that are assigned to variables."""
    body = statements(_body(func))
    given = [s.value for s in body if isinstance(s, Assign | Let)]
    lets = func.lets if isinstance(func, Intrin) else ()
    return given + [value for _, value in lets]


def _expressions(func: Func | Intrin) -> Iterator[Expr]:
    """All expressions, inner ones included; those of a Part's body belong to its
    Piece."""
    roots = _values(func)
    if isinstance(func, Intrin) and not isinstance(func, Piece):
        roots.append(func.result)
    for stmt in statements(_body(func)):
        roots += operands(stmt)
    while roots:
        expr = roots.pop()
        yield expr
        roots += children(expr)
