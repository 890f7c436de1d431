"""What came of a time of fuzzing, and how much of a reader was reached by it."""

from __future__ import annotations

import re
from dataclasses import dataclass

# runs of no more seconds try so many inputs instead: the same on any machine
SHORT, SHORT_INPUTS = 10, 1500


@dataclass(frozen=True)
class Outcome:
    """words: "12 tried, 4 accepted, 8 refused"."""

    words: str

    @property
    def tried(self) -> int:
        return int(self.words.split()[0])


@dataclass(frozen=True)
class Reach:
    """Lines and branches that were reached, of those that there are."""

    lines: tuple[int, int]
    branches: tuple[int, int]


def counted(said: str) -> Outcome:
    """The last line that has counts.

    Errors  AssertionError where one of them is 0: then too little was tried
    """
    counts = re.findall(r"^\d+ tried.*$", said, re.M)
    assert counts and " 0 " not in counts[-1], said[-3000:]
    return Outcome(counts[-1])
