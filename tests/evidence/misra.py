"""What cppcheck's add-on for MISRA C:2012 finds in C, sorted by how it was dealt with:
a tag says why at its line, a rule is disapplied, or the checker is wrong. Which rules
are which is here once; docs/misra.md gives the reasons, and has the table.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_ADVISORY = """
    1.2 2.3 2.4 2.5 2.6 2.7 4.2 5.9 8.7 8.9 8.11 8.13 10.5 11.4 11.5 12.1 12.3 12.4
    13.3 13.4 15.1 15.4 15.5 17.5 17.8 18.4 18.5 19.2 20.1 20.5 21.12
"""
ADVISORY = frozenset(_ADVISORY.split())
# advisory rules that are not followed, each as a whole
DISAPPLIED = {
    "2.3": "types that users may need are declared whether this file uses them or not",
    "2.4": "the same of tags of structs and enums",
    "2.5": "the same of macros: a header serves many files",
    "2.7": "kernels have one type, whatever of it they need",
    "5.9": "a static function has the plain name of what it does, in each file",
    "8.7": "the API is there for the user's files",
    "8.9": "a table stands before the function that reads it",
    "11.4": "addresses are compared with alignments as numbers",
    "11.5": "memory is lent as bytes and used as what the tables say",
    "12.1": "C's precedence is known; compilers' -Wparentheses is on",
    "12.3": "two numbers go on together in the head of a loop",
    "13.3": "p++ within an expression, as in *out++ = *in++",
    "13.4": "while ((byte = get()) >= 0) is how a line is read to its end",
    "15.5": "a function may return early with its error",
    "17.8": "an argument is counted down where a copy would say nothing more",
    "18.4": "pointers move by + and -: rows of memory are what kernels are about",
    "20.5": "a list of items by macro is undefined behind its last use",
}
# what the checker takes for a finding: rule, the line, why it is none
WRONG = (
    ("5.7", r"^enum \{", "takes enums without a tag for two of one tag"),
    (
        "9.3",
        r"^(?:const )?crt_\w+x\d+ ",
        "takes a vector that a function gives for an array",
    ),
)
_FINDING = re.compile(r"^(.+?):(\d+):\d+: .*\[misra-c2012-(\d+\.\d+)\]$")
_TAG = re.compile(r"MISRA\s+((?:\d+\.\d+[:,;].*))", re.S)
_RULE = re.compile(r"\b(\d{1,2}\.\d{1,2})(?=[:,])")


@dataclass(frozen=True, order=True)
class Finding:
    """One line that leaves one rule."""

    file: str
    line: int
    rule: str
    text: str
    how: str  # "tag", "disapplied", "wrong", or "": nobody has said anything

    @property
    def kind(self) -> str:
        return "advisory" if self.rule in ADVISORY else "required"


@cache
def findings(
    folder: Path, files: tuple[Path, ...], include: Path, *options: str
) -> list[Finding]:
    """What is found in these files, and in the headers below `folder` that they see.

    folder   is written to: cppcheck leaves files beside its sources
    options  of cppcheck; without -D it reads each file in up to 12 configurations
    Errors   RuntimeError where the checker itself fails
    """
    command = [
        "cppcheck",
        "-q",
        "--enable=style",
        "--addon=misra",
        "--std=c99",
        *options,
    ]
    command += [f"-I{include}", f"-I{folder}"]
    done = subprocess.run(
        [*command, *map(str, files)], cwd=folder, capture_output=True, text=True
    )
    if done.returncode or "Bailing out" in done.stderr:
        raise RuntimeError(done.stderr)
    found = {
        (match[1], int(match[2]), match[3])
        for line in done.stderr.splitlines()
        if (match := _FINDING.match(line))
    }
    return sorted(_judged(Path(file), line, rule) for file, line, rule in found)


def _judged(file: Path, number: int, rule: str) -> Finding:
    lines = _lines(file)
    text = lines[number - 1].strip()
    how = ""
    if any(rule == wrong and re.match(line, text) for wrong, line, _ in WRONG):
        how = "wrong"
    elif rule in DISAPPLIED:
        how = "disapplied"
    elif rule in tagged(lines, number):
        how = "tag"
    return Finding(file.name, number, rule, text, how)


@cache
def _lines(file: Path) -> list[str]:
    return file.read_text().split("\n")


def tagged(lines: Sequence[str], number: int) -> set[str]:
    """The rules that tags speak of at this line, counted from 1: on it, in the comment
    right above its statement, above its function, or for the rest of the file."""
    at = number - 1
    found = _rules(lines[at])
    while at > 0 and not re.search(r"[;{}]\s*(?:/\*.*)?$|^#", lines[at - 1]):
        if lines[at - 1].rstrip().endswith("*/"):
            found |= _rules(_comment(lines, at - 1))
        at -= 1
    begin = _function(lines, number - 1)
    if begin > 0 and lines[begin - 1].endswith("*/"):
        found |= _rules(_comment(lines, begin - 1))
    for line in lines[:number]:
        found |= _rules(line) if ", in this file:" in line else set()
    return found


def _function(lines: Sequence[str], at: int) -> int:
    """Where the head of the function begins that this line is in, or 0."""
    while at > 0 and lines[at] != "{":
        if lines[at] == "}" or lines[at].startswith("};"):
            return 0
        at -= 1
    while at > 0 and lines[at - 1].strip() and not lines[at - 1].endswith("*/"):
        at -= 1
    return at


def _comment(lines: Sequence[str], end: int) -> str:
    """The comment whose last line this is."""
    begin = end
    while begin > 0 and "/*" not in lines[begin]:
        begin -= 1
    return "\n".join(lines[begin : end + 1])


def _rules(text: str) -> set[str]:
    found = _TAG.search(text)
    return set(_RULE.findall(found[1])) if found else set()


def crt(root: Path, folder: Path) -> list[Finding]:
    """Of the runtime: a copy of it in `folder`; and of all its headers."""
    copy = folder / "crt"
    if not copy.exists():
        shutil.copytree(root / "crt", copy)
    headers = sorted(path.name for path in (copy / "include" / "crt").glob("*.h"))
    every = folder / "headers.c"
    every.write_text("".join(f'#include "crt/{name}"\n' for name in headers))
    files = (*sorted((copy / "src").glob("*.c")), every)
    return findings(folder, files, copy / "include")


def untagged(found: Iterable[Finding]) -> list[Finding]:
    """What nobody has said anything about."""
    return [one for one in found if not one.how]


def counts(found: Iterable[Finding]) -> dict[str, Counter[str]]:
    """Rule -> how its findings were dealt with -> how many."""
    table: dict[str, Counter[str]] = {}
    for one in found:
        table.setdefault(one.rule, Counter())[one.how] += 1
    return table
