"""Mutations that only a person thinks of, by what they do: tests/mutations/*.toml;
basic.toml says what its fields mean. Python is found on its syntax tree, C and all else
by its tokens. One place fits, or `nth` (from 1) says which.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.mutate import c_ops, python_ops
from tests.mutate.mutation import ROOT, Mutation

FOLDER = ROOT / "tests" / "mutations"
SURVIVORS = "survivors"
OPERATOR = "by hand"
FIELDS = {"name", "file", "function", "find", "put", "nth", "tests"}
_ANY = re.compile(r"_\d$")
Bound = dict[str, ast.AST]


@functools.cache
def lists() -> dict[str, tuple[dict[str, Any], ...]]:
    """What each file says, by its name."""
    return {
        path.stem: tuple(tomllib.loads(path.read_text(encoding="utf-8"))["mutation"])
        for path in sorted(FOLDER.glob("*.toml")) if path.stem != SURVIVORS
    }  # fmt: skip


def entries() -> list[dict[str, Any]]:
    return [one for found in lists().values() for one in found]


def place(entry: dict[str, Any]) -> Mutation:
    """Where one applies. Errors: ValueError unless one place, or the nth, fits."""
    source = (ROOT / entry["file"]).read_text(encoding="utf-8")
    find = _in_python if entry["file"].endswith(".py") else _in_tokens
    found = list(find(entry, source))
    nth = entry.get("nth", 0)
    if len(found) < max(nth, 1) or (not nth and len(found) > 1):
        raise ValueError(f"{entry['name']}: its place is found {len(found)} times")
    begin, end, text = found[max(nth, 1) - 1]
    return Mutation(
        entry["file"], entry.get("function", ""), OPERATOR, entry["find"],
        entry["put"], max(nth, 1) - 1, begin, end, text, entry["name"], entry["tests"],
    )  # fmt: skip


# ---- Python -----------------------------------------------------------------


def _in_python(entry: dict[str, Any], source: str) -> Iterator[tuple[int, int, str]]:
    pattern = _parsed(entry["find"])
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for function, node in _nodes(ast.parse(source)):
        bound: Bound = {}
        if function == entry.get("function", "") and _fits(pattern, node, bound):
            at: Any = node  # an expression or a statement: it has a place
            begin = lines[at.lineno - 1] + at.col_offset
            end = lines[at.end_lineno - 1] + at.end_col_offset
            yield begin, end, _filled(entry["put"], bound, node)


def _nodes(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """All with a place: of f-strings only the whole."""
    for node in ast.iter_child_nodes(tree):
        inside = function
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inside = f"{function}.{node.name}".lstrip(".")
        if hasattr(node, "lineno"):
            yield inside, node
        if not isinstance(node, ast.JoinedStr):
            yield from _nodes(node, inside)


def _parsed(text: str) -> ast.AST:
    """An expression if it is one, else a statement."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        (statement,) = ast.parse(text).body
        return statement


def _fits(pattern: Any, node: Any, bound: Bound) -> bool:
    if isinstance(pattern, ast.Name) and _ANY.match(pattern.id):
        known = bound.setdefault(pattern.id, node)
        return isinstance(node, ast.expr) and ast.dump(known) == ast.dump(node)
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_fits(a, b, bound) for a, b in zip(pattern, node, strict=True))
        )
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and bool(pattern == node)
    if isinstance(pattern, ast.expr_context):  # read or written: what is said is it
        return isinstance(node, ast.expr_context)
    return type(pattern) is type(node) and all(
        _fits(getattr(pattern, name, None), getattr(node, name, None), bound)
        for name in pattern._fields
    )


class _Fill(ast.NodeTransformer):
    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.bound.get(node.id, node)


def _filled(put: str, bound: Bound, node: ast.AST) -> str:
    """What stands there then, at the depth of what stood there."""
    depth = " " * node.col_offset  # type: ignore[attr-defined]
    if isinstance(node, ast.stmt):
        module = _Fill(bound).visit(ast.parse(put))
        return ast.unparse(module).replace("\n", "\n" + depth)
    return python_ops.text_of(_Fill(bound).visit(_parsed(put)))


# ---- C and all else ---------------------------------------------------------


def _in_tokens(entry: dict[str, Any], source: str) -> Iterator[tuple[int, int, str]]:
    found = c_ops.tokens(source)
    wanted = [token.text for token in c_ops.tokens(entry["find"])]
    for i in range(len(found) - len(wanted) + 1):
        some = found[i : i + len(wanted)]
        inside = some[0].function == entry.get("function", some[0].function)
        if inside and [token.text for token in some] == wanted:
            begin = len(source[: some[0].at].encode())
            end = len(source[: some[-1].at + len(some[-1].text)].encode())
            yield begin, end, entry["put"]


def tests_exist(entry: dict[str, Any]) -> list[str]:
    """Files that it names as tests, and that are not there."""
    words = (word.partition("::")[0] for word in entry["tests"].split())
    return [w for w in words if w.startswith("tests/") and not Path(ROOT / w).exists()]
