"""Boards that no machine of a simulator is: their core, with their memories.

In Unicorn memories lie where the chip has them. QEMU knows machines only: memories of
the chip's sizes then lie in those of a machine that has the core.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.install import boards
from pybuild.records import dataclass
from pybuild.targets.board import Board
from pybuild.targets.chip import HARTS
from pybuild.targets.facts import Memory

_K = 1024
_ALIGN = 4096
CONSOLE = "semihosting"


@dataclass(frozen=True)
class StandIn:
    """A machine of QEMU that has a core, and what room its memories have.

    vectors  where the core finds its vector table, if not where flash begins
    pair  options with which it has two of these cores; (): it has one
    """

    system: str
    machine: str
    flash: Memory
    ram: Memory
    arguments: tuple[str, ...] = ()
    vectors: int | None = None
    pair: tuple[str, ...] = ()


_M55 = StandIn(
    "arm", "mps3-an547", Memory(0x01000000, 2048 * _K),
    Memory(0x60000000, 64 * _K * _K), vectors=0,
)  # fmt: skip
_RV32 = StandIn(
    "riscv32", "virt",
    Memory(0x80000000, 32 * _K * _K), Memory(0x84000000, 32 * _K * _K),
    ("-bios", "none"), pair=("-smp", "2", "-accel", "tcg,thread=single"),
)  # fmt: skip


def rv32_vectors(bits: int = 128) -> StandIn:
    """A machine whose vector registers have so many bits."""
    cpu = f"rv32,v=true,vlen={bits},vext_spec=v1.0"
    return replace(_RV32, arguments=(*_RV32.arguments, "-cpu", cpu))


def _mps2(name: str, flash: int = 0, ram: int = 0x20000000) -> StandIn:
    sizes = Memory(flash, 4096 * _K), Memory(ram, 2048 * _K)
    return StandIn("arm", name, *sizes)


STAND_INS = {
    "cortex-m3": _mps2("mps2-an385"),
    "cortex-m4": _mps2("mps2-an386"),
    "cortex-m7": _mps2("mps2-an500"),
    "cortex-m33": _mps2("mps2-an505", 0x10000000, 0x38000000),
    "cortex-m55": _M55,
    "cortex-m52": _M55,
    "cortex-m85": _M55,
    "rv32imc": _RV32,
    "rv32imac": _RV32,
    "rv32imac_zba_zbb": _RV32,
    "rv32imcv": rv32_vectors(),
    "rv32imc_zve32x": rv32_vectors(),
    "xtensa-lx106": StandIn(
        "xtensa", "sim",
        Memory(0x50000000, 65536 * _K), Memory(0x60000000, 65536 * _K),
        ("-cpu", "lx106"),
    ),
}  # fmt: skip


def qemu_system(board: Board) -> str:
    """The QEMU system that has this board, or a machine with its core; "": there is
    none."""
    other = STAND_INS.get(board.core.name)
    return board.system or (other.system if other else "")


def simulation(board: Board) -> str:
    """ "simulated": a machine is this board; "core-simulated"; or "facts only"."""
    if board.machine:
        return "simulated"
    on_core = board.core.unicorn or board.core.name in STAND_INS
    return "core-simulated" if on_core else "facts only"


def in_unicorn(board: Board) -> Board:
    """The board as Unicorn simulates it: with a console through semihosting."""
    if board.machine:
        return board
    common = boards() / "common" / "core_console.c"
    return replace(board, uart=CONSOLE, uart_base=0, console=common)


def has_pair(board: Board) -> bool:
    """True if a machine of QEMU that stands in for the board has two of its cores."""
    other = STAND_INS.get(board.core.name)
    return not board.machine and other is not None and bool(other.pair)


def in_qemu(board: Board, cores: int = 1) -> Board:
    """The board as a machine of QEMU: further memories lie behind its RAM."""
    if board.machine:
        return board
    other = STAND_INS[board.core.name]
    at, memories = other.ram.origin + _whole(board.ram.size), {}
    for name, memory in board.memories.items():
        memories[name] = Memory(at, memory.size)
        at += _whole(memory.size)
    flash = min(board.flash.size, other.flash.size)
    return replace(
        in_unicorn(board),
        flash=Memory(other.flash.origin, flash),
        ram=Memory(other.ram.origin, board.ram.size),
        memories=memories,
        vectors=other.vectors,
        system=other.system,
        machine=other.machine,
        arguments=(*other.arguments, *(other.pair if cores > 1 else ())),
        chip=HARTS if cores > 1 else board.chip,
    )


def _whole(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN
