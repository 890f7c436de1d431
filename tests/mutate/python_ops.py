"""Operators on the syntax tree of Python: `a < b` becomes `a <= b`, a check is
removed, a pass skipped. Each gives what may stand in place of a node.

Names of types, decorators, messages of errors and texts are left alone.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.mutate.mutation import Mutation, numbered

Put = Any  # another node, or text for a whole statement
Operator = Callable[[ast.AST], Iterator[Put]]

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OTHER_NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum",
    "maximum": "minimum", "rint": "floor", "round": "int", "ceil": "floor",
    "floor": "ceil",
}  # fmt: skip
_SHIFTS = (ast.LShift, ast.RShift)
_ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, *_SHIFTS)
_MAY_BE_EQUAL = {"exchange_operands", "swap_branches"}
# what is never mutated inside: no behaviour, or that of messages
_LEFT_OUT = (ast.JoinedStr, ast.Raise)
_IN_ANY_ORDER = {"isinstance", "min", "max"}
_TEXTS = {"told", "warn", "BuildError", "Problem", "TypeVar", "lru_cache"}


def _with(node: ast.AST, **fields: object) -> ast.AST:
    made = copy.copy(node)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def swap_comparison(node: ast.AST) -> Iterator[Put]:
    """a < b: a <= b; a == b: a != b"""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            ops = [*node.ops[:i], _SWAPPED[type(op)](), *node.ops[i + 1 :]]
            yield _with(node, ops=ops)


def off_by_one(node: ast.AST) -> Iterator[Put]:
    """5: 6 and 4; range(n): range(n - 1)"""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _with(node, value=node.value + 1)
        if node.value > 0:
            yield _with(node, value=node.value - 1)
    elif _called(node) == "range" and isinstance(node, ast.Call) and node.args:
        at = 0 if len(node.args) == 1 else 1
        less = ast.BinOp(node.args[at], ast.Sub(), ast.Constant(1))
        yield _with(node, args=[*node.args[:at], less, *node.args[at + 1 :]])


def drop_term(node: ast.AST) -> Iterator[Put]:
    """a + b: a and b; a - b: a"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield node.left
        if isinstance(node.op, ast.Add):
            yield node.right


def drop_factor(node: ast.AST) -> Iterator[Put]:
    """a * b: a"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield node.left


def other_shift(node: ast.AST) -> Iterator[Put]:
    """a >> b: a >> b + 1"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SHIFTS):
        yield _with(node, right=ast.BinOp(node.right, ast.Add(), ast.Constant(1)))


def other_rounding(node: ast.AST) -> Iterator[Put]:
    """a // b: -(-a // b) and the other way round"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        minus = ast.UnaryOp(ast.USub(), node.left)
        yield ast.UnaryOp(ast.USub(), ast.BinOp(minus, ast.FloorDiv(), node.right))
    divided = _negated(node)
    if isinstance(divided, ast.BinOp) and isinstance(divided.op, ast.FloorDiv):
        plain = _negated(divided.left)
        if plain is not None:
            yield _with(divided, left=plain)


def exchange_operands(node: ast.AST) -> Iterator[Put]:
    """a - b: b - a; f(a, b): f(b, a)"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ORDERED):
        yield _with(node, left=node.right, right=node.left)
    elif isinstance(node, ast.Call) and _called(node) not in {
        "isinstance",
        "min",
        "max",
    }:
        for i, (a, b) in enumerate(zip(node.args, node.args[1:], strict=False)):
            if not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred):
                yield _with(node, args=[*node.args[:i], b, a, *node.args[i + 2 :]])


def swap_and_or(node: ast.AST) -> Iterator[Put]:
    """a and b: a or b"""
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def drop_condition(node: ast.AST) -> Iterator[Put]:
    """a and b: a and b each alone; not a: a; of a comprehension: its `if`"""
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            left = [*node.values[:i], *node.values[i + 1 :]]
            yield left[0] if len(left) == 1 else _with(node, values=left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        for i, one in enumerate(node.generators):
            if one.ifs:
                without = _with(one, ifs=one.ifs[1:])
                generators = [*node.generators[:i], without, *node.generators[i + 1 :]]
                yield _with(node, generators=generators)


def swap_branches(node: ast.AST) -> Iterator[Put]:
    """a if c else b: b if c else a"""
    if isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)


def other_function(node: ast.AST) -> Iterator[Put]:
    """min: max, any: all, rint: floor"""
    if isinstance(node, ast.Call) and (other := _OTHER_NAMES.get(_called(node))):
        if isinstance(node.func, ast.Name):
            yield _with(node, func=_with(node.func, id=other))
        elif isinstance(node.func, ast.Attribute):
            yield _with(node, func=_with(node.func, attr=other))


def drop_keyword(node: ast.AST) -> Iterator[Put]:
    """f(a, b=c): f(a)"""
    if isinstance(node, ast.Call):
        for i, one in enumerate(node.keywords):
            if one.arg not in (None, "strict", "key"):
                yield _with(
                    node, keywords=[*node.keywords[:i], *node.keywords[i + 1 :]]
                )


def remove_check(node: ast.AST) -> Iterator[Put]:
    """`if c: raise`: the condition is False; `assert c` of values: True"""
    if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
        yield _with(node, test=ast.Constant(False))
    elif isinstance(node, ast.Assert) and not _for_types(node.test):
        yield _with(node, test=ast.Constant(True))


def skip_entry(node: ast.AST) -> Iterator[Put]:
    """An entry of a table of the module, such as a pass of PIPELINE, is left out."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.col_offset == 0:
        table = node.value
        if isinstance(table, ast.Tuple | ast.List) and len(table.elts) > 2:
            for i in range(len(table.elts)):
                elts = [*table.elts[:i], *table.elts[i + 1 :]]
                yield _with(node, value=_with(table, elts=elts))
        elif isinstance(table, ast.Dict) and len(table.keys) > 2 and all(table.keys):
            for i in range(len(table.keys)):
                keys = [*table.keys[:i], *table.keys[i + 1 :]]
                values = [*table.values[:i], *table.values[i + 1 :]]
                yield _with(node, value=_with(table, keys=keys, values=values))


def drop_statement(node: ast.AST) -> Iterator[Put]:
    """f(a), x += 1, x[i] = 1, continue: nothing"""
    called = isinstance(node, ast.Expr) and _called(node.value)
    stored = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Subscript | ast.Attribute
    )
    changed = isinstance(node, ast.AugAssign | ast.Continue | ast.Break)
    if stored or changed or (called and called not in _TEXTS):
        yield "pass"


def return_early(node: ast.AST) -> Iterator[Put]:
    """A procedure ends before its last statement; `if c: return x` never does."""
    if isinstance(node, ast.If) and not node.orelse:
        if isinstance(node.body[-1], ast.Return) and not _for_types(node.test):
            yield _with(node, test=ast.Constant(False))
    elif isinstance(node, ast.FunctionDef) and len(node.body) > 1:
        left_out = isinstance(node.body[-1], ast.FunctionDef | ast.Raise)
        gives = (isinstance(n, ast.Return) and n.value for n in ast.walk(node))
        if not left_out and not any(gives):
            yield _with(node, body=[*node.body[:-1], ast.Return()])


OPERATORS: dict[str, Operator] = {
    name: found
    for name, found in list(globals().items())
    if callable(found) and getattr(found, "__module__", "") == __name__
    and not name.startswith("_")
}  # fmt: skip


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _negated(node: ast.AST) -> ast.expr | None:
    """What a minus stands before."""
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return node.operand if minus else None  # type: ignore[attr-defined]


def _for_types(test: ast.AST) -> bool:
    """Whether a check may be for mypy alone."""
    if isinstance(test, ast.BoolOp):
        return any(_for_types(value) for value in test.values)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        return True
    return _called(test) in {"isinstance", "callable"}


# ---- where they apply -------------------------------------------------------


def places(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Each node that may be mutated, with the function that it is in."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _is_left_out(node):
                continue
            inside = function
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                inside = f"{function}.{node.name}".lstrip(".")
            yield inside, node
            yield from places(node, inside)


def _is_left_out(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, _LEFT_OUT) or _called(node) in _TEXTS


def _changed(old: ast.AST, new: ast.AST) -> tuple[ast.AST, ast.AST]:
    """The smallest part that differs: of an `if` its test, of a table its entries."""
    if isinstance(old, ast.If | ast.Assert) and isinstance(new, type(old)):
        return old.test, new.test
    if isinstance(old, ast.FunctionDef) and isinstance(new, ast.FunctionDef):
        return old.body[-1], new.body[-1]
    if isinstance(old, ast.Assign | ast.AnnAssign) and isinstance(new, type(old)):
        assert old.value is not None and new.value is not None
        return old.value, new.value
    return old, new


def _said(old: ast.AST, new: Put, texts: tuple[str, str]) -> tuple[str, str]:
    """What people and the list of survivors are told: of a table only the entry."""
    table = isinstance(old, ast.Tuple | ast.List | ast.Dict)
    if table and isinstance(new, type(old)):
        name = "keys" if isinstance(old, ast.Dict) else "elts"
        left = [ast.dump(one) for one in getattr(new, name)]
        for i, one in enumerate(getattr(old, name)):
            if i >= len(left) or ast.dump(one) != left[i]:
                return ast.unparse(one), "nothing"
    return texts


def mutations(file: str, source: str) -> list[Mutation]:
    """All of a file that the operators draw; none that is equal to what is there."""
    tree = ast.parse(source)
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = []
    for function, node in places(tree):
        for name, operator in OPERATORS.items():
            for put in operator(node):
                if name not in _MAY_BE_EQUAL or ast.dump(put) != ast.dump(node):
                    found.append(_mutation(file, function, name, node, put, lines))
    return numbered(found)


def _mutation(
    file: str, function: str, operator: str, node: ast.AST, put: Put, lines: list[int]
) -> Mutation:
    old: ast.AST = node
    new: Put = put
    if not isinstance(put, str):
        old, new = _changed(node, put)
    text = new if isinstance(new, str) else text_of(new)
    begin = lines[old.lineno - 1] + old.col_offset  # type: ignore[attr-defined]
    end = lines[old.end_lineno - 1] + old.end_col_offset  # type: ignore[attr-defined]
    said = _said(old, new, (ast.unparse(old), text))
    return Mutation(file, function, operator, *said, begin=begin, end=end, text=text)


def text_of(node: ast.AST) -> str:
    """As it can stand anywhere in an expression."""
    text = ast.unparse(ast.fix_missing_locations(node))
    alone = (ast.Constant, ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.stmt,
             ast.Tuple, ast.List, ast.Dict)  # fmt: skip
    return text if isinstance(node, alone) else f"({text})"
