"""Prints Loop IR as C99: one kernel, or one inline function, at a time.

Knows nothing of models, tables or files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from pybuild.dtype import DType
from pybuild.emit.kernels.block_text import block_lines
from pybuild.emit.kernels.c_blocks import Block, in_blocks
from pybuild.emit.kernels.misra import tag
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
    Intrin,
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
    offset,
    pointer_type,
)
from pybuild.ir.loop_verify import operands, statements

WIDTH = 80

# C's precedence levels: a child binds tighter than its parent or gets brackets
_LEVEL = {
    "*": 12, "/": 12, "%": 12, "+": 11, "-": 11, "<<": 10, ">>": 10,
    "<": 9, "<=": 9, "==": 8, "!=": 8, "&": 7, "^": 6, "|": 5,
}  # fmt: skip
_UNARY, _ATOM, _TERNARY = 14, 16, 2
# gcc's -Wparentheses asks for brackets where these mix with others
_WORDS = (DType.INT32, DType.UINT32)
_SIGNED = (DType.INT32, DType.INT64)
_TOUCHY = ("<<", ">>", "&", "|", "^", "<", "<=", "==", "!=")


def c_type(kind: Type) -> str:
    """The C spelling of a type; for a pointer with the star and its space."""
    if isinstance(kind, PointerType):
        return f"{'' if kind.writable else 'const '}{kind.elem.c} *"
    if isinstance(kind, VectorType):
        return f"crt_{_name(kind)} "
    return f"{kind.c} "


def _name(kind: Type) -> str:
    """The name of a type in names of functions."""
    assert not isinstance(kind, PointerType)
    if isinstance(kind, VectorType):
        return f"{kind.elem.value}{'v' if kind.grows else 'x'}{kind.lanes}"
    return kind.value


def _moved(pointer: Expr, kind: VectorType) -> str:
    """The name part of crt/vector.h's loads and stores of a vector."""
    elem = pointer_type(pointer).elem
    suffix = "" if elem is kind.elem else f"_{elem.value}"
    return f"{_name(kind)}{suffix}"


def expression(expr: Expr) -> str:
    """An expression as C."""
    return _print(expr)[0]


def _print(expr: Expr) -> tuple[str, int]:
    match expr:
        case Const(value, dtype):
            return _literal(value, dtype)
        case Var(name):
            return name, _ATOM
        case Load(pointer, index):
            return f"{_inner(pointer, _ATOM)}[{expression(index)}]", _ATOM
        case WideLoad(pointer, index, dtype):
            where = expression(offset(pointer, index))
            if isinstance(dtype, VectorType):
                return f"crt_load_{_moved(pointer, dtype)}({where})", _ATOM
            return f"crt_load_{dtype.value}({where})", _ATOM
        case Row(index):
            return f"p[{expression(index)}]", _ATOM
        case Offset(pointer, index):
            text = f"{_inner(pointer, 11)} + {_inner(index, 12)}"
            return text, _LEVEL["+"]
        case Binary("min" | "max" as op, a, b):
            assert isinstance(a.type, DType)
            args = f"{expression(a)}, {expression(b)}"
            return f"crt_{op}_{a.type.value}({args})", _ATOM
        case Binary(op, a, b):
            return _binary(op, a, b)
        case Select(condition, a, b):
            parts = (_inner(e, _TERNARY + 1) for e in (condition, a, b))
            return "{} ? {} : {}".format(*parts), _TERNARY
        case Cast(value, DType() as dtype):
            return f"({dtype.c}){_inner(value, _UNARY)}", _UNARY
        case Bitcast(value, dtype):
            names = f"crt_{_name(value.type)}_as_{_name(dtype)}"
            text = f"{names}({expression(value)})"
            return text, _ATOM
        case Call(intrin, args):
            texts = [expression(arg) for arg in args]
            if intrin.c is not None:
                return intrin.c.format(*texts), _ATOM
            return f"{intrin.name}({', '.join(texts)})", _ATOM
    raise TypeError(f"no C for {expr}")


def _binary(op: str, a: Expr, b: Expr) -> tuple[str, int]:
    if op == "-" and isinstance(a, Const) and a.value == 0 and a.type in _SIGNED:
        text = _inner(b, _UNARY)
        return (f"-({text})" if text[0] == "-" else f"-{text}"), _UNARY
    level = _LEVEL[op]
    left, right = level, level + 1
    if op in _TOUCHY:
        left = right = 13
    first = _inner(a, left)
    if op == "<<" and isinstance(a, Const) and a.type in _WORDS:
        first = f"({a.type.c}){first}"  # the result has its type; int may have 16 bits
    return f"{first} {op} {_inner(b, right)}", level


def _inner(expr: Expr, least: int) -> str:
    text, level = _print(expr)
    return text if level >= least else f"({text})"


def _literal(value: int | float, dtype: DType) -> tuple[str, int]:
    if dtype.is_float:
        short = dtype is DType.FLOAT32
        text = f"{value:.9g}" if short else f"{value:.17g}"
        if "." not in text and "e" not in text:
            text += ".0"
        return text + ("f" if short else ""), _UNARY if value < 0 else _ATOM
    number = int(value)
    if dtype is DType.UINT64:
        return f"UINT64_C({number})", _ATOM
    if dtype is DType.UINT32:
        return f"{number}u", _ATOM
    if dtype is DType.INT64:
        least = number == -(2**63)
        return "INT64_MIN" if least else f"INT64_C({number})", _ATOM
    if number == -(2**31):
        return "INT32_MIN", _ATOM
    small = (DType.INT8, DType.INT16, DType.UINT8, DType.UINT16)
    if dtype in small and number:
        return f"({dtype.c}){number}" if number > 0 else f"({dtype.c})({number})", 14
    return str(number), _UNARY if number < 0 else _ATOM


def statement(stmt: Stmt, depth: int) -> list[str]:
    """One statement as indented lines."""
    pad = "    " * depth
    match stmt:
        case Let(var, value):
            head = f"{pad}{c_type(var.type)}{var.name} ="
            return _wrapped(f"{head} {expression(value)};", depth)
        case Assign(var, value):
            return _assign(var, value, depth)
        case Store(pointer, index, value) if isinstance(index.type, VectorType):
            assert isinstance(value.type, VectorType)
            name = f"{pad}crt_scatter_{_moved(pointer, value.type)}"
            given = ", ".join(map(expression, (pointer, index, value)))
            return _wrapped(f"{name}({given});", depth)
        case Store(pointer, index, value) if isinstance(value.type, VectorType):
            where = expression(offset(pointer, index))
            name = f"{pad}crt_store_{_moved(pointer, value.type)}"
            given = ", ".join([where, *map(expression, operands(stmt)[2:])])
            return _wrapped(f"{name}({given});", depth)
        case Store(pointer, index, value, wide=True):
            where = expression(offset(pointer, index))
            return _wrapped(
                f"{pad}crt_store_int32({where}, {expression(value)});", depth
            )
        case Store(pointer, index, value):
            target = expression(Load(pointer, index))
            return _wrapped(f"{pad}{target} = {expression(value)};", depth)
        case For(var, start, stop, step, body, rolled):
            advance = f"{var.name}++" if step == 1 else f"{var.name} += {step}"
            head = f"{pad}for (int32_t {var.name} = {expression(start)}; "
            limit = _inner(stop, 10)
            head += f"{var.name} < {limit}; {advance}) {{"
            hint = [f"{pad}CRT_ROLLED"] if rolled else []
            return [
                *hint,
                *_wrapped(head, depth),
                *_lines(body, depth + 1),
                f"{pad}}}",
            ]
        case If(condition, body, otherwise):
            lines = _wrapped(f"{pad}if ({expression(condition)}) {{", depth)
            lines += _lines(body, depth + 1)
            if otherwise:
                lines += [f"{pad}}} else {{", *_lines(otherwise, depth + 1)]
            return [*lines, f"{pad}}}"]
        case Part(piece, _, args):
            call = f"{pad}{piece}({', '.join(map(expression, args))});"
            return _wrapped(call, depth)


def _assign(var: Var, value: Expr, depth: int) -> list[str]:
    pad = "    " * depth
    if isinstance(value, Binary) and value.a == var and value.op in ("+", "-", "*"):
        return _wrapped(f"{pad}{var.name} {value.op}= {expression(value.b)};", depth)
    return _wrapped(f"{pad}{var.name} = {expression(value)};", depth)


def _lines(body: tuple[Stmt, ...], depth: int) -> list[str]:
    lines: list[str] = []
    for one in in_blocks(body):
        if isinstance(one, Block):
            whole = (one.loop,) if one.loop else one.body
            plain = [line for stmt in whole for line in statement(stmt, depth)]
            lines += block_lines(one, depth, plain, expression)
        else:
            lines += statement(one, depth)
    return lines


def _wrapped(line: str, depth: int) -> list[str]:
    """Broken behind commas and operators, where brackets are fewest."""
    if len(line) <= WIDTH:
        return [line]
    pad = "    " * (depth + 1)
    spaces = [at for at, char in enumerate(line) if char == " " and at >= len(pad)]
    spaces = [at for at in spaces if line[:at].strip()]
    fitting = [at for at in spaces if at <= WIDTH] or spaces[:1]
    if not fitting:
        return [line]
    late = [at for at in fitting if at >= WIDTH // 2] or fitting
    at = min(late, key=lambda at: (_breaks(line, at), -at))
    return [line[:at], *_wrapped(pad + line[at + 1 :], depth)]


def _head(head: str) -> list[str]:
    """The head of a function, broken after the bracket if the first parameter does not
    fit."""
    name, rest = head.split("(", 1)
    if len(head) <= WIDTH or len(f"{name}({rest.split(',')[0]},") <= WIDTH:
        return _wrapped(head, 1)
    return [f"{name}(", *_wrapped(f"        {rest}", 1)]


def _breaks(line: str, at: int) -> tuple[bool, int]:
    """How much a break at that space takes apart: words, then brackets."""
    before = line[:at]
    depth = before.count("(") + before.count("[")
    depth -= before.count(")") + before.count("]")
    of_choice = line[at + 1 : at + 2] in "?:"
    return not of_choice and (before[-1].isalnum() or before[-1] in "?:"), depth


def function(func: Func, comment: Sequence[str] = (), linkage: str = "static ") -> str:
    """A kernel as a C function; `comment` says what it is for, in lines."""
    lines = [*comment]
    lines += _head(f"{linkage}void {func.name}(void *const *p, const int32_t *a)")
    lines.append("{")
    if not func.args:
        lines.append("    (void)a;")
    for number, arg in enumerate(func.args):
        lines.append(f"    const int32_t {arg.name} = a[{number}];")
    for var, length in func.arrays:
        assert isinstance(var.type, PointerType)
        lines.append(f"    {var.type.elem.c} {var.name}[{length}];")
    assigned = {s.var for s in statements(func.body) if isinstance(s, Assign)}
    for stmt in func.body:
        text = statement(stmt, 1)
        if isinstance(stmt, Let) and stmt.var not in assigned:
            text = _bound(stmt, text, func.in_place)
        lines += text
    return "\n".join([*lines, "}", ""])


def _bound(stmt: Let, text: list[str], in_place: bool) -> list[str]:
    """A variable of the whole kernel: const, or a pointer that nothing overlaps."""
    if not isinstance(stmt.var.type, PointerType):
        first = text[0].replace("    ", "    const ", 1)
    elif isinstance(stmt.value, Row) and not in_place:
        first = text[0].replace(" *", " *restrict ", 1)
    else:
        return text
    return [first, *text[1:]] if len(first) <= WIDTH else text


def inline_function(intrin: Intrin) -> str:
    """The meaning of an intrinsic, or a piece of kernels, as a C function."""
    if isinstance(intrin, Piece):
        star = "*" if intrin.in_place else "*restrict "
        given = (c_type(p.type).replace("*", star) + p.name for p in intrin.params)
        lines = _told(intrin)
        head = f"CRT_PART void {intrin.name}({', '.join(given)})"
        body = _lines(intrin.body, 1)
        return "\n".join([*lines, *_head(head), "{", *body, "}", ""])
    lines = _told(intrin)
    params = ", ".join(f"{c_type(p.type)}{p.name}" for p in intrin.params)
    head = f"CRT_INLINE {c_type(intrin.result.type)}{intrin.name}({params})"
    lines += [*_head(head), "{"]
    for var, value in intrin.lets:
        lines += statement(Let(var, value), 1)
    lines += _wrapped(f"    return {expression(intrin.result)};", 1)
    return "\n".join([*lines, "}", ""])


def _told(intrin: Intrin) -> list[str]:
    """The description of an intrinsic, and the MISRA rules that it deviates from."""
    rules = tag(intrin)
    words = [intrin.doc] if intrin.doc else []
    words += [f"MISRA {rules}"] if rules else []
    return block_comment("\n".join(words)) if words else []


def block_comment(text: str, indent: int = 0) -> list[str]:
    """A comment of one or more lines within the page's width."""
    lines = _framed(
        wrapped
        for line in text.splitlines() or [""]
        for wrapped in _filled(line, "", indent) or [""]
    )
    return [" " * indent + line for line in lines]


def field_comment(fields: Sequence[tuple[str, str]]) -> list[str]:
    """A comment of labels and texts, each text in a column."""
    wide = max((len(label) for label, _ in fields), default=0) + 2
    return _framed(
        wrapped
        for label, text in fields
        for wrapped in _filled(f"{label:<{wide}}{text}", " " * wide)
    )


def _filled(line: str, more: str, indent: int = 0) -> list[str]:
    """Within the page's width; spaces that begin a line stay, and begin the next."""
    start = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        comment_text(line),
        WIDTH - 6 - indent,
        subsequent_indent=start + more,
        break_on_hyphens=False,
    )


def _framed(lines: Iterable[str]) -> list[str]:
    parts = list(lines)
    if not parts:
        return []
    if len(parts) == 1:
        return [f"/* {parts[0]} */"]
    return [f"/* {parts[0]}", *(f" * {p}".rstrip() for p in parts[1:-1]),
            f" * {parts[-1]} */"]  # fmt: skip


def comment_text(text: str) -> str:
    """The text in a form that is safe in a comment: nothing ends it or begins another,
    no line joins the next (a backslash, or its trigraph), and every character is
    visible."""
    seen = "".join(c if c.isprintable() else f"<{ord(c):X}>" for c in text)
    for bad, good in (("*/", "* /"), ("/*", "/ *"), ("\\", "<5C>"), ("??", "? ?")):
        while bad in seen:
            seen = seen.replace(bad, good)
    return seen


def fold(line: str) -> list[str]:
    """Broken at spaces, none of them in a string."""
    if len(line) <= 80:
        return [line]
    strings = [m.span() for m in re.finditer(r'"(?:[^"\\]|\\.)*"', line)]
    spaces = [
        at
        for at, char in enumerate(line)
        if char == " " and at >= 4 and not any(a < at < b for a, b in strings)
    ]
    if not spaces:
        return [line]
    at = max((at for at in spaces if at < 80), default=spaces[0])
    return [line[:at], *fold("    " + line[at + 1 :])]
