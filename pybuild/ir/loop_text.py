"""Kernels as text, in Python's syntax; loop_parse.py reads it back."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from dataclasses import fields

from pybuild.dtype import DType
from pybuild.ir.loop import (
    INT32,
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
    Intrin,
    Lane,
    Lanes,
    Let,
    Load,
    Offset,
    Part,
    Piece,
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
    children,
)
from pybuild.ir.loop_verify import intrins, operands

SHORT = {
    DType.BOOL: "bool", DType.INT8: "i8", DType.UINT8: "u8", DType.INT16: "i16",
    DType.UINT16: "u16", DType.INT32: "i32", DType.UINT32: "u32", DType.INT64: "i64",
    DType.UINT64: "u64", DType.FLOAT16: "f16", DType.FLOAT32: "f32",
    DType.FLOAT64: "f64",
}  # fmt: skip
# of an Intrin, what its text says beside its meaning
SPELLING = tuple(
    field.name
    for field in fields(Intrin)
    if field.compare and field.name not in ("name", "params", "result", "lets")
)
_INDENT = "    "


def text(func: Func) -> str:
    """The kernel, after the machine instructions that it calls.

    def twice(n: i32):
        y: mut(f32) = row(0, mut(f32))
        x: ptr(f32) = row(1, ptr(f32))
        for i in range(0, n, 1):
            y[i] = x[i] + x[i]
    """
    lines: list[str] = []
    for intrin in intrins(func):
        lines += [] if isinstance(intrin, Piece) else [*_intrin(intrin), ""]
    lines += ["@in_place"] if func.in_place else []
    lines += ["@ordered"] if func.ordered else []
    lines.append(f"def {func.name}({_params(func.args)}):")
    lines += _doc(func.doc, 1)
    for var, length in func.arrays:
        assert isinstance(var.type, PointerType)
        kind = f"array({SHORT[var.type.elem]}, {length})"
        lines.append(f"{_INDENT}{name_text(var)}: {kind}")
    lines += _block(func.body, 1, bool(func.arrays))
    return "\n".join(lines) + "\n"


def _intrin(intrin: Intrin) -> Iterator[str]:
    plain = Intrin("", (), intrin.result)
    said = ((name, getattr(intrin, name)) for name in SPELLING)
    words = [f"{n}={v!r}" for n, v in said if v != getattr(plain, n)]
    yield f"@intrin({', '.join(words)})"
    yield f"def {intrin.name}({_params(intrin.params)}):"
    yield from _doc(intrin.doc, 1)
    for var, value in intrin.lets:
        yield f"{_INDENT}{name_text(var)}: {type_text(var.type)} = {bare(value)}"
    yield f"{_INDENT}return {bare(intrin.result)}"


def _doc(doc: str, depth: int) -> list[str]:
    before = _INDENT * depth
    lines = f'"""{doc}"""'.splitlines() if doc else []
    return [f"{before}{line}" for line in lines]


def _params(params: Iterable[Var]) -> str:
    return ", ".join(f"{name_text(var)}: {type_text(var.type)}" for var in params)


def _block(body: tuple[Stmt, ...], depth: int, more: bool = False) -> list[str]:
    lines = [line for stmt in body for line in _stmt(stmt, depth)]
    return lines or ([] if more else [_INDENT * depth + "pass"])


def _stmt(stmt: Stmt, depth: int) -> list[str]:
    before = _INDENT * depth
    match stmt:
        case Let(var, value):
            return [f"{before}{name_text(var)}: {type_text(var.type)} = {bare(value)}"]
        case Assign(var, value):
            return [f"{before}{name_text(var)} = {bare(value)}"]
        case Store(pointer, index, value, True):
            parts = ", ".join(map(bare, (pointer, index, value)))
            return [f"{before}store_wide({parts})"]
        case Store(_, _, _, _, Expr()):
            return [f"{before}store_some({', '.join(map(bare, operands(stmt)))})"]
        case Store(pointer, index, value):
            place = f"{expr_text(pointer)}[{bare(index)}]"
            return [f"{before}{place} = {bare(value)}"]
        case For(var, start, stop, step, body, rolled):
            turns = ", ".join((bare(start), bare(stop), str(step)))
            word = "rolled" if rolled else "range"
            head = f"{before}for {name_text(var)} in {word}({turns}):"
            return [head, *_block(body, depth + 1)]
        case If(condition, body, otherwise, rare):
            test = f"rare({bare(condition)})" if rare else bare(condition)
            lines = [f"{before}if {test}:", *_block(body, depth + 1)]
            if otherwise:
                lines += [f"{before}else:", *_block(otherwise, depth + 1)]
            return lines
        case Part(name, params, args, body, in_place, doc):
            lines = [f"{before}@in_place"] if in_place else []
            lines.append(f"{before}def {name}({_params(params)}):")
            lines += _doc(doc, depth + 1)
            lines += _block(body, depth + 1)
            return [*lines, f"{before}{name}({', '.join(map(bare, args))})"]
    raise TypeError(stmt)


def type_text(of: Type) -> str:
    """i32, ptr(i8), mut(i8) for what may be stored through, vec(i32, 4), grows(i32,
    16)."""
    match of:
        case PointerType(elem, writable):
            return f"{'mut' if writable else 'ptr'}({SHORT[elem]})"
        case VectorType(elem, lanes, grows):
            return f"{'grows' if grows else 'vec'}({SHORT[elem]}, {lanes})"
    return SHORT[of]


def expr_text(expr: Expr) -> str:
    """Binary operators stand between their operands in brackets; all else is a call."""
    match expr:
        case Const(value, of):
            if of is INT32:
                return str(value)
            return f"{SHORT[of]}({value if value - value == 0 else repr(str(value))})"
        case Var():
            return name_text(expr)
        case Load(pointer, index):
            return f"{expr_text(pointer)}[{bare(index)}]"
        case Binary(op, a, b) if op in ("min", "max"):
            return f"{op}({bare(a)}, {bare(b)})"
        case Binary(op, a, b):
            return f"({expr_text(a)} {op} {expr_text(b)})"
        case Row(index, of):
            return f"row({bare(index)}, {type_text(of)})"
        case WideLoad(pointer, index, of, align):
            inner = f"{bare(pointer)}, {bare(index)}, {type_text(of)}"
            return f"wide({inner}, {align})"
        case Cast(value, of):
            return f"cast({bare(value)}, {type_text(of)})"
        case Bitcast(value, of):
            return f"bits({bare(value)}, {type_text(of)})"
        case Lane(vector, number):
            return f"lane({bare(vector)}, {number})"
        case Offset() | Select() | Lanes() | Call():
            inner = ", ".join(map(bare, children(expr)))
            named = {Offset: "at", Select: "select", Lanes: "lanes"}
            name = expr.intrin.name if isinstance(expr, Call) else named[type(expr)]
            return f"{name}({inner})"
    raise TypeError(expr)


def bare(expr: Expr) -> str:
    """The expression as text, without brackets around the whole."""
    words = expr_text(expr)
    infix = isinstance(expr, Binary) and expr.op not in ("min", "max")
    return words[1:-1] if infix else words


def name_text(var: Var) -> str:
    """A name that is a word of Python's has a low line behind it: from_."""
    return f"{var.name}_" if keyword.iskeyword(var.name) else var.name
