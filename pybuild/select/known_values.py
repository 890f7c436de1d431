"""Values of a kernel's expressions, as far as its arguments tell them."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import (
    FOLDED,
    INT32,
    INT64,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Var,
)


def value_of(expr: Expr, values: Mapping[str, int | None]) -> int | None:
    """The integer that an expression is; None: it is not known.

    values  of variables, by their names
    """
    # asked of every expression, mostly of the first three
    if isinstance(expr, Const):
        return expr.value if isinstance(expr.value, int) else None
    if isinstance(expr, Var):
        return values.get(expr.name)
    if isinstance(expr, Binary):
        left = value_of(expr.a, values)
        right = None if left is None else value_of(expr.b, values)
        if left is None or right is None:
            return None
        return 0 if expr.op in "/%" and right == 0 else FOLDED[expr.op](left, right)
    match expr:
        case Select(condition, a, b):
            which = value_of(condition, values)
            return None if which is None else value_of(a if which else b, values)
        case Cast(value) if expr.type in (INT64, value.type):
            return value_of(value, values)
        case Call(intrin, args) if intrin.result.type == INT32 and not intrin.lets:
            given = zip(intrin.params, args, strict=True)
            inner = {param.name: value_of(one, values) for param, one in given}
            return value_of(intrin.result, inner)
    return None
