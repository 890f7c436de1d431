"""What loops over vectors take on a Cortex-M55 beyond their statements."""

from __future__ import annotations

from pybuild.ir.loop import (
    Assign,
    Binary,
    Const,
    Expr,
    For,
    If,
    Let,
    Offset,
    Var,
)
from pybuild.select.core_prices import Prices
from pybuild.select.instructions import dot_passes, is_dot

_ENTRY = 6  # of a loop: its counter and pointers
_COUNTED = 2.0  # of a turn that no instruction counts: its number is compared


def moves(loop: For, table: Prices) -> tuple[float, float]:
    """Of a loop that sums, from turn to turn or in each anew: in a turn, of more sums
    than registers hold, moves to where these are summed, and back, and its number;
    before it the first numbers, and pointers that are kept for the next time."""
    if not table.start:
        return 0.0, 0.0
    dots = [s.var.name for s in loop.body if isinstance(s, Assign) and is_dot(s.value)]
    number = _counted(loop, bool(dots))
    sums = {*dots} - {s.var.name for s in loop.body if isinstance(s, Let)}
    if not sums:
        passes = dot_passes(loop.body, {*dots})
        return number + sum(_of_pass(some, table) for some in passes), 0.0
    more = max(0, len(sums) - table.sums)
    starts = table.start * len(sums) + _ENTRY
    return number + 2 * more * len(dots) / len(sums), starts


def _of_pass(dots: list[str], table: Prices) -> float:
    """Of sums that begin in a turn, beyond those that registers hold."""
    sums = len({*dots})
    return max(0, sums - table.sums) * (len(dots) / sums - 1)


def _counted(loop: For, sums: bool) -> float:
    """In a turn of a loop that no instruction counts: its sums take the register for
    that, or it has tests."""
    tests = any(isinstance(s, If) for s in loop.body)
    return _COUNTED * (not loop.rolled and (sums or tests))


def steps(expr: Expr, turning: str) -> bool:
    """Whether it is an address that loads and stores step from turn to turn, or what is
    added to a pointer for one; `turning`: the variable of the loop around it."""
    match expr:
        case Offset(Var(), Var(name) | Binary("*", Var(name), Const())):
            return name == turning
        case Binary("*", Var(name), Const()):
            return name == turning
    return False
