"""Comparisons of floats that treat NaN: what is greater, and what comes first. Layers
whose inputs are promised to be numbers (`--nan ignore`) use plain ones.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.graph import Node
from pybuild.ir.loop import (
    BOOL,
    FLOAT32,
    INT32,
    Bitcast,
    Expr,
    Intrin,
    Var,
    const,
    equal,
    maximum,
    select,
)
from pybuild.ops.base.signatures import IGNORE_NAN

_A, _B = Var("a", FLOAT32), Var("b", FLOAT32)
# the sum of two that have no order is NaN
GREATER = Intrin(
    "crt_greater",
    (_A, _B),
    select(_B <= _A, _A, select(_A < _B, _B, _A + _B)),
    doc="The greater of two numbers; NaN if one is NaN.",
)
# its bits; no float is less
LEAST = Bitcast(const(-0x800000, INT32), FLOAT32)


def ignores(node: Node) -> bool:
    """True if the user has promised that this layer reads no NaN: `--nan ignore`."""
    return bool(node.attrs.get(IGNORE_NAN, False))


def numbers_mark(node: Node) -> str:
    """Return the part of a kernel's name that says that it ignores NaN."""
    return "_numbers" if ignores(node) else ""


def greater(numbers: bool) -> Callable[[Expr, Expr], Expr]:
    """numbers  neither is NaN"""
    return maximum if numbers else GREATER


def above(x: Expr, y: Expr) -> Expr:
    """True if x is greater; NaN is greater than any number."""
    return select(x <= y, const(0, BOOL), equal(y, y))


def below(x: Expr, y: Expr) -> Expr:
    """True if x is less; NaN is less than any number."""
    return select(y <= x, const(0, BOOL), equal(y, y))
