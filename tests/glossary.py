"""Writes docs/glossary.md from docs/words.toml: python -m tests.glossary."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping

from tests.toolchains import ROOT

WORDS = ROOT / "docs" / "words.toml"
PAGE = ROOT / "docs" / "glossary.md"
OPENING = """# Glossary

The words of this project, each with one meaning. Written by `python -m tests.glossary`
from `docs/words.toml`; do not edit.
"""
THEIRS = """
# The same things elsewhere

Where a cell is empty, there is no such thing there, or it has no name. TFLM is
TensorFlow Lite Micro; ST is ST Edge AI Core, once X-CUBE-AI.

| ours | TFLM | CMSIS-NN | TVM | ST |
| --- | --- | --- | --- | --- |
{rows}

# If you come from TFLM, CMSIS-NN, TVM or ST
"""
RETIRED = """
# Words that were retired

Pages, comments and names of files no longer have these;
`tests/house/test_words.py` looks for them.

| was | is |
| --- | --- |
"""
ELSEWHERE = ("tflm", "cmsis_nn", "tvm", "st")
Entry = Mapping[str, str]


def entries(kind: str) -> list[dict[str, str]]:
    """All of words.toml that begin with [[kind]]."""
    found: list[dict[str, str]] = tomllib.loads(WORDS.read_text()).get(kind, [])
    return found


def _grouped(found: Iterable[Entry], key: str) -> Iterator[tuple[str, list[Entry]]]:
    groups: dict[str, list[Entry]] = {}
    for entry in found:
        groups.setdefault(entry[key], []).append(entry)
    yield from groups.items()


def page() -> str:
    lines = [OPENING]
    for name, words in _grouped(entries("word"), "group"):
        lines += [
            f"## {name}",
            "",
            "| word | meaning | example |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| **{w['word']}** | {w['meaning']} | {w['example']} |" for w in words
        ]
        lines.append("")
    rows = [
        f"| **{w['word']}** | {' | '.join(w.get(key, '') for key in ELSEWHERE)} |"
        for w in entries("word")
        if any(key in w for key in ELSEWHERE)
    ]
    lines[-1] = THEIRS.format(rows="\n".join(rows))
    for name, words in _grouped(entries("theirs"), "from"):
        lines += [f"## {name}", "", "| theirs | ours |", "| --- | --- |"]
        lines += [f"| {w['word']} | {w['ours']} |" for w in words]
        lines.append("")
    retired = sorted({(w["word"], w["use"]) for w in entries("retired")})
    rows = [f"| {word} | {use} |" for word, use in retired]
    return "\n".join(lines[:-1]) + "\n" + (RETIRED + "\n".join(rows) + "\n")


if __name__ == "__main__":
    PAGE.write_text(page())
