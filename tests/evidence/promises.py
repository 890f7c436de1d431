"""What the headers promise, a promise an id, and which tests name it.

docs/requirements.md, which this writes, says how ids are made and how tests name them.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType

import pybuild
from tests.golden.networks import conv_int8
from tests.toolchains import INCLUDE, ROOT

MAP = ROOT / "pybuild" / "evidence" / "requirements.json"
PAGE = ROOT / "docs" / "requirements.md"
GRU = ROOT / "examples" / "streams" / "gru.onnx"
# read by crt's own sources and by kernels, not by firmware: tests of kernels and runs
# hold what they say
INNER = {
    "abi", "copy", "halves", "inline", "intrin", "lanes", "lockstep", "objects",
    "packs", "pairs", "reals", "rounds", "slots", "types", "vector", "wide",
}  # fmt: skip
# fields that say what the caller owes, unless a test names them, and such words
CONDITIONS = {"Shapes", "Units", "Owner", "Source"}
OWED = ("one at a time", "nothing else may")
_CODE = re.compile(r"\bCRT_ERR_\w+")
_COMMENT = re.compile(r"^/\*(.*?)\*/\n([^\n]*)", re.S | re.M)
_DECLARED = re.compile(r"^(?:[a-z][^;{}=\n]*?[ *])?(\w+)\(", re.M)
_EXPECT = re.compile(r"\bEXPECT\((.*?)\);", re.S)
# what stands in tests/emit/header.c for the words of any header
OF_CONV = {
    r"\bconv_int8_": "NAME_", r"(?<=_)image(?=\()": "INPUT",
    r"(?<=_)sum(?=\()": "OUTPUT",
}  # fmt: skip
_TAG = re.compile(r"@req ((?:[\w.:/]+(?:, )?)+)")
_FUNCTION = re.compile(r"^(?:static )?\w+ (test_\w+|main|\w+)\([^;]*?\)\n\{", re.M)
_TEST = re.compile(r"^def (test_\w+)\(", re.M)


@dataclass(frozen=True)
class Promise:
    """id, header, and what it says.

    kind   promise, or condition: what the caller owes, or a form of an argument
    tests  file and function of each that names it
    """

    id: str
    header: str
    says: str
    kind: str = "promise"
    tests: tuple[str, ...] = ()


@cache
def _comments() -> ModuleType:
    """How the site reads headers: fields are found once."""
    path = ROOT / ".ci" / "site" / "comments.py"
    spec = importlib.util.spec_from_file_location("comments", path)
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def of_header(text: str, header: str) -> Iterator[Promise]:
    """What its comments promise."""
    for found in _COMMENT.finditer(text, 1):
        if found[1].strip().startswith("----"):
            continue
        plain = _comments()._plain(found[1])
        said, fields = _comments().fields(plain)
        names = [header] if found[2] == "" else list(_names(text[found.end(1) :]))
        if not names or (names == [header] and not fields):
            continue
        for name in names:
            if name != header:
                yield Promise(name, header, _line(said))
        for field, words in fields:  # of several functions they are told once
            yield from _of_field(names[0], header, field, words)


def _names(after: str) -> Iterator[str]:
    """Of the functions that a comment stands before."""
    block = after.partition("\n")[2].partition("\n\n")[0]
    if "{" not in block and "typedef" not in block:
        for found in _DECLARED.finditer(block):
            if not found[0].startswith("#"):
                yield found[1]


def _of_field(name: str, header: str, field: str, words: str) -> Iterator[Promise]:
    codes = list(dict.fromkeys(_CODE.findall(words))) if field == "Errors" else []
    if not codes:
        yield Promise(f"{name}:{field}", header, _line(words))
    for code in codes:
        yield Promise(f"{name}:{code}", header, _line(words))


def _line(words: str) -> str:
    return " ".join(words.split())


def in_c(path: Path, known: Mapping[str, Promise]) -> Iterator[tuple[str, str]]:
    """What a C test names: id, and the place."""
    text = path.read_text()
    starts = [(m.start(), m[1]) for m in _FUNCTION.finditer(text)]

    def place(at: int) -> str:
        before = [name for start, name in starts if start <= at]
        return f"{path.relative_to(ROOT).as_posix()} {before[-1] if before else ''}"

    for found in _EXPECT.finditer(text):
        codes = _CODE.findall(found[1])
        said = found[1]
        for word, stands in OF_CONV.items():
            said = re.sub(word, stands, said)
        for name in re.findall(r"\b((?:crt|NAME)_\w+)\(", said):
            for one in (name, *(f"{name}:{code}" for code in codes)):
                if one in known:
                    yield one, place(found.start()).strip()
    for found in _TAG.finditer(text):
        for one in found[1].split(", "):
            after = [name for start, name in starts if start >= found.start()]
            where = f"{path.relative_to(ROOT).as_posix()} {after[0] if after else ''}"
            yield one, where.strip()


def in_python(path: Path) -> Iterator[tuple[str, str]]:
    """What stands in a comment before a test."""
    text = path.read_text()
    for found in _TAG.finditer(text):
        test = _TEST.search(text, found.end())
        assert test, f"{path}: no test after {found[0]}"
        for one in found[1].split(", "):
            yield one, f"{path.relative_to(ROOT).as_posix()} {test[1]}"


def generated() -> Iterator[tuple[str, str]]:
    """Headers of builds with what a header may have; names stand for what they are."""
    conv = conv_int8().model()
    state = pybuild.load(GRU, state={"h": "h_next"})
    for made in (
        conv.build(),
        conv.build(params="replaceable", compress="lz4"),
        conv.build(push="image"),
        state.build(),
    ):
        text = made.sources()[f"{made.name}.h"]
        graph = made.plan.graph
        for names, word in ((graph.inputs, "INPUT"), (graph.outputs, "OUTPUT")):
            for name in names:
                text = re.sub(rf"(?<=_){name}(?=\()|'{name}'", word, text)
        yield "NAME.h", re.sub(rf"\b{made.name}(?=_|\b)", "NAME", text)


def promises() -> list[Promise]:
    """Each of the public headers, with the tests that name it.

    Errors  ValueError for a test that names what no header promises
    """
    found: dict[str, Promise] = {}
    texts = [
        (path.name, path.read_text())
        for path in sorted((INCLUDE / "crt").glob("*.h"))
        if path.stem not in INNER
    ]
    for name, text in (*texts, *generated()):
        for one in of_header(text, name):
            found.setdefault(one.id, one)
    named: dict[str, list[str]] = {name: [] for name in found}
    tests = ROOT / "tests"
    programs = [*sorted(tests.glob("crt/*.c")), tests / "emit" / "header.c"]
    pairs = [pair for path in programs for pair in in_c(path, found)]
    for path in sorted(tests.rglob("test_*.py")):
        pairs += in_python(path)
    for name, place in pairs:
        if name not in named:
            raise ValueError(f"{place} names {name}, which no header promises")
        if place not in named[name]:
            named[name].append(place)
    return [
        replace(one, kind=_kind(one, named[one.id]), tests=tuple(named[one.id]))
        for one in found.values()
    ]


def _kind(one: Promise, tests: list[str]) -> str:
    owed = one.id.rpartition(":")[2] in CONDITIONS or one.says.startswith(OWED)
    return "condition" if owed and not tests else "promise"


def as_json(found: list[Promise]) -> str:
    """What the wheel ships: sorted, the tests of each by name."""
    plain = [asdict(one) for one in found]
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


def page(found: list[Promise]) -> str:
    """docs/requirements.md."""
    promised = [one for one in found if one.kind == "promise"]
    lacking = [one for one in promised if not one.tests]
    lines = [
        HEAD.format(
            all=len(found), promised=len(promised),
            which=f"; these\n{len(lacking)} have none:" if lacking else ".",
            named=len(promised) - len(lacking), owed=len(found) - len(promised),
        ),
        *(f"- `{one.id}`: {_cell(one.says)}" for one in lacking),
    ]  # fmt: skip
    for header in dict.fromkeys(one.header for one in found):
        lines += [
            "",
            f"## {header}",
            "",
            "| id | what it says | tests |",
            "|---|---|---|",
        ]
        for one in found:
            if one.header == header:
                tests = "<br>".join(f"`{test}`" for test in one.tests)
                if not tests:
                    tests = "none" if one.kind == "promise" else "the caller's"
                lines.append(f"| `{one.id}` | {_cell(one.says)} | {tests} |")
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    return re.sub(r"([|*_<>\[\]\\])", r"\\\1", words)


HEAD = """\
# What the headers promise

Each promise of crt's public headers, and of the header that a build writes (NAME.h),
has an id, and here stands which test names it. For example
`crt_graph_init:CRT_ERR_ALIGN` is what `crt_graph_init` answers where memory is not
aligned, `crt_graph_init` what its comment says first, and `graph.h:Thread` what holds
for a whole header. Of functions that share a comment, the first has its fields. INPUT
and OUTPUT stand for the names of a model's own.

A line `EXPECT(...)` of a test in C names the function that it calls and the error that
it expects; other tests say `@req ID` in a comment. The page is made of both by
`./dev evidence` (this page alone: `python -m tests.evidence.promises`), and a test
holds that it is as they are.

Of {all} entries {promised} are promises and {owed} are conditions: what the caller
owes, or how an argument is laid out. A test names {named} of the promises{which}
"""


def write() -> None:
    known = promises()
    MAP.write_text(as_json(known))
    PAGE.write_text(page(known))


if __name__ == "__main__":
    write()
