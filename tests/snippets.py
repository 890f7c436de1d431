"""The code in README.md, docs/ and the pages of examples/, and what pages say of it.

Knows no compiler and no command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# languages, and how each is run; a block without one is a picture or a result
RUN = ("sh", "console", "python", "c", "rust", "toml", "cmake", "ini")
# of these only files: what reads them is not a command
FILES = ("cmake", "ini", "rust")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# comments right before a block: why it is left to a reader; the test that runs it and
# has what it needs; code that runs first, which readers know from the text
MARK = re.compile(r"<!-- (not run|run by|with): ((?:(?!<!--).)*?)\s*-->\n\Z", re.DOTALL)
# a block that is a file begins with its name
FILE = re.compile(r"(?:#|/\*) ([\w./-]+/[\w.-]+\.\w+)\b")


@dataclass(frozen=True)
class Snippet:
    """One block.

    page      as README.md; section: the last heading of the second level before it
    language  "" for what is not code
    marks     what comments before it say: ("with", "x = 1")
    """

    page: str
    section: str
    line: int
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    def said(self, kind: str) -> str | None:
        return next((text for mark, text in self.marks if mark == kind), None)

    @property
    def file(self) -> str | None:
        found = FILE.match(self.text)
        return found[1] if found else None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: Path) -> list[Path]:
    examples = sorted((root / "examples").glob("*/README.md"))
    return [root / "README.md", *sorted((root / "docs").glob("*.md")), *examples]


def snippets(root: Path, page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        before = text[: block.start()]
        headings = re.findall(r"^## (.*)", before, re.MULTILINE)
        section = headings[-1] if headings else ""
        marks = []
        rest = before
        while found := MARK.search(rest):
            marks.append((found[1], " ".join(found[2].split())))
            rest = rest[: found.start()]
        yield Snippet(
            page.relative_to(root).as_posix(),
            section,
            before.count("\n") + 1,
            block[1],
            block[2],
            tuple(reversed(marks)),
        )


def groups(root: Path) -> dict[str, list[Snippet]]:
    """Blocks that are run one after another, in one folder: those of a page, or of a
    section of README.md."""
    found: dict[str, list[Snippet]] = {}
    for page in pages(root):
        for snippet in snippets(root, page):
            whole = snippet.page != "README.md"
            name = snippet.page if whole else f"{snippet.page}: {snippet.section}"
            found.setdefault(name, []).append(snippet)
    return found
