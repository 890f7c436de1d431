"""A program that fits a board's RAM: with the plan of the library, or else with the
fastest that leaves room for stack, data and console.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybuild.boards.firmware.too_large import TooLarge
from pybuild.package.curve import Fit, fit
from pybuild.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybuild.boards.firmware.build import Firmware
    from pybuild.host.build_facts import Library
    from pybuild.targets.board import Board

# another plan has other kernels, and so another stack and other tables
_TRIES = 4
_ALIGN = 16


@dataclass(frozen=True)
class Program:
    """A firmware, and the library that it is of.

    fit  what its plan costs, where it is not the one that was asked for
    """

    library: Library
    firmware: Firmware
    fit: Fit | None = None


def fitted(
    library: Library, board: Board, made: Callable[[Library], Firmware]
) -> Program:
    """A program that fits; whatever its plan, it computes the same bits.

    made    links the program of a library
    Errors  TooLarge where no plan fits, or where options leave no choice
    """
    tried, limit = library, 0
    for _ in range(_TRIES):
        try:
            firmware = made(tried)
            break
        except TooLarge as error:
            missing = error.over.get("RAM", 0)
            least = library.least_arena() if _may_choose(library) else None
            if least is None or set(error.over) != {"RAM"}:
                raise
            limit = (tried.plan.arena_bytes - missing) // _ALIGN * _ALIGN
            if limit < least:
                raise
            tried = library.again(ram_limit=limit)
    else:
        firmware = made(tried)
    if tried is library:
        return Program(library, firmware)
    arenas = library.plan.arena_bytes, tried.plan.arena_bytes
    instance, points = library.tables.instance_bytes, library.ram_curve()
    told = fit(board.name, board.ram.size, limit, arenas, instance, points)
    return Program(tried, firmware, told)


def _may_choose(library: Library) -> bool:
    """True if the user left it open how much RAM the arena takes."""
    chosen = library.options
    return chosen.ram_limit is None and chosen.plan == "rows"
