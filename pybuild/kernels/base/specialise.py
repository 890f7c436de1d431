"""Makes a shared kernel specific to one layer: its arguments become constants."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.loop import (
    Assign,
    Binary,
    Bitcast,
    Call,
    Cast,
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
    binary,
    cast,
    children,
    const,
    offset,
    select,
)
from pybuild.ir.loop_verify import operands, statements, used
from pybuild.kernels.base.candidate import Candidate

_Known = Mapping[Expr, Expr]
# the parameters that a part keeps, whatever it is given
_Kept = Callable[[Part], Container[Var]]


def specialise(candidate: Candidate) -> Candidate:
    """Return the candidate with a kernel that needs no arguments."""
    if candidate.finish is not None:
        candidate = replace(candidate, finish=specialise(candidate.finish))
    func = candidate.func
    if func is None or not func.args:
        return candidate
    func = with_constants(func, dict(enumerate(candidate.args)))
    return replace(candidate, func=func, args=())


def with_constants(
    func: Func, values: Mapping[int, int], kept: _Kept = lambda _: ()
) -> Func:
    """Return the kernel with some arguments, given by number, fixed to values, and
    without code that becomes unused.

    kept  parameters that its parts keep, because other kernels call them
    """
    known: dict[Expr, Expr] = {func.args[i]: const(n) for i, n in values.items()}
    body, names = used(_block(func.body, known, kept))
    left = tuple(a for a in func.args if a not in known and a.name in names)
    return replace(func, args=left, body=body)


def rows_of(func: Func) -> set[Row]:
    """The pointers that a kernel binds."""
    found: set[Row] = set()

    def visit(expr: Expr) -> None:
        if isinstance(expr, Row):
            found.add(expr)
        for child in children(expr):
            visit(child)

    for stmt in statements(func.body):
        for expr in operands(stmt):
            visit(expr)
    return found


def with_rows(func: Func, rows: Mapping[Expr, Expr]) -> Func:
    """Return the kernel with its pointers replaced."""
    return replace(func, body=_block(func.body, rows, lambda part: part.params))


def _block(body: tuple[Stmt, ...], known: _Known, kept: _Kept) -> tuple[Stmt, ...]:
    found: list[Stmt] = []
    for stmt in body:
        made = _stmt(stmt, known, kept)
        match made:
            case If(Const(holds), inner, otherwise):
                found += inner if holds else otherwise
            case For(_, Const(start), Const(stop)) if start >= stop:
                pass
            case _:
                found.append(made)
    return tuple(found)


def _stmt(stmt: Stmt, known: _Known, kept: _Kept) -> Stmt:
    match stmt:
        case Let(var, value):
            return Let(var, _expr(value, known))
        case Assign(var, value):
            return Assign(var, _expr(value, known))
        case Store(_, _, _, wide):
            to, at, stored, *count = (_expr(e, known) for e in operands(stmt))
            return Store(to, at, stored, wide, *count)
        case For(var, start, stop, step, body, rolled):
            ends = (_expr(start, known), _expr(stop, known))
            return For(var, *ends, step, _block(body, known, kept), rolled)
        case If(condition, body, otherwise, rare):
            test = _expr(condition, known)
            inner, other = (_block(b, known, kept) for b in (body, otherwise))
            return If(test, inner, other, rare)
        case Part(name, params, args, body):
            values = dict(zip(params, (_expr(a, known) for a in args), strict=True))
            stay = kept(stmt)
            fixed = {
                p: v
                for p, v in values.items()
                if isinstance(v, Const) and p not in stay
            }
            left = {p: v for p, v in values.items() if p not in fixed}
            inner, names = used(_block(body, dict(fixed.items()), kept))
            left = {p: v for p, v in left.items() if p.name in names}
            full = _part_name(name, params, fixed)
            given, kind = tuple(left.values()), stmt.in_place
            doc = stmt.doc + _told(params, fixed)
            return Part(full, tuple(left), given, inner, kind, doc)


def _told(params: tuple[Var, ...], fixed: Mapping[Var, Const]) -> str:
    """Return the numbers behind a part's name, for readers of the C."""
    numbers = (f"{p.name} = {fixed[p].value}" for p in params if p in fixed)
    text = ", ".join(numbers)
    return f" Here {text}." if text else ""


def _part_name(name: str, params: tuple[Var, ...], fixed: Mapping[Var, Const]) -> str:
    """Return a part's name with its constants: parts of one name are one function."""
    if not fixed:
        return name
    numbers = [p for p in params if not isinstance(p.type, PointerType)]
    words = (str(fixed[p].value) if p in fixed else "x" for p in numbers)
    return "_".join((name, *words)).replace("-", "m")


def _expr(expr: Expr, known: _Known) -> Expr:
    match expr:
        case Var():
            return known.get(expr, expr)
        case Load(pointer, index):
            return Load(_expr(pointer, known), _expr(index, known))
        case WideLoad(pointer, index, dtype, align):
            where = _expr(pointer, known), _expr(index, known)
            return WideLoad(*where, dtype, align)
        case Offset(pointer, index):
            return offset(_expr(pointer, known), _expr(index, known))
        case Row(index, kind):
            row = Row(_expr(index, known), kind)
            return known.get(row, row)
        case Binary(op, a, b):
            return binary(op, _expr(a, known), _expr(b, known))
        case Select(condition, a, b):
            return select(*(_expr(e, known) for e in (condition, a, b)))
        case Cast(value, DType() as dtype):
            return cast(_expr(value, known), dtype)
        case Bitcast(value, dtype):
            return Bitcast(_expr(value, known), dtype)
        case Call(intrin, args):
            return Call(intrin, tuple(_expr(a, known) for a in args))
    return expr
