"""A compiled model, and what its instances bind. Knows no compiler."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pybuild.host.abi import crt_of
from pybuild.records import dataclass


@dataclass(frozen=True)
class Compiled:
    """A compiled model, for any number of instances.

    library  a shared library with crt
    model    the address of its struct crt_model
    keep     what must stay for it to be there: gone with its last user
    """

    library: Path
    model: int
    keep: object

    @property
    def crt(self) -> Any:
        """The functions of the library, as cffi has them."""
        return crt_of(self.library)


@dataclass(frozen=True)
class SlotFacts:
    """An array that an instance binds: its name, arrangement, and what it is made of.

    layout   0: as the user has it
    sources  the user's parameters
    entry    its name in parameter images: its own, or its number where the model was
             built without names
    """

    name: str
    layout: int
    sources: tuple[str, ...]
    entry: str


def slot_facts(
    slots: Iterable[tuple[str, int, Iterable[str]]], named: bool
) -> tuple[SlotFacts, ...]:
    """The facts of a model's slots, in the order of their numbers."""
    return tuple(
        SlotFacts(name, layout, tuple(sources), name if named else str(number))
        for number, (name, layout, sources) in enumerate(slots)
    )
