"""Firmware in Unicorn: the board's memories and console, no QEMU and no process.

Any access outside them ends the run with its exact place.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.simulators.count import CountPlan
from pybuild.boards.simulators.semihost import Semihost
from pybuild.boards.simulators.simulator import FAULT, TIMEOUT, Files, Outcome
from pybuild.boards.simulators.unicorn_count import Counter
from pybuild.errors import BuildError
from pybuild.targets.board import Board
from pybuild.targets.facts import Memory

PAGE = 0x1000
WIDEST = 16  # bytes of one access
_PERIPHERALS = range(0x40000000, 0x60000000)  # of every Cortex-M
NOWHERE = 0xFFFFFFFE  # an address that no program reaches
SYSTEM = 0xE000E000  # SysTick and the system control block of Cortex-M
YIELD = b"\x10\xbf"  # an instruction of Cortex-M
# of the program: the call of a core that waits, and where a second core begins
_LOOKS, _VECTORS = "board_second_look", "board_second_vectors"
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
        if firmware.is_device:
            what = f"has one core, this program of {firmware.board.name} uses two"
            raise BuildError("Unicorn", what, "QEMU has both")
        machine = Machine(firmware, files)
        cores = [machine]
        if firmware.equal:
            cores.append(Machine(firmware, {}, machine.memory))
        engines = [core.uc for core in cores]
        counter = Counter(engines, firmware, plan) if plan is not None else None
        code, said = run_all(cores)
        counts = counter.counts() if counter is not None else None
        made = {name: bytes(data) for name, data in machine.host.files.items()}
        said_here = machine.console + machine.host.said
        console = said_here.decode(errors="replace")
        return Outcome(code, console, made, counts, said)


class Machine:
    """One simulated processor with the board's memories.

    shared  memories by origin, of another processor of the board
    """

    def __init__(
        self,
        firmware: Firmware,
        files: Files,
        shared: Mapping[int, Any] | None = None,
    ) -> None:
        import unicorn

        self.unicorn: Any = unicorn
        self.firmware = firmware
        self.board = firmware.board
        self.is_arm = firmware.core.arch == "arm"
        self.console = bytearray()
        self.memory: Mapping[int, Any] = shared or {
            one.origin: (ctypes.c_uint8 * (-(-one.size // PAGE) * PAGE))()
            for one in self._rams()
        }
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
                self.outside = f"access of 0x{max(at, end):08X} at {self.place()}"
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
        self.outside = self.outside or f"access of 0x{at:08X} at {self.place()}"
        return False

    def _map_memories(self) -> None:
        board, uc = self.board, self.uc
        uc.mem_map(board.flash.origin, -(-board.flash.size // PAGE) * PAGE)
        every = self.unicorn.UC_PROT_ALL
        for at, held in self.memory.items():
            uc.mem_map_ptr(at, len(held), every, ctypes.addressof(held))
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

    def word(self, at: int) -> int:
        return int.from_bytes(self._read(at, 4), "little")

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

    def begin(self) -> None:
        """Puts the first core before its first instruction."""
        self._jump(self._start())

    def begin_second(self, vectors: int) -> None:
        """Puts a second core before its first instruction: a stack and an address."""
        words = self._read(vectors, 8)
        stack = (
            self.unicorn.arm_const.UC_ARM_REG_SP
            if self.is_arm
            else self.unicorn.riscv_const.UC_RISCV_REG_SP
        )
        self.uc.reg_write(stack, int.from_bytes(words[:4], "little"))
        self._jump(int.from_bytes(words[4:], "little"))

    def _jump(self, address: int) -> None:
        self.uc.reg_write(self._registers()[0], address)

    def wait_at(self, address: int) -> None:
        """Lets go_on() return where the program calls this function."""
        came_back = False

        def here(uc: Any, at: int, size: int, user: object) -> None:
            nonlocal came_back
            came_back = not came_back
            if came_back:
                uc.emu_stop()

        self.uc.hook_add(
            self.unicorn.UC_HOOK_CODE, here, None, address & -2, address & -2
        )

    def go_on(self) -> str:
        """Runs until the program ends, waits for another core, or meets a fault, which
        is what it says; "" otherwise."""
        while self.host.code is None and not self.outside:
            start = self._pc() | (1 if self.is_arm else 0)
            try:
                self.uc.emu_start(start, NOWHERE, timeout=int(TIMEOUT * 1e6))
                break
            except self.unicorn.UcError as error:
                # it knows no ebreak of RISC-V: the call is answered from outside
                if not self._yielded() and (self.is_arm or not self._called(self.uc)):
                    return self.outside or f"{error} at {self.place()}"
        return self.outside

    def _yielded(self) -> bool:
        """True if a core says that it waits, which Unicorn makes an error."""
        before = self._pc() - 2
        is_near = self.is_arm and self._within(before)
        return is_near and self._read(before, 2) == YIELD

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

    def place(self) -> str:
        """The program counter, and the function that it is in."""
        at = self._pc()
        inside = (
            s.name
            for s in self.firmware.elf.symbols
            if s.code and s.address <= at < s.address + s.size
        )
        return f"0x{at:08X}, {next(inside, 'in no function')}"


def run_all(cores: Sequence[Machine]) -> tuple[int, str]:
    """Exit code, and where a fault was. The cores run in turns, each until it waits."""
    first, end = cores[0], time.monotonic() + TIMEOUT
    first.begin()
    symbols, going = first.firmware.elf.by_name, [first]
    if len(cores) > 1:
        for core in cores:
            core.wait_at(symbols[_LOOKS].address)
    while time.monotonic() < end:
        for core in going:
            fault = core.go_on()
            if fault:
                return FAULT, fault
            if core.host.code is not None:
                return core.host.code, ""
        if len(going) < len(cores):
            vectors = first.word(symbols[_VECTORS].address)
            if vectors:
                cores[1].begin_second(vectors)
                going.append(cores[1])
        elif len(cores) == 1:
            break
    what = f"did not end within {TIMEOUT:g} seconds, at {first.place()}"
    raise BuildError(first.board.name, what)


def find_unicorn(board: Board) -> Unicorn | None:
    """Unicorn, if it is here and has this board's core."""
    known = board.core.unicorn and importlib.util.find_spec("unicorn") is not None
    return Unicorn() if known else None
