"""Hashes what a figure depends on: sources without names and comments, and the bytes of
a program for a board. Knows no table.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import io
import json
import keyword
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, models_folder
from tests.figures.tools import processor, versions
from tests.graphs.real_models import FILES

SHORT = 20  # hexadecimal digits of a key: 80 bits
# what every build reads, beside Python
BUILT_OF = ("crt/include", "crt/src", "boards", "examples")
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_LAYOUT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_KNOWN = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins)}


def hashed(*parts: object) -> str:
    """The key of these parts, each of them JSON, bytes or text."""
    made = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part).encode()
        made.update(f"{len(data)} ".encode() + data)
    return made.hexdigest()[:SHORT]


# ---- Python -------------------------------------------------------------------

# a token of a name, or of anything else
Token = tuple[bool, str]


def tokens(text: str) -> list[Token]:
    """Those of a source, without comments, docstrings and the layout of lines."""
    read = tokenize.generate_tokens(io.StringIO(text).readline)
    seen = [one for one in read if one.type not in (tokenize.COMMENT, tokenize.NL)]
    found: list[Token] = []
    skipped = -1  # the end of a statement that is a docstring
    for at, token in enumerate(seen):
        if token.type in _LAYOUT:
            if at != skipped:
                found.append((False, tokenize.tok_name[token.type]))
        elif token.type == tokenize.STRING and _is_docstring(seen, at):
            skipped = at + 1
        elif token.string == ")" and found[-1] == (False, ","):
            found[-1] = (False, ")")  # a comma at the end is layout
        else:
            found.append((token.type == tokenize.NAME, token.string))
    return found


def _is_docstring(seen: Sequence[tokenize.TokenInfo], at: int) -> bool:
    """Whether a statement is a text alone: nothing reads it."""
    starts = at == 0 or seen[at - 1].type in _LAYOUT
    ends = seen[at + 1].type == tokenize.NEWLINE
    return starts and ends


def own_names(text: str) -> set[str]:
    """Names that a source gives: to functions, arguments, variables and fields."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return {name for name in found if not name.startswith("__")} - _KNOWN


@functools.cache
def _read(path: Path) -> tuple[list[Token], set[str]]:
    text = path.read_text()
    return tokens(text), own_names(text)


def without_names(paths: Iterable[Path], before: dict[str, int] | None = None) -> str:
    """The hash of sources in which each name of their own is a number: another name,
    everywhere, is the same hash; a swap of two names is another.

    before  numbers that names have already; it gets those of these sources, too
    """
    numbers = {} if before is None else before
    read = [_read(path) for path in paths]
    own = set(numbers).union(*(names for _, names in read))
    files = [[(n and t in own, t) for n, t in found] for found, _ in read]
    # in an order that no name decides
    files.sort(key=lambda one: [("" if mine else text) for mine, text in one])
    made = hashlib.sha256()
    for one in files:
        for mine, text in one:
            word = f"@{numbers.setdefault(text, len(numbers))}" if mine else text
            made.update(f"{word}\0".encode())
        made.update(b"\n")
    return made.hexdigest()


@functools.cache
def _package() -> tuple[str, dict[str, int]]:
    """The hash of pybuild, and the numbers of its names."""
    numbers: dict[str, int] = {}
    files = sorted((ROOT / "pybuild").rglob("*.py"))
    return without_names(files, numbers), numbers


def imported(module: str) -> set[Path]:
    """The files of tests that a module needs, its own among them."""
    found: set[Path] = set()
    left = [module]
    while left:
        path = ROOT / (left.pop().replace(".", "/") + ".py")
        if path in found or not path.is_file():
            continue
        found.add(path)
        left += _imports(path)
    return {path for path in found if path.is_relative_to(ROOT / "tests")}


@functools.cache
def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{name.name}" for name in node.names]
    return found


# ---- all that a figure of this machine depends on -----------------------------


@functools.cache
def sources(module: str) -> str:
    """The key of all that the figures of a module of tests depend on: pybuild, crt,
    boards, the module and what it imports, examples, models, versions of tools."""
    package, numbers = _package()
    files = sorted(imported(module))
    own = without_names(files, dict(numbers))
    # names of files are data, too: what a test reads by name lies beside it
    beside = sorted({p for f in files for p in f.parent.glob("*.toml")})
    texts = [path.read_text() for path in beside]
    return hashed(package, own, texts, _others(), versions())


def machine_key(module: str) -> str:
    """The key of seconds: of the same, on this processor."""
    return hashed(sources(module), processor())


@functools.cache
def _others() -> str:
    made = [hashed(_bytes_of(path)) for path in _files(BUILT_OF)]
    made += [hashed(path.read_bytes()) for path in _models()]
    return hashed(made)


def _models() -> list[Path]:
    return [p for name in FILES if (p := models_folder() / name).is_file()]


def _files(folders: Sequence[str]) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            hidden = {"__pycache__", "build"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and path.suffix != ".md" and not hidden:
                yield path


def _bytes_of(path: Path) -> bytes:
    """Of C without comments, which no compiler reads."""
    if path.suffix not in (".c", ".h"):
        return path.read_bytes()
    text = _COMMENT.sub(lambda found: found[1] or " ", path.read_text())
    return " ".join(text.split(" ")).encode()


# ---- a program for a board ----------------------------------------------------


@functools.cache
def counting() -> str:
    """The key of what counts instructions in a simulator."""
    room = ROOT / "pybuild" / "boards" / "simulators"
    files = [*sorted(room.glob("*.py")), ROOT / "pybuild" / "boards" / "bench.py"]
    python = without_names(files)
    return hashed(python, [hashed(_bytes_of(p)) for p in _files(("boards/host",))])


def image(path: Path) -> str:
    """The key of a linked program: what it loads and where, and the places and sizes
    of what symbols stand for; not what they are called."""
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        elf = ELFFile(file)
        parts: list[object] = [elf["e_machine"], elf["e_entry"]]
        for section in elf.iter_sections():
            if not section["sh_flags"] & 2:  # is not in the program's memory
                continue
            kept = section["sh_type"] != "SHT_NOBITS"
            data = hashlib.sha256(section.data()).hexdigest() if kept else ""
            parts.append([section.name, section["sh_addr"], section["sh_size"], data])
        table: Any = elf.get_section_by_name(".symtab")
        places = {
            (s["st_value"], s["st_size"], s["st_info"]["type"])
            for s in (table.iter_symbols() if table else ())
            if s["st_size"]
        }
        return hashed(parts, sorted(places))
