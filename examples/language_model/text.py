"""Words of a text as numbers: the vocabulary of the language model."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus.txt"
VOCABULARY = HERE / "vocabulary.txt"
UNKNOWN = "<unk>"
_WORD = re.compile(r"[a-z0-9_]+|[^\sa-z0-9_]")


def split(text: str) -> list[str]:
    """Lower-case words, and every other sign by itself."""
    return _WORD.findall(text.lower())


def vocabulary_of(words: list[str], size: int) -> list[str]:
    """The most frequent words, then by the alphabet; the first is for all others."""
    counts = Counter(words)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return [UNKNOWN, *order[: size - 1]]


def numbers(words: list[str], vocabulary: list[str]) -> list[int]:
    """The index of each word, 0 for one that is not known."""
    known = {word: index for index, word in enumerate(vocabulary)}
    return [known.get(word, 0) for word in words]


def read_vocabulary() -> list[str]:
    return VOCABULARY.read_text(encoding="utf-8").split("\n")[:-1]
