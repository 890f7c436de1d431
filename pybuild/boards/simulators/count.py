"""The counting code in the simulators: C that is compiled on first use, and its
results.

Knows addresses of a firmware; runs nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.firmware.worst import Trace
from pybuild.boards.simulators.timings import TIMINGS, costs
from pybuild.errors import BuildError, Lines
from pybuild.install import SHARED_FLAGS, boards, called, host_compiler, made_once
from pybuild.records import dataclass

_SOURCES = ("cycles.h", "count.h", "qemu_count.c", "unicorn_count.c")
# the runner's struct crt_cores; where in it the first core says which call it is at,
# and each of the others that it is done
_CORES, _CALL, _READY = "board_cores", 8, 32
# QEMU has the functions that its plugin calls
_UNDEFINED = {
    "linux": ("-Wl,--allow-shlib-undefined",),
    "darwin": ("-Wl,-undefined,dynamic_lookup",),
}


@dataclass(frozen=True)
class CountPlan:
    """One inference of a firmware; the fields of struct count, in their order."""

    begin: int
    last: int
    end: int
    runtime: int
    runtime_end: int
    table: int
    step_bytes: int
    step_count: int
    waiting: int
    waiting_end: int
    ring: int
    call: int
    ready: int
    ready_end: int
    others: int
    others_end: int


@dataclass(frozen=True)
class Counts:
    """Instructions of the runtime, and of each step of the plan, on all cores.

    cores  of each core
    wall   from begin to end, where cores wait for each other at one instruction a
           tick; of one core its total
    cycles estimated, of the runtime and of each step; None: of this core no timings
           are published
    trace  which code was run; None: the simulator does not say
    """

    runtime: int
    steps: tuple[int, ...]
    cores: tuple[int, ...]
    wall: int
    cycles: tuple[int, ...] | None = None
    trace: Trace | None = None

    @property
    def total(self) -> int:
        return self.runtime + sum(self.steps)


@dataclass(frozen=True)
class Costs:
    """The cycles of a firmware's instructions; the fields of struct costs."""

    of: bytes
    at: int
    taken: int

    @property
    def bytes(self) -> int:
        """The size of the code in bytes."""
        return 2 * len(self.of)


def costs_of(firmware: Firmware) -> Costs | None:
    """The cycles of the code in flash, if timings of the core are published."""
    timing = TIMINGS.get(firmware.core.name)
    if timing is None:
        return None
    at = firmware.board.flash.origin
    return Costs(costs(firmware.elf.image(at), timing), at, timing.taken)


def counts_of(
    wall: int,
    cores: Sequence[tuple[int, Sequence[int]]],
    used: int,
    cycles: Sequence[Sequence[int]] | None = None,
) -> Counts:
    """From the runtime's and the steps' of each core; `used`: so many take part.

    cycles  of each core: the runtime's, then the steps'
    """
    cores = cores[:used]
    steps = zip(*(own for _, own in cores), strict=True)
    totals = tuple(runtime + sum(own) for runtime, own in cores)
    runtime = sum(own for own, _ in cores)
    both = None
    if cycles is not None:
        both = tuple(map(sum, zip(*cycles[:used], strict=True)))
    return Counts(runtime, tuple(map(sum, steps)), totals, wall, both)


def count_plan(firmware: Firmware, steps: int, pushed: bool = False) -> CountPlan:
    """From the call of the model's run to its return; `steps`: of the plan.

    pushed  every call that takes a row, too
    """
    elf, name = firmware.elf, firmware.name
    runtime, size = elf.sections[".runtime"]
    table = elf.by_name.get(f"{name}_steps")
    waiting, waited = elf.sections.get(".waiting", (0, 0))
    run = f"{name}_run_cores" if firmware.equal else f"{name}_run"
    cores = elf.address(_CORES) if firmware.equal else 0
    others, rest = elf.sections[".text"] if firmware.equal else (0, 0)
    return CountPlan(
        begin=elf.address(f"{name}_push_rows" if pushed else run),
        last=elf.address(run),
        end=elf.address("board_returned"),
        runtime=runtime,
        runtime_end=runtime + size,
        table=table.address if table else 0,
        step_bytes=table.size // steps if table and steps else 1,
        step_count=steps,
        waiting=waiting,
        waiting_end=waiting + waited,
        ring=elf.address("board_second_ring") if firmware.is_device else 0,
        call=cores and cores + _CALL,
        ready=cores and cores + _READY,
        ready_end=cores and cores + _READY + 4,
        others=others,
        others_end=others + rest,
    )


def plan_fields(plan: CountPlan) -> dict[str, int]:
    return asdict(plan)


def counter_library(source: str, *macros: str) -> Path:
    """boards/host/<source> as a shared library of this machine, made once.

    macros  NAME=VALUE of the compiler's command line
    Errors  BuildError without a C compiler
    """
    compiler = host_compiler()
    if not compiler:
        hint = "pip install ziglang, or install gcc"
        raise BuildError("--on", "counting needs a C compiler for this machine", hint)
    folder = boards() / "host"
    texts = [(folder / name).read_bytes() for name in _SOURCES]
    library = f"{Path(source).stem}.so"

    def make(made: Path) -> None:
        given = (f"-D{macro}" for macro in macros)
        _compile((*compiler, *given, str(folder / source), "-o", str(made / library)))

    content = b"".join((repr((compiler, source, *macros)).encode(), *texts))
    return made_once(content, make) / library


def _compile(command: tuple[str, ...]) -> None:
    flags = ("-std=c99", "-O2", *SHARED_FLAGS, *_UNDEFINED.get(sys.platform, ()))
    done = called([*command, *flags])
    if done.returncode != 0:
        said = Lines(f"cannot compile: {done.stderr.strip()}")
        raise BuildError(command[0], said)
