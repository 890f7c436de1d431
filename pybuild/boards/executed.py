"""How often one inference on a board executes each instruction of a model's kernels.

Counted in a simulator that says which code ran; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pybuild.boards.bench import counted
from pybuild.boards.device import Device, program_of
from pybuild.boards.firmware.worst import function_counts
from pybuild.errors import BuildError
from pybuild.records import dataclass

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library


@dataclass(frozen=True)
class Executed:
    """library  whose program it was: with another plan where the first does not fit
    counts   of each function: of each instruction, by address, and whether it only
             fills up to an address
    """

    library: Library
    board: str
    counts: Mapping[str, Sequence[tuple[int, bool]]]


def executed(device: Device, library: Library, seed: int = 0) -> Executed:
    """How often each instruction is executed in one inference of an `emit="obj"`
    library, on a seeded input.

    Errors  BuildError where the simulator does not say what ran; LimitError where
            the program does not fit the board
    """
    program = program_of(device, library)
    counts, _ = counted(device, program, seed)
    if counts.trace is None:
        what = "does not say how often it executes which line"
        raise BuildError(device.simulator.name, what, "--simulator unicorn")
    firmware = program.firmware
    found = function_counts(firmware.elf, firmware.core.arch, counts.trace)
    return Executed(program.library, device.board.name, found)
