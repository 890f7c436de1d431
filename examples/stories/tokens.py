"""Bytes as tokens, and pairs of tokens as further tokens (BPE): tokens.c in Python.

Token 0 begins a story; 1 to 255 are bytes; each further one is a pair of earlier
tokens, in the order in which they were found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

BYTES, BEGIN = 256, 0
TABLE = Path(__file__).with_name("tokens_table.h")
Pair = tuple[int, int]


def _joined(tokens: Sequence[int], pair: Pair, new: int) -> list[int]:
    """The tokens with a pair, wherever it stands, as one token; from the left."""
    made: list[int] = []
    for token in tokens:
        if made and (made[-1], token) == pair:
            made[-1] = new
        else:
            made.append(token)
    return made


def find_pairs(texts: Iterable[str], count: int) -> list[Pair]:
    """The pairs that occur most within words without what ends them, one by one."""
    words = Counter(
        w for text in texts for w in re.findall(r" ?[A-Za-z]+|[^A-Za-z]", text)
    )
    split = {word: list(word.encode()) for word in words}
    pairs: list[Pair] = []
    for new in range(BYTES, BYTES + count):
        seen: Counter[Pair] = Counter()
        for word, times in words.items():
            for pair in pairwise(split[word]):
                seen[pair] += times
        best = max(seen, key=lambda pair: (seen[pair], pair))
        pairs.append(best)
        split = {word: _joined(one, best, new) for word, one in split.items()}
    return pairs


def encode(text: bytes, pairs: Sequence[Pair]) -> list[int]:
    """The tokens of a text: the earliest pair that occurs is joined, until none is."""
    ranks = {pair: BYTES + i for i, pair in enumerate(pairs)}
    tokens = list(text)
    while True:
        found = [ranks[p] for p in pairwise(tokens) if p in ranks]
        if not found:
            return tokens
        first = min(found)
        tokens = _joined(tokens, pairs[first - BYTES], first)


def decode(token: int, pairs: Sequence[Pair]) -> bytes:
    """The bytes of a token."""
    if token < BYTES:
        return bytes([token]) if token != BEGIN else b""
    return b"".join(decode(part, pairs) for part in pairs[token - BYTES])


def read_pairs() -> list[Pair]:
    """The pairs of tokens_table.h, which the C program reads too."""
    text = TABLE.read_text(encoding="utf-8").partition("= {")[2]
    found = re.findall(r"\{(\d+), (\d+)\}", text)
    return [(int(a), int(b)) for a, b in found]


def write_pairs(pairs: Sequence[Pair]) -> None:
    lines = ["/* tokens_table.h: made by train.py. */", "/* clang-format off */"]
    lines += ["#include <stdint.h>", ""]
    lines += [f"#define PAIRS {len(pairs)}u", ""]
    lines += ["static const uint16_t pairs[PAIRS][2] = {"]
    for i in range(0, len(pairs), 6):
        row = ", ".join(f"{{{a}, {b}}}" for a, b in pairs[i : i + 6])
        lines.append(f"    {row},")
    TABLE.write_text("\n".join([*lines, "};", ""]), encoding="utf-8")
