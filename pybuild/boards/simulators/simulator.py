"""The interface of every simulator: a firmware and files in, results out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.simulators.count import CountPlan, Counts
from pybuild.errors import BuildError
from pybuild.host.abi import errors
from pybuild.records import dataclass

Files = Mapping[str, bytes]
FAULT, BAD_FILE, STACK_OVERFLOW = 99, 90, 91  # exit codes of boards/common
TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its exit code, console, files and instruction counts."""

    code: int
    console: str
    files: Files
    counts: Counts | None = None
    said: str = field(default="")


class Simulator(Protocol):
    """A machine that runs firmware of a board."""

    @property
    def name(self) -> str:
        """The simulator's name with its version."""
        ...

    def run(
        self, firmware: Firmware, files: Files, plan: CountPlan | None = None
    ) -> Outcome:
        """Runs to the program's exit.

        files   what the program can open
        Errors  BuildError where the machine cannot start or does not end
        """
        ...


def must_succeed(outcome: Outcome, firmware: Firmware) -> Outcome:
    """The outcome, if the program ended well.

    Errors  BuildError in the words of crt or of the start-up code
    """
    known = {
        FAULT: "the processor faulted: a wrong address or instruction",
        BAD_FILE: "the runner could not read or write a file",
        STACK_OVERFLOW: "the stack ran into other data",
    }
    if outcome.code == 0:
        return outcome
    error = errors().get(-outcome.code)
    what = known.get(outcome.code) or (error.__doc__ if error else "") or "failed"
    if outcome.said:
        what += f" ({outcome.said})"
    raise BuildError(f"{firmware.name} on {firmware.board.name}", what)
