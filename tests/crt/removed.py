"""Takes each check out of crt/src, one at a time, and runs crt's tests on what is left.

python -m tests.crt.removed [FILE.c...]: a line for each that no test notices, and a row
of counts for each file; exit status 1 if there are any. The tests are those of
test_crt.py, built with gcc under ASan and UBSan. What is taken out is the `return` of
an error, one side of a `?:` that gives one, and each condition of several (`a || b`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.crt.test_crt import HERE, INCLUDES, PROGRAMS, SANITIZE
from tests.toolchains import SOURCES

SECONDS = 60  # that a program may take; one that hangs has noticed
BUILD = ("gcc", "-std=c99", "-O1", *SANITIZE, *map(str, INCLUDES))
WAYS = ("HOOKED", "NO_HOOK")  # some checks are there in one of them only
_RETURN = re.compile(r"return CRT_ERR_\w+;")
_SET = re.compile(r"\w+ = CRT_ERR_\w+;")
_CHOICE = re.compile(r"\?\s*([^?:;]+?)\s*:\s*([^?:;]+?);")
_IF = re.compile(r"\bif \(((?:[^(){}]|\((?:[^()]|\([^()]*\))*\))*)\) \{\n\s*"
                 r"(?:return |\*?error = )CRT_ERR")  # fmt: skip


@dataclass(frozen=True)
class Removal:
    """text: of the whole file without the check; what: the line, or the condition."""

    file: Path
    line: int
    what: str
    text: str


def removals(file: Path) -> Iterator[Removal]:
    text = file.read_text()

    def made(start: int, end: int, new: str, what: str) -> Removal:
        line = text.count("\n", 0, start) + 1
        return Removal(file, line, what, text[:start] + new + text[end:])

    for found in _RETURN.finditer(text):
        before = text[: found.start()].rstrip()
        new = ";" if before.endswith("{") else "return CRT_OK;"
        yield made(*found.span(), new, found[0])
    for found in _SET.finditer(text):
        if text[: found.start()].rstrip().endswith("{"):
            yield made(*found.span(), ";", found[0])
    for found in _CHOICE.finditer(text):
        for one, other in ((1, 2), (2, 1)):
            if "CRT_ERR" in found[one]:
                new = f"? {found[other]} : {found[other]};"
                yield made(*found.span(), new, " ".join(found[0].split()))
    for found in _IF.finditer(text):
        terms = _terms(found[1])
        for index, term in enumerate(terms):
            if len(terms) > 1:
                rest = " || ".join(terms[:index] + terms[index + 1 :])
                yield made(*found.span(1), rest, f"if: {' '.join(term.split())}")


def _terms(condition: str) -> list[str]:
    """Of a || b || c, where no || is in parentheses."""
    found, depth, at = [""], 0, 0
    while at < len(condition):
        if depth == 0 and condition.startswith("||", at):
            found.append("")
            at += 2
            continue
        depth += {"(": 1, ")": -1}.get(condition[at], 0)
        found[-1] += condition[at]
        at += 1
    return [term.strip() for term in found]


def _ran(*words: object) -> bool:
    try:
        done = subprocess.run(
            [str(w) for w in words], capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


class Built:
    """crt and its tests as objects: one file of crt is compiled for each removal."""

    def __init__(self, folder: Path, switch: str) -> None:
        self.folder, self.build = folder, (*BUILD, switch)
        folder.mkdir()
        files = [*SOURCES, *(HERE / name for name in PROGRAMS)]
        with ThreadPoolExecutor(2) as pool:
            assert all(pool.map(self._compiled, files))

    def _compiled(self, file: Path) -> bool:
        return _ran(*self.build, "-c", file, "-o", self.folder / f"{file.stem}.o")

    def notices(self, number: int, removal: Removal) -> bool:
        """Whether a test fails; what no longer compiles counts as noticed."""
        own = self.folder / str(number)
        own.mkdir()
        source, new = own / removal.file.name, own / "new.o"
        source.write_text(removal.text)
        if not _ran(*self.build, "-c", source, "-o", new):
            return True
        crt = [self.folder / f"{one.stem}.o" for one in SOURCES]
        crt = [one for one in crt if one.stem != removal.file.stem]
        for program in PROGRAMS:
            test = own / "test"
            main = self.folder / f"{Path(program).stem}.o"
            if not _ran("gcc", *SANITIZE, main, new, *crt, "-o", test):
                return True
            if not _ran(test):
                return True
        return False


def main(words: Sequence[str]) -> int:
    files = [one for one in SOURCES if not words or one.name in words]
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="removed-") as folder:
        built = [Built(Path(folder) / one, f"-DCRT_{one}") for one in WAYS]

        def notices(number: int, one: Removal) -> bool:
            return any(way.notices(number, one) for way in built)

        number = 0
        for file in files:
            each = list(removals(file))
            with ThreadPoolExecutor(2) as pool:
                places = range(number, number + len(each))
                noticed = list(pool.map(notices, places, each))
            number += len(each)
            for one, seen in zip(each, noticed, strict=True):
                if not seen:
                    survivors += 1
                    print(f"not noticed: {file.name}:{one.line}: {one.what}")
            print(f"{file.name:12}{len(each):4} removed, {sum(noticed)} noticed")
            sys.stdout.flush()
    return survivors > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
