"""Counts an inference on a simulated board for a table, as a figure that is kept by the
bytes of the program: `store().all` of what `ready` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pybuild.boards.bench import RUNTIME, BoardBench, bench_program
from pybuild.boards.device import Device, pack_inputs, program_of
from pybuild.boards.firmware.fit import Program
from pybuild.errors import BuildError
from pybuild.host.build_facts import Library
from pybuild.plan.schedule.lock_step import PUSH
from pybuild.verify.samples import sample
from tests.figures import keys
from tests.figures.store import Facts, Ready


@dataclass(frozen=True)
class Counted:
    """What tables say of an inference; refused: why there is none.

    layers  instructions of each operator's kernel, in order
    kernels  the names of these; "" where a layer has no function
    ops, names  their operators, and what they are called in the model
    """

    refused: str = ""
    macs: int = 0
    kernels: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    instructions: int = 0
    cycles: int | None = None
    layers: tuple[int, ...] = ()
    arena: int = 0
    instance: int = 0
    stack: int = 0
    runtime: int = 0
    code: int = 0
    tables: int = 0
    weights: int = 0

    @property
    def ram(self) -> int:
        return self.arena + self.instance + self.stack

    @property
    def all_code(self) -> int:
        """With the runtime's and the step tables."""
        return self.runtime + self.code + self.tables

    @property
    def kernel_instructions(self) -> int:
        """Without the runtime's."""
        return sum(self.layers)


def counted(facts: Facts) -> Counted:
    """The figure as the store has it."""
    lists = {name: tuple(v) for name, v in facts.items() if isinstance(v, list)}
    known = Counted.__dataclass_fields__
    return Counted(**{n: v for n, v in (facts | lists).items() if n in known})


def ready(device: Device, library: Library) -> Ready:
    """Of a library: its program is built, and counted when it is asked for."""
    program = program_of(device, library)
    return Ready(
        program_key(device, program),
        facts_of(program.library),
        lambda: value_of(bench_program(device, program)),
    )


def or_refused(build: Callable[[], tuple[Device, Library]]) -> Ready:
    """As `ready`; where the build or the board refuses, that is the figure."""
    try:
        return ready(*build())
    except BuildError as error:
        return Ready(keys.hashed("refused"), {"refused": str(error)}, dict)


def program_key(device: Device, program: Program, *more: object) -> str:
    """Of all that decides what a simulator counts, and `more` that is measured."""
    plan = program.library.plan
    given = pack_inputs(plan, [sample(plan.graph, "uniform", (0, 0)).inputs])
    tools = (device.toolchain.name, device.toolchain.version, device.simulator.name)
    where = (device.board.name, device.core.name, *tools)
    steps = [step.node.op for step in plan.steps]
    image = keys.image(program.firmware.path)
    return keys.hashed(image, where, keys.counting(), given, steps, *more)


def facts_of(library: Library) -> Facts:
    steps = [step for step in library.plan.steps if step.node.op != PUSH]
    functions = [step.candidate.func for step in steps]
    return {
        "macs": sum(row.macs for row in library.report.layers),
        "kernels": [func.name if func is not None else "" for func in functions],
        "ops": [step.node.op for step in steps],
        "names": [step.node.name for step in steps],
    }


def value_of(found: BoardBench) -> Facts:
    layers = [row for row in found.layers if row.name != RUNTIME]
    value: dict[str, Any] = {
        "instructions": found.instructions,
        "layers": [row.instructions for row in layers],
        "arena": found.ram.arena,
        "instance": found.ram.instance,
        "stack": found.ram.stack,
        "runtime": found.flash.runtime,
        "code": found.flash.kernels,
        "tables": found.flash.tables,
        "weights": found.flash.weights,
    }
    return value if found.cycles is None else value | {"cycles": found.cycles}
