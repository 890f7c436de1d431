"""The cost of one inference on a board: instructions by layer, RAM, stack, flash.

Everything is counted or read off the program; nothing is estimated but the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from pybuild.boards.device import Device, pack_inputs, program_of
from pybuild.boards.firmware.build import Firmware
from pybuild.boards.firmware.elf import Elf
from pybuild.boards.firmware.fit import Program
from pybuild.boards.firmware.model_header import arrays_of
from pybuild.boards.firmware.worst import KernelBound, kernel_bounds
from pybuild.boards.simulators.count import Counts, count_plan
from pybuild.boards.simulators.simulator import must_succeed
from pybuild.bounds.stack import StackFrame
from pybuild.errors import BuildError
from pybuild.package.curve import Fit, fit_facts
from pybuild.package.report import layer
from pybuild.plan.schedule.lock_step import PUSH
from pybuild.records import dataclass
from pybuild.verify.samples import sample

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

RUNTIME = "runtime"  # the row of crt's own instructions


@dataclass(frozen=True)
class LayerCost:
    """A step of the plan; the last row is the runtime's.

    cycles  estimated (timings.py); None: none are published for the core
    """

    name: str
    short: str
    op: str
    macs: int
    instructions: int
    cycles: int | None


@dataclass(frozen=True)
class BoardRam:
    """Bytes.

    stack        what one inference used, measured by painting
    data         everything else of .data and .bss
    stack_bound  of one inference, from the compiler's frames
    program      stack of the whole program at most, from reset on
    second       what the stack of a second core has held; second_bound: at most;
                 0 where none takes part
    """

    arena: int
    instance: int
    stack: int
    data: int
    stack_bound: int
    program: int
    second: int
    second_bound: int


@dataclass(frozen=True)
class BoardFlash:
    """Bytes; tables: step tables and descriptions; board: all that is neither crt
    nor model: start-up, console, the runner, the compiler's run time.
    """

    runtime: int
    kernels: int
    tables: int
    weights: int
    board: int


@dataclass(frozen=True)
class Sections:
    """Bytes of crt and model by section."""

    text: int
    rodata: int
    data: int
    bss: int


@dataclass(frozen=True)
class WorstCase:
    """The instructions that no input can exceed.

    instructions  of an inference; None where something of it is open
    kernels       of each function of the model: those counted, and at most
    open          functions and layers whose time has no bound here, and why
    """

    instructions: int | None
    kernels: tuple[KernelBound, ...]
    open: tuple[str, ...]


@dataclass(frozen=True)
class BoardBench:
    """emit  "c", or "obj" for kernels compiled by LLVM
    cores  instructions of each core, waiting left out
    wall   instructions from begin to end where all cores run at one pace: with what
           the first has waited for the second; of one core, its own
    alone  of the same model's build for one core, where equal cores share the run
    fit    what its plan costs, where the one of the library does not fit the board
    worst  instructions for any input; None: the simulator does not say what was run
    chain  of calls that takes ram.stack_bound, from the runner's frame on
    """

    device: Device
    model: str
    emit: str
    instructions: int
    layers: tuple[LayerCost, ...]
    ram: BoardRam
    flash: BoardFlash
    sections: Sections
    cores: tuple[int, ...]
    wall: int
    fit: Fit | None = None
    worst: WorstCase | None = None
    chain: tuple[StackFrame, ...] = ()
    alone: int | None = None

    @property
    def share(self) -> float | None:
        """What equal cores take of one core's instructions, from begin to end."""
        return None if self.alone is None else self.wall / self.alone

    @property
    def cycles(self) -> int | None:
        """Estimated, of the whole inference."""
        known = [row.cycles for row in self.layers if row.cycles is not None]
        return sum(known) if known else None

    def to_json(self) -> dict[str, Any]:
        return {
            **self.device.to_json(),
            "model": self.model,
            "emit": self.emit,
            "instructions": self.instructions,
            "cycles": self.cycles,
            "macs": sum(row.macs for row in self.layers),
            "layers": [asdict(row) for row in self.layers],
            "ram": asdict(self.ram),
            "flash": asdict(self.flash),
            "sections": asdict(self.sections),
            "cores": list(self.cores),
            "wall": self.wall,
            "alone": self.alone,
            "share": self.share,
            "worst": asdict(self.worst) if self.worst else None,
            "stack_chain": [asdict(frame) for frame in self.chain],
            **fit_facts(self.fit),
        }


def bench_on_board(device: Device, library: Library, seed: int = 0) -> BoardBench:
    """Runs one inference on a seeded input and counts it; rows of pushed inputs are
    pushed.

    Errors  BuildError; LimitError where the program does not fit the board
    """
    return bench_program(device, program_of(device, library), seed)


def bench_program(device: Device, program: Program, seed: int = 0) -> BoardBench:
    """Does the same as bench_on_board, with a program that is already built."""
    library, firmware = program.library, program.firmware
    counts, files = counted(device, program, seed)
    stacks = np.frombuffer(files["crt.stack"], "<u4").tolist()
    return BoardBench(
        device=device,
        model=library.report.name,
        emit="c" if library.processor is None else "obj",
        instructions=counts.total,
        layers=_layers(library, counts),
        ram=_ram(firmware, arrays_of(library.tables), *stacks),
        flash=_flash(firmware),
        sections=_sections(firmware.elf),
        cores=counts.cores,
        wall=counts.wall,
        fit=program.fit,
        worst=_worst(library, firmware, counts),
        chain=firmware.run_chain.frames,
        alone=_alone(device, library, seed),
    )


def _alone(device: Device, library: Library, seed: int) -> int | None:
    """The instructions of one core's own build; None: the build is that."""
    if library.tables.cores == 1:
        return None
    program = program_of(device, library.again(cores=1))
    return counted(device, program, seed)[0].total


def counted(
    device: Device, program: Program, seed: int
) -> tuple[Counts, Mapping[str, bytes]]:
    """The counts of one inference on a seeded input, and the files that the program
    wrote.

    Errors  BuildError where the simulator counts nothing
    """
    firmware, plan = program.firmware, program.library.plan
    inputs = sample(plan.graph, "uniform", (seed, 0)).inputs
    # the second inference counts: the first has a little to set up
    given = {"crt.in": pack_inputs(plan, [inputs, inputs])}
    counting = count_plan(firmware, len(plan.steps), bool(plan.pushed))
    outcome = must_succeed(device.simulator.run(firmware, given, counting), firmware)
    if outcome.counts is None or outcome.counts.total == 0:
        raise BuildError(device.simulator.name, "counted no instructions")
    return outcome.counts, outcome.files


def _worst(library: Library, firmware: Firmware, counts: Counts) -> WorstCase | None:
    """Loops turn as counted where data has no say; of short tests the longer way."""
    if counts.trace is None:
        return None
    kernels = kernel_bounds(firmware.elf, firmware.core.arch, counts.trace)
    layers = library.report.bounds
    reasons = [f"{one.name}: {one.open}" for one in kernels if one.open]
    reasons += [
        f"{one.short} ({one.op}): loops of data" for one in layers if one.data_loops
    ]
    most = counts.total + sum(one.most - one.counted for one in kernels)
    return WorstCase(None if reasons else most, kernels, tuple(reasons))


def _layers(library: Library, counts: Counts) -> tuple[LayerCost, ...]:
    """The cost of each step; copies of pushed rows count as the runtime's."""
    graph = library.plan.graph
    costs = []
    runtime, timed = counts.runtime, counts.cycles is not None
    own, *cycles = counts.cycles or (0,) * (1 + len(counts.steps))
    for step, spent, time in zip(library.plan.steps, counts.steps, cycles, strict=True):
        if step.node.op == PUSH:
            runtime, own = runtime + spent, own + time
            continue
        row = layer(step.node, graph)
        known = time if timed else None
        costs.append(LayerCost(row.name, row.short, row.op, row.macs, spent, known))
    own_time = own if timed else None
    return (*costs, LayerCost(RUNTIME, RUNTIME, "", 0, runtime, own_time))


def _ram(
    firmware: Firmware, arrays: Mapping[str, str], stack: int, second: int
) -> BoardRam:
    """arrays: the runner's for the model's regions, and their names"""
    elf, others = firmware.elf, firmware.board.memories
    arenas = {n: elf.by_name[n].size for n in arrays}
    instance = elf.by_name["model"].size
    inside = sum(arenas[n] for n, region in arrays.items() if region not in others)
    rest = elf.size(".data") + elf.size(".bss") - inside - instance
    return BoardRam(
        arena=sum(arenas.values()),
        instance=instance,
        stack=stack,
        data=rest,
        stack_bound=firmware.run_chain.bytes,
        program=firmware.stack_bound,
        second=second,
        second_bound=firmware.second_bound,
    )


def _total(elf: Elf, names: Sequence[str]) -> int:
    return sum(elf.size(name) for name in names)


_BOARD = (
    ".boot",
    ".literal",
    ".vectors",
    ".waiting",
    ".text",
    ".rodata",
    ".data",
    ".ARM.extab",
    ".ARM.exidx",
)


def _flash(firmware: Firmware) -> BoardFlash:
    elf = firmware.elf
    return BoardFlash(
        runtime=_total(elf, (".runtime", ".runtime_const")),
        kernels=elf.size(".kernels"),
        tables=elf.size(".tables"),
        weights=elf.size(".weights"),
        board=_total(elf, _BOARD),
    )


def _sections(elf: Elf) -> Sections:
    data = elf.address("board_model_data_end") - elf.address("board_data_start")
    bss = elf.address("board_model_bss_end") - elf.address("board_bss_start")
    return Sections(
        text=_total(elf, (".runtime", ".kernels")),
        rodata=_total(elf, (".runtime_const", ".tables", ".weights")),
        data=data,
        bss=bss,
    )
