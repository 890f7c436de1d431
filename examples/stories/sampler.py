"""Which token comes next, by its logit and by chance: sampler.c in Python, to the bit.

Floats are subtracted and multiplied, all else is integers.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

PARTS, REACH = 16, 11  # steps of a logit; logits after which odds are 0
ODDS = [round(65535 * math.exp(-i / PARTS)) for i in range(PARTS * REACH)]


class Sampler:
    """temperature: in hundredths; 0: always the likeliest."""

    def __init__(self, seed: int, temperature: int) -> None:
        self.state = seed or 1
        self.steps = np.float32(1600) / np.float32(temperature) if temperature else 0
        self.odds = np.array([*ODDS, 0], np.int64)

    def drawn(self) -> int:
        """Marsaglia's xorshift32."""
        x = self.state
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        self.state = x
        return x

    def next(self, logits: np.ndarray) -> int:
        """The next token."""
        logits = logits.ravel()
        best = int(logits.argmax())
        if not self.steps:
            return best
        at = (logits[best] - logits) * self.steps
        odds = self.odds[np.minimum(at, np.float32(len(ODDS))).astype(np.int64)]
        sums = odds.cumsum()
        place = self.drawn() * int(sums[-1]) >> 32
        return int(np.searchsorted(sums, place, side="right"))


def write_odds() -> None:
    """odds_table.h, which sampler.c reads."""
    lines = ["/* odds_table.h: made by train.py: exp(-i / 16), in 65535ths. */"]
    lines += ["/* clang-format off */"]
    lines += ["#include <stdint.h>", "", f"#define ODDS {len(ODDS)}", ""]
    lines += ["static const uint16_t odds[ODDS] = {"]
    for i in range(0, len(ODDS), 10):
        lines.append(f"    {', '.join(map(str, ODDS[i : i + 10]))},")
    text = "\n".join([*lines, "};", ""])
    Path(__file__).with_name("odds_table.h").write_text(text, encoding="utf-8")
