"""Libraries of user functions ("libmod"): made, checked, looked up by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, Problem
from pybuild.files.read import read_text
from pybuild.ir.graph import Attr, Node
from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import verify
from pybuild.ops.base.function import CALL, Arguments, Function, Meaning
from pybuild.ops.base.signatures import SIGNATURES, misfits
from pybuild.records import dataclass

# functions that every graph executor has
RESERVED = {"__nop": "reshape", "__copy": "copy"}
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_C_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.c", re.ASCII)


@dataclass(frozen=True)
class Functions:
    """Functions by name."""

    by_name: Mapping[str, Function] = field(default_factory=dict)

    def known(self) -> str:
        """The known names, for messages."""
        return ", ".join(self.by_name) or "nothing"


# what a parameter `functions` may be
AnyFunctions = Functions | Iterable[Function] | Function | None


def function(
    name: str,
    *,
    op: str = "",
    symbol: str = "",
    source: str | Path = "",
    loop: Func | None = None,
    arguments: Arguments | None = None,
    reference: Meaning | None = None,
    **attrs: Attr,
) -> Function:
    """A function that graph JSON nodes can call by `name`.

    op         an operator of ours, with its attributes as further keywords
    symbol     a C function of type crt_kernel; its pointers are the outputs, then the
               inputs, in the node's order
    source     the C file that defines the symbol: its path, or its text
    loop       loop IR; its pointers are numbered in the same order
    arguments  as in Function
    reference  numpy meaning of a symbol or loop, for checks and self-tests
    Errors     BuildError with everything that is wrong
    """
    where = f"function '{name}'"
    found = [Problem(where, *what) for what in _kind_problems(op, symbol, source, loop)]
    if name in RESERVED or not name:
        what = "is a name that every executor has" if name else "has no name"
        found.append(Problem(where, what, "take another"))
    if not op and attrs:
        what = f"has attributes ({', '.join(attrs)}), but names no operator"
        found.append(Problem(where, what, "symbols and loops take arguments="))
    if op and not (arguments is None and reference is None):
        found.append(Problem(where, "arguments= and reference= are not for operators"))
    frozen = {key: _tuples(value) for key, value in attrs.items()}
    found += [Problem(where, *what) for what in _op_problems(op, frozen)]
    found += [Problem(where, what) for what in _loop_problems(loop)]
    if found:
        raise BuildError.of(found)
    text, file = _source(where, source, symbol)
    return Function(name, op, frozen, symbol, text, file, loop, arguments, reference)


def functions(*given: Function | Iterable[Function]) -> Functions:
    """A library of functions, in the order given.

    Errors  BuildError where two have one name, or something is not a function
    """
    by_name: dict[str, Function] = {}
    found = []
    flat = [f for one in given for f in ([one] if isinstance(one, Function) else one)]
    for one in flat:
        if not isinstance(one, Function):
            hint = "make it with pybuild.function(name, ...)"
            found.append(Problem("functions", f"{one!r} is not a function", hint))
        elif one.name in by_name:
            found.append(Problem("functions", f"two are named '{one.name}'"))
        else:
            by_name[one.name] = one
    if found:
        raise BuildError.of(found)
    return Functions(by_name)


def library_of(given: AnyFunctions) -> Functions:
    """The library for a parameter `functions`: none, one, several, or a library."""
    if isinstance(given, Functions):
        return given
    if given is None:
        return Functions()
    return functions(given)


def _kind_problems(
    op: str, symbol: str, source: str | Path, loop: Func | None
) -> Iterable[tuple[str, ...]]:
    kinds = [bool(op), bool(symbol), loop is not None]
    if sum(kinds) != 1:
        which = "several" if any(kinds) else "none"
        yield f"is {which} of op=, symbol=, loop=", "give exactly one"
    if source and not symbol:
        yield "has source= without symbol=", "symbol= is the C function's name"
    if symbol and not _IDENTIFIER.fullmatch(symbol):
        yield (f"'{symbol}' is not a name of a C function",)


def _op_problems(op: str, attrs: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
    if not op:
        return
    if op not in SIGNATURES or op == CALL:
        known = ", ".join(sorted(SIGNATURES.keys() - {CALL}))
        yield f"the operator '{op}' does not exist", f"one of {known}"
        return
    least = SIGNATURES[op].least
    for what in misfits(Node(op, "", ("x",) * least, ("y",), attrs)):
        yield (what,)


def _loop_problems(loop: Func | None) -> Iterable[str]:
    if loop is None:
        return
    if not isinstance(loop, Func):
        yield "loop= is not a pybuild.ir.loop.Func"
        return
    if not _IDENTIFIER.fullmatch(loop.name):
        yield f"'{loop.name}' is not a name of a C function"
    try:
        verify(loop)
    except ValueError as error:
        yield str(error)


def _tuples(value: Attr) -> Attr:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _source(where: str, source: str | Path, symbol: str) -> tuple[str, str]:
    """The text of a C file, and its name."""
    if isinstance(source, str) and (not source or "\n" in source):
        return source, f"{symbol}.c" if source else ""
    path = Path(source)
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8"
        hint = "source= is the path of a C file, or its text with line ends"
        what = f"{path.name} cannot be read ({reason})"
        raise BuildError(where, what, hint) from None
    if not _C_FILE.fullmatch(path.name):
        hint = "letters, digits and _ . - are allowed, and it must end in .c"
        raise BuildError(where, f"'{path.name}' is not a name of a C file", hint)
    return text, path.name
