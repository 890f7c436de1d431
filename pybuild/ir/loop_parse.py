"""Kernels from the text that loop_text.py writes."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from typing import Any

from pybuild.dtype import DType
from pybuild.ir.loop import (
    COMPARISONS,
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
    PointerType,
    Row,
    Select,
    Stmt,
    Store,
    Type,
    Var,
    VectorType,
    WideLoad,
)
from pybuild.ir.loop_text import SHORT
from pybuild.ir.loop_verify import verify

_TYPES = {short: dtype for dtype, short in SHORT.items()}
_OPERATORS: Mapping[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_Scope = dict[str, Var]


def parse(source: str) -> Func:
    """The kernel of a text: parse(text(func)) == func.

    Errors  ValueError naming the line, or what verify() finds
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    reader = _Reader()
    *before, last = tree.body
    for one in before:
        reader.intrin(_function(one))
    func = reader.kernel(_function(last))
    verify(func)
    return func


def _fault(node: ast.AST, what: str) -> ValueError:
    return ValueError(f"line {getattr(node, 'lineno', 0)}: {what}")


def _function(node: ast.stmt) -> ast.FunctionDef:
    if not isinstance(node, ast.FunctionDef):
        raise _fault(node, f"'{ast.unparse(node)}' stands outside a function")
    return node


def _type(node: ast.expr | None) -> Type:
    match node:
        case ast.Name(name) if name in _TYPES:
            return _TYPES[name]
        case ast.Call(ast.Name("ptr" | "mut" as word), [ast.Name(name)]):
            return PointerType(_TYPES[name], word == "mut")
        case ast.Call(
            ast.Name("vec" | "grows" as word),
            [ast.Name(name), ast.Constant(int(lanes))],
        ):
            return VectorType(_TYPES[name], lanes, word == "grows")
    if node is None:
        raise ValueError("a name has no type")
    raise _fault(node, f"'{ast.unparse(node)}' is not a type")


def _plain(name: str) -> str:
    """from_ is from: see loop_text.name_text."""
    short = name.removesuffix("_")
    return short if keyword.iskeyword(short) else name


def _is(word: str, node: ast.FunctionDef) -> bool:
    """True if the word is a decorator of the function."""
    return any(isinstance(d, ast.Name) and d.id == word for d in node.decorator_list)


def _documented(node: ast.FunctionDef) -> tuple[str, list[ast.stmt]]:
    """The docstring of a function, and its body without it."""
    doc = ast.get_docstring(node) or ""
    return doc, node.body[1:] if doc else node.body


class _Reader:
    """intrins  machine instructions that the text has defined so far, by name"""

    def __init__(self) -> None:
        self.intrins: dict[str, Intrin] = {}

    def intrin(self, node: ast.FunctionDef) -> None:
        said: dict[str, Any] = {}
        for mark in node.decorator_list:
            assert isinstance(mark, ast.Call)
            said = {k.arg or "": ast.literal_eval(k.value) for k in mark.keywords}
        scope = self._params(node)
        params, lets = tuple(scope.values()), []
        said["doc"], (*inner, last) = _documented(node)
        for line in inner:
            let = self._stmt(line, scope)
            if not isinstance(let, Let):
                raise _fault(line, "a meaning has only names and a value")
            lets.append((let.var, let.value))
        if not isinstance(last, ast.Return) or last.value is None:
            raise _fault(last, "a meaning ends with its value")
        result = self.expr(last.value, scope)
        made = Intrin(node.name, params, result, tuple(lets), **said)
        self.intrins[node.name] = made

    def kernel(self, node: ast.FunctionDef) -> Func:
        scope = self._params(node)
        args, arrays = tuple(scope.values()), []
        doc, body = _documented(node)
        while body and isinstance(body[0], ast.AnnAssign) and body[0].value is None:
            array = body.pop(0)
            match array:
                case ast.AnnAssign(
                    ast.Name(name),
                    ast.Call(ast.Name("array"), [ast.Name(elem), ast.Constant(length)]),
                ):
                    scope[name] = Var(_plain(name), PointerType(_TYPES[elem], True))
                    arrays.append((scope[name], int(str(length))))
                case _:
                    raise _fault(array, "is not an array")
        made = self._block(body, scope)
        in_place, ordered = _is("in_place", node), _is("ordered", node)
        return Func(node.name, args, tuple(arrays), made, in_place, doc, ordered)

    def _params(self, node: ast.FunctionDef) -> _Scope:
        return {a.arg: Var(_plain(a.arg), _type(a.annotation)) for a in node.args.args}

    def _block(self, body: list[ast.stmt], outer: _Scope) -> tuple[Stmt, ...]:
        scope = dict(outer)
        found: list[Stmt] = []
        waiting = list(body)
        while waiting:
            line = waiting.pop(0)
            if isinstance(line, ast.Pass):
                continue
            if isinstance(line, ast.FunctionDef):
                found.append(self._part(line, waiting.pop(0), scope))
            else:
                found.append(self._stmt(line, scope))
        return tuple(found)

    def _part(self, node: ast.FunctionDef, call: ast.stmt, scope: _Scope) -> Part:
        match call:
            case ast.Expr(ast.Call(ast.Name(name), given)) if name == node.name:
                args = tuple(self.expr(arg, scope) for arg in given)
            case _:
                raise _fault(call, f"the call of {node.name} must follow it")
        inner = self._params(node)
        doc, lines = _documented(node)
        body, params = self._block(lines, inner), tuple(inner.values())
        return Part(node.name, params, args, body, _is("in_place", node), doc)

    def _stmt(self, node: ast.stmt, scope: _Scope) -> Stmt:
        match node:
            case ast.AnnAssign(ast.Name(name), of, ast.expr() as value):
                made = Let(Var(_plain(name), _type(of)), self.expr(value, scope))
                scope[name] = made.var
                return made
            case ast.Assign([ast.Name(name)], value):
                return Assign(self._name(node, name, scope), self.expr(value, scope))
            case ast.Assign([ast.Subscript(pointer, index)], value):
                at = self.expr(pointer, scope), self.expr(index, scope)
                return Store(*at, self.expr(value, scope))
            case ast.Expr(ast.Call(ast.Name("store_wide"), given)):
                pointer_, index_, value_ = (self.expr(e, scope) for e in given)
                return Store(pointer_, index_, value_, True)
            case ast.Expr(ast.Call(ast.Name("store_some"), given)):
                pointer_, index_, value_, count = (self.expr(e, scope) for e in given)
                return Store(pointer_, index_, value_, count=count)
            case ast.For(ast.Name(name), ast.Call(ast.Name(word), turns), body):
                return self._loop(name, word, turns, body, scope)
            case ast.If(ast.Call(ast.Name("rare"), [test]), body, otherwise):
                return self._choice(test, body, otherwise, scope, True)
            case ast.If(test, body, otherwise):
                return self._choice(test, body, otherwise, scope, False)
        raise _fault(node, f"'{ast.unparse(node)}' is not a statement of a kernel")

    def _choice(
        self, test: ast.expr, body: list[ast.stmt], otherwise: list[ast.stmt],
        scope: _Scope, rare: bool,
    ) -> If:  # fmt: skip
        condition = self.expr(test, scope)
        inner = self._block(body, scope)
        return If(condition, inner, self._block(otherwise, scope), rare)

    def _loop(
        self, name: str, word: str, turns: list[ast.expr], body: list[ast.stmt],
        scope: _Scope,
    ) -> For:  # fmt: skip
        start, stop = (self.expr(e, scope) for e in turns[:2])
        step = int(ast.literal_eval(turns[2]))
        var = Var(_plain(name), INT32)
        inner = self._block(body, {**scope, name: var})
        return For(var, start, stop, step, inner, word == "rolled")

    def _name(self, node: ast.AST, name: str, scope: _Scope) -> Var:
        if name not in scope:
            raise _fault(node, f"'{name}' is not known")
        return scope[name]

    def expr(self, node: ast.expr, scope: _Scope) -> Expr:
        match node:
            case ast.Constant(int(value)):
                return Const(value, INT32)
            case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
                return Const(-value, INT32)
            case ast.Name(name):
                return self._name(node, name, scope)
            case ast.Subscript(pointer, index):
                return Load(self.expr(pointer, scope), self.expr(index, scope))
            case ast.BinOp(a, op, b):
                return self._binary(_OPERATORS[type(op)], a, b, scope)
            case ast.Compare(a, [op], [b]) if _OPERATORS[type(op)] in COMPARISONS:
                return self._binary(_OPERATORS[type(op)], a, b, scope)
            case ast.Call(ast.Name(name), given):
                return self._call(node, name, given, scope)
        raise _fault(node, f"'{ast.unparse(node)}' is not an expression of a kernel")

    def _binary(self, op: str, a: ast.expr, b: ast.expr, scope: _Scope) -> Binary:
        return Binary(op, self.expr(a, scope), self.expr(b, scope))

    def _call(
        self, node: ast.expr, name: str, given: list[ast.expr], scope: _Scope
    ) -> Expr:
        if name in _TYPES:
            value = ast.literal_eval(given[0])
            real = _TYPES[name].is_float
            return Const(float(value) if real else int(value), _TYPES[name])
        if name in ("row", "cast", "bits"):
            inner, of = self.expr(given[0], scope), _type(given[1])
            kinds: Mapping[str, Any] = {"row": Row, "cast": Cast, "bits": Bitcast}
            made: Expr = kinds[name](inner, of)
            return made
        if name == "wide":
            wide = _type(given[2])
            assert isinstance(wide, DType | VectorType)
            pointer, index = (self.expr(e, scope) for e in given[:2])
            return WideLoad(pointer, index, wide, int(ast.literal_eval(given[3])))
        if name == "lane":
            return Lane(self.expr(given[0], scope), int(ast.literal_eval(given[1])))
        args = [self.expr(e, scope) for e in given]
        if name in ("min", "max"):
            return Binary(name, *args)
        if name in ("at", "select"):
            return Offset(*args) if name == "at" else Select(*args)
        if name == "lanes":
            return Lanes(tuple(args))
        if name not in self.intrins:
            raise _fault(node, f"'{name}' is not known")
        return Call(self.intrins[name], tuple(args))
