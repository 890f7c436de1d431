"""What is known of a value before anything is run."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import (
    FOLDED,
    INT64,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Var,
)


def known(expr: Expr, values: Mapping[str, int | None]) -> int | None:
    """An integer, given those of variables; None: it is not known."""
    match expr:
        case Const(int() as value):
            return value
        case Var(name):
            return values.get(name)
        case Binary(op, a, b):
            left, right = known(a, values), known(b, values)
            if left is None or right is None:
                return None
            if op in "/%" and right == 0:
                return 0
            return FOLDED[op](left, right)
        case Select(condition, a, b):
            which = known(condition, values)
            return None if which is None else known(a if which else b, values)
        case Cast(value) if expr.type in (INT64, value.type):
            return known(value, values)
        case Call(intrin, (x,)) if intrin.name == "crt_in_order":
            return known(x, values)
    return None
