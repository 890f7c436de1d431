"""Comments of crt's headers as Doxygen reads them, and docstrings as Sphinx does: both
have the same fields (docs/design.md, "Comments"). `comments.py FILE` is what Doxygen
reads a header through. Knows no page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

# a field of a comment, as `Errors  CRT_ERR_NULL`; lines that go on are indented
FIELD = re.compile(r"(\S(?:.*?\S)??) {2,}(\S.*)")
_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
# of what is inside braces: members, not statements
_RECORD = re.compile(r"^(typedef )?(struct|union|enum)\b[^;=()]*\{$", re.MULTILINE)
# what only a compiler reads
_CHECKED = re.compile(
    r"^/\* Checked when (?:(?!\*/).)*\*/\n|^typedef char \w+\[[^;]*;\n",
    re.MULTILINE | re.DOTALL,
)
_MARK = "\0"
_CODE = re.compile(r"(\w+ = )?[\w.]+\(.*\)(\.[\w.]+\(.*\))*$")


def fields(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What a comment says first, and its fields: (name, text)."""
    head: list[str] = []
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        field = FIELD.fullmatch(line) if not line.startswith(" ") else None
        if field:
            found.append((field[1], field[2]))
        elif found and line.startswith("  "):
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif found and line.strip():
            head.append(f"\n{line}" if head else line)
        else:
            head.append(line)
    return "\n".join(head).strip(), found


# ---- C ----------------------------------------------------------------------


def _plain(comment: str) -> str:
    """Without the stars."""
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.splitlines()]
    return "\n".join(line.rstrip() for line in lines).strip()


def _escaped(text: str) -> str:
    """No character is a command of Doxygen's but those around code."""
    return re.sub(r"([@\\<>#%&\"])", r"\\\1", text)


def _doxygen(comment: str) -> str:
    head, found = fields(_plain(comment))
    said = head.removeprefix("... ")
    lines = [_escaped(said[:1].upper() + said[1:])]
    lines += [f"\n@par {name}\n{_escaped(text)}" for name, text in found]
    return "\n".join(lines)


def _records(text: str) -> list[tuple[int, int]]:
    """Where members are declared."""
    return [(m.end(), text.index("\n}", m.end())) for m in _RECORD.finditer(text)]


def header(text: str) -> str:
    """The header with comments that Doxygen takes; one that stands before several
    declarations is before each of them."""
    text = _CHECKED.sub("", text)
    inside = _records(text)
    parts, end, said = [], 0, ""
    for comment in _COMMENT.finditer(text):
        parts.append(_each(text[end : comment.start()], said))
        line = text[text.rfind("\n", 0, comment.start()) + 1 : comment.start()]
        after = text[comment.end() : comment.end() + 2]
        member = any(a <= comment.start() < b for a, b in inside)
        parts.append(_converted(comment, line, after, member))
        said = "" if member or line or "@file" in parts[-1] else parts[-1]
        end = comment.end()
    return "".join(parts) + _each(text[end:], said)


def _converted(comment: re.Match[str], line: str, after: str, member: bool) -> str:
    said = comment[1].strip()
    if comment.start() == 0:
        name, _, rest = said.partition(": ")
        return f"/** @file {name}\n{_doxygen(rest)} */"
    if said.startswith("----"):
        return comment[0]
    if member:
        kind = "/**<" if line.strip() else "/**"
        return f"{kind} {_doxygen(said)} */"
    if line:
        return comment[0]
    if after == "\n\n":  # of no declaration, but of all
        return f"/** @file\n@details\n{_doxygen(said)} */"
    return f"/** {_doxygen(said)} */"


def _each(text: str, said: str) -> str:
    """Until an empty line, what was said of one declaration is said of the next."""
    block, empty, rest = text.partition("\n\n")
    if not said or "{" in block:
        return text
    more = re.sub(r"(;|(?<!\\))\n(?=#define|[a-z][^\n]*\()", rf"\1\n{_MARK}", block[1:])
    return block[:1] + more.replace(_MARK, f"{said}\n") + empty + rest


# ---- Python -----------------------------------------------------------------


def restructured(text: str, parameters: frozenset[str] | None) -> list[str]:
    """A docstring as reStructuredText; fields that are arguments are told as such.

    parameters  of a function; None: it is a class, whose small fields are attributes
    """
    head, found = fields(text)
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", head):
        code = all(map(_CODE.fullmatch, paragraph.splitlines())) and paragraph
        said = paragraph if code else inline(paragraph)
        lines += ["::", ""] if code else []
        lines += [f"   {x}" if code else x.strip() for x in said.splitlines()]
        lines.append("")
    for names, about in found:
        each = names.split(", ")
        if parameters is None and names[:1].islower():
            lines += [f":ivar {name}: {inline(about)}" for name in each]
        elif parameters and set(each) & parameters:
            lines += [f":param {name}: {inline(about)}" for name in each]
        else:
            lines.append(f":{names}: {inline(about)}")
    return [*lines, ""]


def inline(text: str) -> str:
    return "".join(_words(text))


def _words(text: str) -> Iterator[str]:
    """Code as code, a page as a link, and nothing else with a meaning of its own."""
    for part in re.split(r"(`[^`]+`|\bdocs/[\w-]+\.md)", text):
        if part.startswith("`"):
            yield f"`{part}`"
        elif part.startswith("docs/"):
            yield f":doc:`/{part[5:-3]}`"
        else:
            yield re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", part)


if __name__ == "__main__":
    sys.stdout.write(header(Path(sys.argv[1]).read_text(encoding="utf-8")))
