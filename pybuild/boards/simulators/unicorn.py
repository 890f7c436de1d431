"""Firmware in Unicorn: the board's memories and console, no QEMU and no process.

Any access outside them ends the run with its exact place.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.firmware.worst import Trace
from pybuild.boards.simulators.count import (
    CountPlan,
    Counts,
    costs_of,
    counter_library,
    counts_of,
    plan_fields,
)
from pybuild.boards.simulators.semihost import Semihost
from pybuild.boards.simulators.simulator import FAULT, TIMEOUT, Files, Outcome
from pybuild.errors import BuildError
from pybuild.targets.board import Board
from pybuild.targets.facts import Memory

PAGE = 0x1000
WIDEST = 16  # bytes of one access
_PERIPHERALS = range(0x40000000, 0x60000000)  # of every Cortex-M
NOWHERE = 0xFFFFFFFE  # an address that no program reaches
SYSTEM = 0xE000E000  # SysTick and the system control block of Cortex-M
_MOST_STEPS = _MOST_JOBS = 4096  # of boards/host/count.h
# data register; what others read when a byte may be sent, all were, and none came
_UARTS: dict[str, tuple[int, dict[int, int]]] = {
    "cmsdk": (0x00, {}),
    "stm32": (0x04, {0x00: 0x80}),
    "pl011": (0x00, {0x18: 0x10}),
    "nrf51": (0x51C, {0x11C: 1}),
    "ns16550": (0x00, {0x05: 0x20}),
    "sifive": (0x00, {0x04: 0x80000000, 0x14: 1}),
}


class Unicorn:
    """The unicorn package of this Python."""

    def __init__(self) -> None:
        self.name = f"Unicorn {importlib.metadata.version('unicorn')}"

    def run(
        self, firmware: Firmware, files: Files, plan: CountPlan | None = None
    ) -> Outcome:
        if firmware.second:
            what = f"has one core, this program of {firmware.board.name} uses two"
            raise BuildError("Unicorn", what, "QEMU has both")
        machine = Machine(firmware, files)
        counter = _Counter(machine.uc, firmware, plan) if plan is not None else None
        code, said = machine.run()
        counts = counter.counts() if counter is not None else None
        made = {name: bytes(data) for name, data in machine.host.files.items()}
        said_here = machine.console + machine.host.said
        console = said_here.decode(errors="replace")
        return Outcome(code, console, made, counts, said)


class Machine:
    """One simulated processor with the board's memories."""

    def __init__(self, firmware: Firmware, files: Files) -> None:
        import unicorn

        self.unicorn: Any = unicorn
        self.firmware = firmware
        self.board = firmware.board
        self.is_arm = firmware.core.arch == "arm"
        self.console = bytearray()
        self.uc = self._processor()
        self._map_memories()
        self.host = Semihost(files, self._read, self._write)
        self.outside = ""  # the access that no memory of the board has
        self.uc.hook_add(unicorn.UC_HOOK_INTR, self._interrupted)
        self.uc.hook_add(unicorn.UC_HOOK_MEM_UNMAPPED, self._unmapped)
        for memory in (self.board.flash, *self._rams()):
            self._end_at(memory)

    def _processor(self) -> Any:
        unicorn = self.unicorn
        if self.is_arm:
            mode = unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS
            uc = unicorn.Uc(unicorn.UC_ARCH_ARM, mode)
            models = unicorn.arm_const
            model = getattr(models, f"UC_CPU_ARM_{self.board.core.unicorn}")
        else:
            uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
            models = unicorn.riscv_const
            model = getattr(models, f"UC_CPU_RISCV32_{self.board.core.unicorn}")
        uc.ctl_set_cpu_model(model)
        return uc

    def _rams(self) -> tuple[Memory, ...]:
        return self.board.ram, *self.board.memories.values()

    def _end_at(self, memory: Memory) -> None:
        """To the byte: an engine's memory is whole pages."""
        end = memory.origin + memory.size
        if memory.size % PAGE == 0:
            return

        def touched(
            uc: Any, access: int, at: int, size: int, value: int, user: object
        ) -> None:
            if at + size > end and not self.outside:
                self.outside = f"access of 0x{max(at, end):08X} at {self._place()}"
                uc.emu_stop()

        kinds = self.unicorn.UC_HOOK_MEM_READ | self.unicorn.UC_HOOK_MEM_WRITE
        last = memory.origin + -(-memory.size // PAGE) * PAGE - 1
        self.uc.hook_add(kinds, touched, None, end - WIDEST + 1, last)

    def _unmapped(
        self, uc: Any, access: int, at: int, size: int, value: int, user: object
    ) -> bool:
        if self.is_arm and at in _PERIPHERALS and self.board.uart in _UARTS:
            uc.mem_map(at & -PAGE, PAGE)  # pins and clocks: registers that keep
            return True
        self.outside = self.outside or f"access of 0x{at:08X} at {self._place()}"
        return False

    def _map_memories(self) -> None:
        board, uc = self.board, self.uc
        for memory in (board.flash, *self._rams()):
            uc.mem_map(memory.origin, -(-memory.size // PAGE) * PAGE)
        for segment in self.firmware.elf.segments:
            uc.mem_write(segment.address, segment.data)
        if self.is_arm:
            uc.mem_map(SYSTEM, PAGE)
        if board.uart in _UARTS:
            page = board.uart_base & -PAGE
            uc.mmio_map(page, PAGE, self._load, None, self._store, None)

    def _load(self, uc: object, offset: int, size: int, user: object) -> int:
        """Reads of the console's page: always ready to send, nothing came."""
        _, others = _UARTS[self.board.uart]
        return others.get(offset - self.board.uart_base % PAGE, 0)

    def _store(
        self, uc: object, offset: int, size: int, value: int, user: object
    ) -> None:
        data, _ = _UARTS[self.board.uart]
        if offset == self.board.uart_base % PAGE + data:
            self.console.append(value & 0xFF)

    def _read(self, at: int, size: int) -> bytes:
        return bytes(self.uc.mem_read(at, size))

    def _write(self, at: int, data: bytes) -> None:
        self.uc.mem_write(at, data)

    def _registers(self) -> tuple[int, int, int]:
        """Numbers of the program counter and of a call's two arguments."""
        if self.is_arm:
            arm = self.unicorn.arm_const
            return arm.UC_ARM_REG_PC, arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1
        riscv = self.unicorn.riscv_const
        return riscv.UC_RISCV_REG_PC, riscv.UC_RISCV_REG_A0, riscv.UC_RISCV_REG_A1

    def _interrupted(self, uc: Any, number: int, user: object) -> None:
        """A semihosting call, or a fault, which ends the program."""
        if not self._called(uc):
            self.host.code = FAULT
            uc.emu_stop()

    def _called(self, uc: Any) -> bool:
        """Answers the semihosting call at the program counter, if there is one."""
        pc, first, second = self._registers()
        at = self._pc()
        call = b"\xab\xbe" if self.is_arm else b"\x73\x00\x10\x00"
        if not self._within(at) or self._read(at, len(call)) != call:
            return False
        answer = self.host.call(uc.reg_read(first), uc.reg_read(second))
        uc.reg_write(first, answer & 0xFFFFFFFF)
        if self.host.code is None:
            uc.reg_write(pc, at + len(call) | (1 if self.is_arm else 0))
        else:
            uc.emu_stop()
        return True

    def _within(self, at: int) -> bool:
        flash = self.board.flash
        return flash.origin <= at < flash.origin + flash.size

    def run(self) -> tuple[int, str]:
        """Exit code, and where a fault was."""
        start: int | None = self._start()
        fault = ""
        while start is not None and not fault:
            try:
                self.uc.emu_start(start, NOWHERE, timeout=int(TIMEOUT * 1e6))
                start = None
            except self.unicorn.UcError as error:
                # it knows no ebreak of RISC-V: the call is answered from outside
                if not self.is_arm and self._called(self.uc):
                    start = None if self.host.code is not None else self._pc()
                else:
                    fault = self.outside or f"{error} at {self._place()}"
        fault = fault or self.outside
        if fault:
            return FAULT, fault
        if self.host.code is None:
            what = f"did not end within {TIMEOUT:g} seconds, at {self._place()}"
            raise BuildError(self.board.name, what)
        return self.host.code, ""

    def _start(self) -> int:
        """The first instruction; Cortex-M takes it and the stack from a table."""
        if not self.is_arm:
            return self.firmware.elf.entry
        vectors = self._read(self.board.flash.origin, 8)
        stack = int.from_bytes(vectors[:4], "little")
        self.uc.reg_write(self.unicorn.arm_const.UC_ARM_REG_SP, stack)
        return int.from_bytes(vectors[4:], "little")

    def _pc(self) -> int:
        return int(self.uc.reg_read(self._registers()[0]))

    def _place(self) -> str:
        """The program counter, and the function that it is in."""
        at = self._pc()
        inside = (
            s.name
            for s in self.firmware.elf.symbols
            if s.code and s.address <= at < s.address + s.size
        )
        return f"0x{at:08X}, {next(inside, 'in no function')}"


def _numbers(*names: str) -> tuple[tuple[str, Any], ...]:
    return tuple((name, ctypes.c_uint64) for name in names)


class _Core(ctypes.Structure):
    """struct core of boards/host/count.h"""

    _fields_ = (
        *_numbers("step", "waits", "time", "of_runtime"),
        ("of_step", ctypes.c_uint64 * _MOST_STEPS),
        *_numbers("next", "single", "cycles_of_runtime"),
        ("cycles_of_step", ctypes.c_uint64 * _MOST_STEPS),
    )


class _Fields(ctypes.Structure):
    """struct count of boards/host/count.h"""

    _fields_ = (
        *_numbers(*CountPlan.__dataclass_fields__),
        *_numbers("on", "begun", "given", "taken", "done_at"),
        ("core", _Core * 2),
        ("job_at", ctypes.c_uint64 * _MOST_JOBS),
        ("job_step", ctypes.c_uint64 * _MOST_JOBS),
    )


class _Costs(ctypes.Structure):
    """struct costs of boards/host/count.h"""

    _fields_ = (("of", ctypes.c_char_p), *_numbers("at", "bytes", "taken"))


class _Count(ctypes.Structure):
    """struct unicorn_count of boards/host/unicorn_count.c"""

    _fields_ = (
        ("count", _Fields),
        ("code", ctypes.c_char_p),
        ("code_at", ctypes.c_uint64),
        ("code_bytes", ctypes.c_uint64),
        ("is_riscv", ctypes.c_uint64),
        ("costs", _Costs),
        ("ran", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
    )


class _Counter:
    """Our C hooks in an engine."""

    def __init__(self, uc: Any, firmware: Firmware, plan: CountPlan) -> None:
        library = ctypes.CDLL(str(counter_library("unicorn_count.c")))
        image = firmware.elf.image(firmware.board.flash.origin)
        self.state = _Count(
            code=image,
            code_at=firmware.board.flash.origin,
            code_bytes=len(image),
            is_riscv=firmware.core.arch == "riscv",
        )
        self.known = costs_of(firmware)
        if self.known is not None:
            known = self.known
            self.state.costs = _Costs(known.of, known.at, known.bytes, known.taken)
        halves = len(image) // 2 + 1
        self.ran, self.left = (np.zeros(halves, np.int64) for _ in range(2))
        self.state.ran, self.state.left = self.ran.ctypes.data, self.left.ctypes.data
        for name, value in plan_fields(plan).items():
            setattr(self.state.count, name, value)
        self._keep = library
        import unicorn

        self._hook(uc, unicorn.UC_HOOK_BLOCK, library.unicorn_block, (1, 0))
        table = (plan.table, plan.table + plan.step_bytes * plan.step_count - 1)
        self._hook(uc, unicorn.UC_HOOK_MEM_READ, library.unicorn_read, table)

    def _hook(self, uc: Any, kind: int, function: Any, where: tuple[int, int]) -> None:
        from unicorn.unicorn_py3.unicorn import uclib

        handle = ctypes.c_size_t()
        status = uclib.uc_hook_add(
            uc._uch, ctypes.byref(handle), kind,
            ctypes.cast(function, ctypes.c_void_p), ctypes.byref(self.state),
            ctypes.c_uint64(where[0]), ctypes.c_uint64(where[1]),
        )  # fmt: skip
        if status:
            raise BuildError("Unicorn", f"uc_hook_add gave error {status}")

    def counts(self) -> Counts:
        count = self.state.count
        core = count.core[0]
        own = core.of_runtime, tuple(core.of_step[: count.step_count])
        steps = core.cycles_of_step[: count.step_count]
        cycles = [(core.cycles_of_runtime, *steps)] if self.known else None
        made = counts_of(core.time, [own], second=False, cycles=cycles)
        ran = np.cumsum(self.ran).tolist()
        trace = Trace(int(self.state.code_at), ran, self.left.tolist())
        return replace(made, trace=trace)


def find_unicorn(board: Board) -> Unicorn | None:
    """Unicorn, if it is here and has this board's core."""
    known = board.core.unicorn and importlib.util.find_spec("unicorn") is not None
    return Unicorn() if known else None
