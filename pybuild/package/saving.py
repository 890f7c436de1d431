"""An option with which a build would take less RAM: what it is, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybuild.records import dataclass


@dataclass(frozen=True)
class Saving:
    """The RAM of a build with more options; it was planned, not estimated.

    options       to add to the command line, each with its value
    changed       the same as keywords of Model.build; boundary: of pybuild.quantise
    arena         with them; instead: without
    instructions  with them, in times of those without; by the planner's estimate
    Units         bytes
    """

    options: tuple[str, ...]
    changed: Mapping[str, Any]
    arena: int
    instead: int
    instructions: float

    def __str__(self) -> str:
        more = self.instructions - 1
        cost = f", {more:+.0%} instructions by estimate" if abs(more) >= 0.005 else ""
        sizes = f"{self.arena:,} instead of {self.instead:,} bytes"
        return f"{' '.join(self.options)}: {sizes}{cost}"
