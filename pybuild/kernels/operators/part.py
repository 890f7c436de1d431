"""Makes a kernel a part of another: its row pointers become parameters."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Collection, Sequence

from pybuild.ir.loop import Const, Expr, For, Func, Let, Part, Row, Var
from pybuild.ir.loop_text import bare, text, type_text
from pybuild.ir.loop_verify import names_in, statements
from pybuild.kernels.base.specialise import rows_of, with_constants, with_rows


@functools.lru_cache(512)
def as_part(func: Func) -> tuple[list[Row], Part]:
    """Return the pointers that a kernel asks for, and the kernel as a part of another.

    Its name says what it computes, too, as no two parts have one name.
    """
    rows = sorted(rows_of(func), key=lambda row: (bare(row.index), type_text(row.type)))
    names = {s.var.name for s in statements(func.body) if isinstance(s, Let | For)}
    names |= {arg.name for arg in func.args}
    params: list[Var] = []
    for row in rows:
        name = f"p{len(params)}"
        while name in names:
            name += "_"
        params.append(Var(name, row.type))
    body = with_rows(func, dict(zip(rows, params, strict=True))).body
    key = zlib.crc32(text(func).encode()) & 0xFFFF
    made = (*params, *func.args)
    return rows, Part(f"{func.name}_{key:04x}", made, (), body, False, func.doc)


def with_known_rows(
    func: Func, values: Sequence[int]
) -> tuple[Func, tuple[int, ...]] | None:
    """Return the kernel without the arguments that say which pointer it reads, and the
    values of those left; None if a pointer depends on more than arguments.
    """
    deciding = _deciding(func)
    known = {i: n for i, n in enumerate(values) if func.args[i].name in deciding}
    fixed = with_constants(func, known)
    loops = [loop for loop in statements(fixed.body) if isinstance(loop, For)]
    again = {loop.var for loop in loops if _turns(loop) != 1}
    once: dict[Expr, Expr] = {
        loop.var: loop.start for loop in loops if loop.var not in again
    }
    fixed = with_rows(fixed, once)
    if not all(isinstance(row.index, Const) for row in rows_of(fixed)):
        return None
    left = set(fixed.args)
    pairs = zip(func.args, values, strict=True)
    return fixed, tuple(n for arg, n in pairs if arg in left)


def _deciding(func: Func) -> Collection[str]:
    """Return the names of the variables that decide which pointers are read."""
    read: dict[str, set[str]] = {}
    for stmt in statements(func.body):
        if isinstance(stmt, Let):
            read.setdefault(stmt.var.name, set()).update(names_in(stmt.value))
        elif isinstance(stmt, For):
            ends = names_in(stmt.start) | names_in(stmt.stop)
            read.setdefault(stmt.var.name, set()).update(ends)
    found: set[str] = set()
    ahead = {name for row in rows_of(func) for name in names_in(row.index)}
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead |= read.get(name, set())
    return found


def _turns(loop: For) -> int | None:
    """Return the number of iterations if it is known."""
    if not (isinstance(loop.start, Const) and isinstance(loop.stop, Const)):
        return None
    return -(-int(loop.stop.value - loop.start.value) // loop.step)
