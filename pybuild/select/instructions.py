"""What one instruction of a core does: two words beside each other, a product by a
power of two. Knows no price.
"""

from __future__ import annotations

import functools

from pybuild.ir.loop import (
    INT32,
    Const,
    Expr,
    Let,
    Load,
    PointerType,
    Stmt,
    Store,
    Var,
)

_MOST = 4096  # bodies that are remembered


@functools.lru_cache(_MOST)
def word_pairs(body: tuple[Stmt, ...]) -> int:
    """Loads of words, and stores, that one instruction does with the one before."""
    found, before = 0, (False, "", 0)
    for stmt in body:
        stored, name, index = place = _word(stmt)
        if name and before == (stored, name, index - 1):
            found, place = found + 1, (False, "", 0)
        before = place
    return found


def _word(stmt: Stmt) -> tuple[bool, str, int]:
    """Whether it is stored, the pointer and the index of a word; "": it is none."""
    match stmt:
        case Let(_, Load(Var(name) as at, Const(int() as index))):
            stored = False
        case Store(Var(name) as at, Const(int() as index)) if not stmt.wide:
            stored = True
        case _:
            return False, "", 0
    words = isinstance(at.type, PointerType) and at.type.elem is INT32
    return stored, name if words else "", index


def is_power(expr: Expr) -> bool:
    """A product by it is a shift."""
    return isinstance(expr, Const) and bin(int(expr.value)).count("1") == 1
