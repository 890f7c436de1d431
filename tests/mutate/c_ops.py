"""Operators on C, by its tokens: each error return, a comparison, off by one, a shift.

Only bodies of functions are touched, and no line of the preprocessor. What gcc does
not take without a warning is not drawn: `compiles`.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutate.mutation import ROOT, Mutation, numbered

_TOKEN = re.compile(
    r"""(?P<skip>\s+ | /\*.*?\*/ | //[^\n]* | ^[ \t]*\#(?:\\\n|[^\n])*)
      | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
      | 0[xX][0-9a-fA-F]+[uUlL]* | \d[\w.]* | [A-Za-z_]\w*
      | <<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^]= | .""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$")
_COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_OPEN, _CLOSE = "([{", ")]}"
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic",
         "-Werror", "-fsyntax-only")  # fmt: skip


@dataclass(frozen=True)
class Token:
    text: str
    at: int
    function: str = ""


# tokens from `first` up to `last` become the text; what is said of them
Change = tuple[int, int, str]


def tokens(source: str) -> list[Token]:
    """Those of a file, each with the function that it is in."""
    found = [
        Token(m[0], m.start()) for m in _TOKEN.finditer(source) if m["skip"] is None
    ]
    depth = 0
    name = function = ""
    named = []
    for i, token in enumerate(found):
        if depth == 0 and token.text == "(" and not name and i:
            name = found[i - 1].text
        if token.text == "{" and not (i and found[i - 1].text == '"C"'):
            function = name if depth == 0 and found[i - 1].text == ")" else function
            depth += 1
        named.append(replace(token, function=function if depth else ""))
        if token.text == "}" and depth:
            depth -= 1
        if depth == 0 and token.text in (";", "}"):
            name = function = ""
    return named


def error_return(found: list[Token], i: int) -> Iterator[Change]:
    """if (c) { return CRT_ERR_X; }: never; without an `if`: CRT_OK"""
    if found[i].text == "return" and found[i + 1].text not in ("CRT_OK", ";"):
        fails = found[i + 1].text.startswith("CRT_ERR") or found[i + 2].text == ";"
        if fails and found[i - 1].text == "{" and found[i - 2].text == ")":
            first = _opened(found, i - 2)
            if found[first - 1].text == "if":
                yield first + 1, i - 2, "0 && ({})"
                return
    elif found[i].text.startswith("CRT_ERR_") and found[i - 1].text != "return":
        yield i, i + 1, "CRT_OK"


def swap_comparison(found: list[Token], i: int) -> Iterator[Change]:
    """a < b: a <= b; a == b: a != b"""
    if found[i].text in _COMPARED:
        yield i, i + 1, _COMPARED[found[i].text]


def off_by_one(found: list[Token], i: int) -> Iterator[Change]:
    """5u: 6u and 4u"""
    number = _NUMBER.match(found[i].text)
    if number and found[i - 1].text not in ("case", "[") and found[i].text != "0":
        value = int(number[1], 0)
        yield i, i + 1, f"{value + 1}{number[2]}"
        if value > 0:
            yield i, i + 1, f"{value - 1}{number[2]}"


def other_shift(found: list[Token], i: int) -> Iterator[Change]:
    """a >> 3: a >> 4"""
    if found[i].text in ("<<", ">>", "<<=", ">>="):
        number = _NUMBER.match(found[i + 1].text)
        if number:
            yield i + 1, i + 2, f"{int(number[1], 0) + 1}{number[2]}"


def drop_term(found: list[Token], i: int) -> Iterator[Change]:
    """a + b, a - b: a, where b is a name or a number"""
    binary = found[i].text in ("+", "-") and _ends_operand(found[i - 1].text)
    ends = found[i + 2].text in (")", ";", ",", "]", "+", "-", "<", ">", "==")
    if binary and ends and _is_operand(found[i + 1].text):
        yield i, i + 2, ""


def swap_and_or(found: list[Token], i: int) -> Iterator[Change]:
    """a && b: a || b, where parentheses hold no other"""
    if found[i].text in ("&&", "||") and not _others_beside(found, i):
        yield i, i + 1, "||" if found[i].text == "&&" else "&&"


def drop_statement(found: list[Token], i: int) -> Iterator[Change]:
    """x = y; x += y; f(x); of its own: nothing"""
    if found[i - 1].text not in (";", "{", "}") or not found[i].text[0].isalpha():
        return
    end = next(j for j in range(i, len(found)) if found[j].text in (";", "{"))
    inside = [token.text for token in found[i:end]]
    if found[end].text == "{" or inside[0] in ("return", "break", "continue", "goto"):
        return
    assigns = any(t in ("=", "+=", "-=", "++", "--", "|=", "^=") for t in inside)
    declares = (len(inside) > 1 and inside[1][0].isalpha()) or "*" in inside[:3]
    if not declares and (assigns or inside[1:2] == ["("]):
        yield i, end, ""


Operator = Callable[[list[Token], int], Iterator[Change]]
OPERATORS: dict[str, Operator] = {
    one.__name__: one
    for one in (error_return, swap_comparison, off_by_one, other_shift, drop_term,
                swap_and_or, drop_statement)
}  # fmt: skip


def _opened(found: list[Token], close: int) -> int:
    depth = 0
    for i in range(close, -1, -1):
        depth += (found[i].text in _CLOSE) - (found[i].text in _OPEN)
        if depth == 0:
            return i
    return 0


def _others_beside(found: list[Token], i: int) -> bool:
    for step in (-1, 1):
        depth, j = 0, i + step
        while 0 <= j < len(found):
            text = found[j].text
            opens = text in (_OPEN if step > 0 else _CLOSE)
            if not opens and text in (_CLOSE if step > 0 else _OPEN):
                if depth == 0:
                    break
                depth -= 1
            depth += opens
            if depth == 0 and text in ("&&", "||"):
                return True
            if depth == 0 and text in (";", "?", ":", "return", "="):
                break
            j += step
    return False


def _is_operand(text: str) -> bool:
    return text[0].isalnum() or text[0] == "_"


def _ends_operand(text: str) -> bool:
    return text != "return" and (_is_operand(text) or text in (")", "]"))


def mutations(file: str, source: str) -> list[Mutation]:
    """All that the operators draw from a file of C; some may not compile."""
    found = tokens(source)
    made = []
    padded = [*found, *(Token(";", len(source)) for _ in range(3))]
    for i, token in enumerate(found):
        if token.function:
            for name, operator in OPERATORS.items():
                for change in operator(padded, i):
                    made.append(_mutation(file, source, name, found, change))
    return numbered(made)


def _mutation(
    file: str, source: str, operator: str, found: list[Token], change: Change
) -> Mutation:
    first, last, put = change
    begin, end = found[first].at, found[last - 1].at + len(found[last - 1].text)
    text = put.replace("{}", source[begin:end])
    node = " ".join(token.text for token in found[first:last])
    if len(node) < 3 or operator in ("off_by_one", "other_shift"):
        around = found[max(first - 3, 0) : last + 3]  # an operator alone says nothing
        node = " ".join(token.text for token in around)
    said = put.replace("{}", node)
    at = (len(source[:begin].encode()), len(source[:end].encode()))
    return Mutation(
        file, found[first].function, operator, node, said, 0, *at, text
    )  # fmt: skip


def compiles(mutation: Mutation) -> bool:
    """Whether gcc takes the file, with the mutation, without a warning."""
    path = ROOT / mutation.file
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        place = Path(folder) / "mutated.c"
        place.write_bytes(mutation.applied(path.read_bytes()))
        told = ["-I", str(ROOT / "crt" / "include"), "-I", str(path.parent), str(place)]
        done = subprocess.run(["gcc", *FLAGS, *told], capture_output=True)
    return done.returncode == 0
