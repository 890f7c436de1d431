"""A compiled model, and what its instances bind. Knows no compiler."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Compiled:
    """A compiled model, for any number of instances.

    library  a shared library with crt
    model    the address of its struct crt_model
    keep     what must stay for it to be there
    """

    library: Path
    model: int
    keep: object


@dataclass(frozen=True)
class SlotFacts:
    """An array that an instance binds: its name, arrangement, and what it is made of.

    layout   0: as the user has it
    sources  the user's parameters
    """

    name: str
    layout: int
    sources: tuple[str, ...]
