"""What messages list: TARGETS, OBJECTS and BOARDS stand for the names that there are,
so that a new core or board changes no message by hand."""

from __future__ import annotations

from collections.abc import Iterable

from pybuild.targets import llvm
from pybuild.targets.board import board_names
from pybuild.targets.core import CORES
from pybuild.targets.names import OTHERS
from pybuild.targets.target import TARGETS

LISTED = 16  # of more names only the first


def _boards() -> str:
    names = list(board_names())
    return f"{', '.join(names[:LISTED])}, ... ({len(names)} in all)"


NAMES = {
    "TARGETS": ", ".join(dict.fromkeys((*TARGETS, *CORES, *OTHERS))),
    "OBJECTS": ", ".join((*llvm.LLVM, *llvm._NEAR)),
    "BOARDS": _boards(),
}


def filled(lines: Iterable[str]) -> list[str]:
    """The lines of a message."""
    made = list(lines)
    for name, listed in NAMES.items():
        made = [line.replace(name, listed) for line in made]
    return made
