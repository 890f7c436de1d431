"""A board on this machine: its description, a compiler for it, a simulator of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pybuild.boards.firmware.build import Firmware, runner_firmware
from pybuild.boards.firmware.fit import Program, fitted
from pybuild.boards.simulators.qemu import find_qemu, qemu_package
from pybuild.boards.simulators.simulator import Simulator, must_succeed
from pybuild.boards.simulators.stand_ins import (
    has_pair,
    in_qemu,
    in_unicorn,
    simulation,
)
from pybuild.boards.simulators.unicorn import Unicorn, find_unicorn
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.plan.plan import Plan
from pybuild.records import dataclass
from pybuild.targets.board import Board, board_names, load_board
from pybuild.targets.chip import SIMULATED, Chip
from pybuild.targets.core import Core
from pybuild.targets.names import core_named
from pybuild.targets.toolchain import Toolchain, choose_toolchain

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

SIMULATORS = ("qemu", "unicorn")


@dataclass(frozen=True)
class Device:
    """core: whose code is built; the board's own, or one whose code it runs.
    optimise: size, ram, balanced or speed; the compiler's level.
    note: why another simulator was taken than usual; "" for the usual one.
    cores: how many equal ones it has for a run.
    """

    board: Board
    core: Core
    toolchain: Toolchain
    simulator: Simulator
    optimise: str = "balanced"
    note: str = ""
    cores: int = 1

    def to_json(self) -> dict[str, object]:
        """The facts about the device that every result includes."""
        tools = {"name": self.toolchain.name, "version": self.toolchain.version}
        return {
            "board": self.board.name,
            "cpu": self.core.name,
            "toolchain": tools,
            "simulator": self.simulator.name,
            "note": self.note,
        }


def open_device(
    name: str,
    toolchain: str = "auto",
    simulator: str = "auto",
    core: str = "",
    optimise: str = "balanced",
    both: bool = False,
    cores: int = 1,
) -> Device:
    """The board `name`, or the folder of one.

    core    another core than the board's, whose code the board's runs too
    both    a second core takes part, where the board has one
    cores   equal ones that compute a run together
    Errors  BuildError that says what to install
    """
    board = load_board(name)
    chosen = core_named(core) if core else board.core
    if cores > 1:
        must_have_cores(board, chosen, cores)
    machine = choose_simulator(board, simulator, both, cores)
    note = _instead(board, machine) if simulator == "auto" else ""
    if isinstance(machine, Unicorn):
        board = in_unicorn(board)
        board = replace(board, chip=SIMULATED) if cores > 1 else board
    else:
        board = in_qemu(board, cores)
    compiler = choose_toolchain(toolchain, chosen)
    return Device(board, chosen, compiler, machine, optimise, note, cores)


def must_have_cores(board: Board, core: Core, cores: int) -> None:
    """Checks that a board has so many equal cores that run the code of `core`.

    Errors  BuildError that says what it has instead
    """
    chip, other = board.facts, board.second or board.core
    if cores <= chip.equal_cores and core.name in (other.name, *other.runs):
        return
    what = f"{board.name} has {_cores_of(chip)}, not {cores} equal ones"
    raise BuildError("--on", what, boards_hint(cores))


def _cores_of(chip: Chip) -> str:
    if chip.cores == 1:
        return "one core"
    if chip.beside is None:
        return f"{chip.cores} cores"
    return f"a {chip.core.name} and, apart from it, a {chip.beside.name}"


def boards_with(cores: int, target: str = "") -> list[str]:
    """The boards of `crt boards` of which so many equal cores are simulated.

    target  only those whose cores run its kernels; "": any
    """
    return [
        board.name
        for board in map(load_board, board_names())
        if board.facts.equal_cores >= cores
        and target in ("", board.core.target)
        and (board.core.unicorn or _has_both(board))
    ]


def _has_both(board: Board) -> bool:
    """True if a machine of QEMU has both cores of the board, or two such cores."""
    return (bool(board.machine) and board.second is not None) or has_pair(board)


def boards_hint(cores: int) -> str:
    found = boards_with(cores)
    return f"--on {' or '.join(found)}" if found else f"no board has {cores}"


def _instead(board: Board, machine: Simulator) -> str:
    """Says that QEMU, which has the whole board, was not taken, and why."""
    usual = find_qemu(board) if board.machine else None
    if usual is None or not isinstance(machine, Unicorn):
        return ""
    return f"{usual.name} cannot count ({usual.cannot_count}): {machine.name} runs it"


def choose_simulator(
    board: Board, wanted: str = "auto", both: bool = False, cores: int = 1
) -> Simulator:
    """The simulator `wanted`; for "auto" the first that has this board and counts.

    both    its second core, too, if there is one
    cores   equal ones; QEMU has two of the boards that a machine of it is
    Errors  BuildError that says what to install
    """
    both = both and board.second is not None
    qemu, unicorn = find_qemu(board), None if both else find_unicorn(board)
    if cores > 1 and not _has_both(board):
        qemu = None
    first = qemu or unicorn
    # Unicorn has memories where the chip has them
    if unicorn and qemu and (not board.machine or qemu.cannot_count):
        first = unicorn
    found = {"qemu": qemu, "unicorn": unicorn, "auto": first}[wanted]
    if found is not None:
        return found
    if wanted == "unicorn" and (both or not board.core.unicorn):
        what = f"no {board.core.name}"
        what = f"one core, this program of {board.name} uses two" if both else what
        raise BuildError("--simulator", f"Unicorn has {what}", "--simulator qemu")
    if simulation(board) == "facts only":
        what = f"{board.name} is not simulated: no simulator is supported for its "
        what += board.core.name
        raise BuildError("--on", what, "build for it with --target, or use --port")
    if cores > 1 and (wanted == "qemu" or not board.core.unicorn):
        what = f"no simulator of two {board.core.name} is supported"
        if wanted == "qemu":
            what = f"QEMU has no machine with both cores of {board.name}"
        raise BuildError("--cores", what, boards_hint(cores))
    kinds = [s for s in SIMULATORS if wanted in ("auto", s)]
    hints = [missing_simulator(kind, board, both) for kind in kinds]
    where, which = "--simulator", wanted
    if wanted == "auto":  # and no such option was given
        where, which = "--on", "simulator"
    of = f"both cores of {board.name}" if both else board.name
    what = f"there is no {which} of {of} on this machine"
    raise BuildError(where, what, " or ".join(filter(None, hints)))


def missing_simulator(name: str, board: Board, both: bool = False) -> str:
    """The package to install for a simulator; "" if none helps."""
    if name == "qemu":
        return qemu_package(board)
    there = board.core.unicorn and not both
    return "pip install unicorn pyelftools" if there else ""


def run_samples(
    device: Device, library: Library, inputs: Sequence[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """The outputs for each set of inputs, all in one run of the board."""
    return run_program(device, program_of(device, library), inputs)


def run_program(
    device: Device, program: Program, inputs: Sequence[Mapping[str, Array]]
) -> list[dict[str, Array]]:
    """Does the same as run_samples, with a program that is already built."""
    plan, firmware = program.library.plan, program.firmware
    data = pack_inputs(plan, inputs)
    outcome = device.simulator.run(firmware, {"crt.in": data})
    must_succeed(outcome, firmware)
    return _outputs(plan, outcome.files.get("crt.out", b""), len(inputs))


def pack_inputs(plan: Plan, inputs: Sequence[Mapping[str, Array]]) -> bytes:
    """The bytes that runner.c reads."""
    order = plan.graph.inputs
    return b"".join(
        np.ascontiguousarray(given[name]).tobytes()
        for given in inputs
        for name in order
    )


def _outputs(plan: Plan, data: bytes, count: int) -> list[dict[str, Array]]:
    tensors = [plan.graph.tensor(name) for name in plan.graph.outputs]
    at, found = 0, []
    for _ in range(count):
        values = {}
        for tensor in tensors:
            raw = np.frombuffer(data, np.uint8, tensor.bytes, at)
            values[tensor.name] = raw.view(tensor.dtype.numpy).reshape(tensor.shape)
            at += tensor.bytes
        found.append(values)
    return found


def run_recorded(
    device: Device, library: Library, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Every tensor that a step of the plan writes, recorded as its rows are written."""
    program = program_of(device, library, record=True)
    plan, firmware = program.library.plan, program.firmware
    given = {"crt.in": pack_inputs(plan, [inputs])}
    outcome = must_succeed(device.simulator.run(firmware, given), firmware)
    return _records(plan, outcome.files.get("crt.out", b""))


def _records(plan: Plan, data: bytes) -> dict[str, Array]:
    """Puts rows together: each is step, first row and bytes, then the bytes."""
    rows = {
        index: np.zeros(plan.graph.tensor(step.node.output).bytes, np.uint8)
        for index, step in enumerate(plan.steps)
        if step.is_layer
    }
    outputs = sum(plan.graph.tensor(name).bytes for name in plan.graph.outputs)
    at = 0
    while at < len(data) - outputs:
        index, first, size = np.frombuffer(data, np.uint32, 3, at).tolist()
        start = first * plan.steps[index].candidate.outputs[0].row_bytes
        if index in rows:
            raw = np.frombuffer(data, np.uint8, size, at + 12)
            rows[index][start : start + size] = raw
        at += 12 + size
    values = {}
    for index, raw in rows.items():
        tensor = plan.graph.tensor(plan.steps[index].node.output)
        values[tensor.name] = raw.view(tensor.dtype.numpy).reshape(tensor.shape)
    return values


def program_of(device: Device, library: Library, record: bool = False) -> Program:
    """The runner with the library's plan, or with the fastest that fits the board.

    Errors  LimitError where none does
    """
    return fitted(library, device.board, lambda one: firmware_of(device, one, record))


def firmware_of(device: Device, library: Library, record: bool = False) -> Firmware:
    """The runner for one device; `record`: it writes the rows of every step."""
    cores = library.tables.cores
    if cores > device.cores:
        what = f"the build is for {cores} cores, the device was opened for one"
        raise BuildError("--cores", what, f"open_device(..., cores={cores})")
    return runner_firmware(
        library, device.board, device.toolchain, device.core, device.optimise, record
    )
