"""Makes a shared kernel one layer's own: its arguments become constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.kernels.candidate import Candidate
from pybuild.loop import (
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
    Row,
    Select,
    Stmt,
    Store,
    Var,
    WideLoad,
    binary,
    cast,
    const,
    offset,
    select,
)

_Known = Mapping[Var, Expr]


def specialise(candidate: Candidate) -> Candidate:
    """The same work by a kernel that needs no argument array."""
    if candidate.finish is not None:
        candidate = replace(candidate, finish=specialise(candidate.finish))
    func = candidate.func
    if func is None or not func.args:
        return candidate
    func = with_constants(func, dict(enumerate(candidate.args)))
    return replace(candidate, func=func, args=())


def with_constants(func: Func, values: Mapping[int, int]) -> Func:
    """The kernel without those arguments, by their number, that always have a value."""
    known = {func.args[i]: const(value) for i, value in values.items()}
    left = tuple(arg for arg in func.args if arg not in known)
    return replace(func, args=left, body=_block(func.body, known))


def _block(body: tuple[Stmt, ...], known: _Known) -> tuple[Stmt, ...]:
    return tuple(_stmt(stmt, known) for stmt in body)


def _stmt(stmt: Stmt, known: _Known) -> Stmt:
    match stmt:
        case Let(var, value):
            return Let(var, _expr(value, known))
        case Assign(var, value):
            return Assign(var, _expr(value, known))
        case Store(pointer, index, value, wide):
            to, at, stored = (_expr(e, known) for e in (pointer, index, value))
            return Store(to, at, stored, wide)
        case For(var, start, stop, step, body, rolled):
            ends = (_expr(start, known), _expr(stop, known))
            return For(var, *ends, step, _block(body, known), rolled)
        case If(condition, body, otherwise):
            test = _expr(condition, known)
            return If(test, _block(body, known), _block(otherwise, known))
        case Part(name, params, args, body):
            values = dict(zip(params, (_expr(a, known) for a in args), strict=True))
            fixed = {p: v for p, v in values.items() if isinstance(v, Const)}
            left = {p: v for p, v in values.items() if p not in fixed}
            # pieces of one name are one function: the constants are in the name
            known_ends = (str(v.value).replace("-", "m") for v in fixed.values())
            inner = _block(body, fixed)
            return Part(
                "_".join((name, *known_ends)), tuple(left), tuple(left.values()), inner
            )


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
            return Row(_expr(index, known), kind)
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
