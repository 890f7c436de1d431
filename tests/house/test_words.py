"""Words that were retired (docs/words.toml) appear nowhere in pages, in docstrings and
comments, and in names of files."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.glossary import entries
from tests.snippets import pages

ROOT = Path(__file__).resolve().parents[2]
# written by code, or a list of what was retired
WRITTEN = {"glossary.md", "operators.md", "options.md"}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def _sources() -> list[Path]:
    found = [*(ROOT / "pybuild").rglob("*.py")]
    for folder in ("crt", "boards"):
        found += [p for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h")]
    return sorted(path for path in found if "_data" not in path.parts)


def _comments(path: Path, text: str) -> str:
    """What a source says to people: strings of several lines, and comments."""
    if path.suffix != ".py":
        return "\n".join(COMMENT.findall(text))
    said = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        docstring = token.type == tokenize.STRING and token.string.startswith('"""')
        if docstring or token.type == tokenize.COMMENT:
            said.append(token.string)
    return "\n".join(said)


def _prose() -> Iterator[tuple[str, str]]:
    for path in [*pages(ROOT), ROOT / "CONTRIBUTING.md"]:
        if path.name not in WRITTEN and not path.match("benchmarks*.md"):
            yield path.relative_to(ROOT).as_posix(), path.read_text()
    for path in _sources():
        yield path.relative_to(ROOT).as_posix(), _comments(path, path.read_text())


def _found(pattern: str, texts: list[tuple[str, str]]) -> list[str]:
    word = re.compile(pattern, re.IGNORECASE)
    return [
        f"{where}: {found[0]!r}"
        for where, text in texts
        for found in word.finditer(" ".join(text.split()))
    ]


def test_retired_words_are_in_no_prose() -> None:
    texts = list(_prose())
    for entry in entries("retired"):
        if "prose" in entry:
            found = _found(entry["prose"], texts)
            assert not found, f"say '{entry['use']}':\n" + "\n".join(found)


def test_retired_words_name_no_file() -> None:
    stems = [path for path in _sources() if path.is_relative_to(ROOT / "pybuild")]
    for entry in entries("retired"):
        if "files" in entry:
            found = [p for p in stems if re.fullmatch(entry["files"], p.stem)]
            assert not found, f"call it '{entry['use']}'"


@pytest.mark.parametrize(
    ("text", "seen"),
    [('"""The ending of\na layer."""', 1), ("# its endings", 1), ("endings = 1", 0)],
)
def test_a_retired_word_is_seen(text: str, seen: int) -> None:
    pattern = next(e["prose"] for e in entries("retired") if e["use"] == "epilogue")
    said = _comments(Path("x.py"), text)
    assert len(_found(pattern, [("x.py", said)])) == seen
