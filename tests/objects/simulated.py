"""A core in Unicorn that calls functions of an image. Knows no toolchain."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from unicorn import (
    UC_ARCH_ARM,
    UC_ARCH_RISCV,
    UC_HOOK_BLOCK,
    UC_HOOK_MEM_READ,
    UC_HOOK_MEM_WRITE,
    UC_MODE_MCLASS,
    UC_MODE_RISCV32,
    UC_MODE_THUMB,
    UC_QUERY_TIMEOUT,
    Uc,
    arm_const,
    riscv_const,
)

_PAGE = 4096
_RETURN = 0x00008000  # where calls return to; nothing is there
CPUS = {
    "cortex-m0": arm_const.UC_CPU_ARM_CORTEX_M0,
    "cortex-m3": arm_const.UC_CPU_ARM_CORTEX_M3,
    "cortex-m4": arm_const.UC_CPU_ARM_CORTEX_M4,
    "cortex-m7": arm_const.UC_CPU_ARM_CORTEX_M7,
    "cortex-m33": arm_const.UC_CPU_ARM_CORTEX_M33,
    "rv32imc": riscv_const.UC_CPU_RISCV32_BASE32,
}


class Machine:
    """One core with an image in its memory.

    watch       not with Thumb-2: hooks of memory make Unicorn lose the flags of IT
    misaligned  addresses of loads and stores that were not multiples of their size
    limit       seconds of a call; 0: none
    """

    def __init__(self, core: str, image: Path, watch: bool = False) -> None:
        self.is_arm = core != "rv32imc"
        if self.is_arm:
            self.uc = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        else:
            self.uc = Uc(UC_ARCH_RISCV, UC_MODE_RISCV32)
        self.uc.ctl_set_cpu_model(CPUS[core])
        self.misaligned: list[int] = []
        self.limit = 0
        self._load(image)
        self.uc.mem_map(_RETURN & -_PAGE, _PAGE)
        if watch:
            self.uc.hook_add(UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, self._access)

    def _load(self, image: Path) -> None:
        with image.open("rb") as file:
            elf = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            self.symbols = {s.name: int(s["st_value"]) for s in table.iter_symbols()}
            for section in elf.iter_sections():
                start, size = section["sh_addr"], section["sh_size"]
                if section["sh_flags"] & 2 and size:
                    self._map(start, start + size + 0x20000)
                    if section["sh_type"] != "SHT_NOBITS":
                        self.uc.mem_write(start, section.data())

    def _map(self, start: int, stop: int) -> None:
        known = {page for a, b, _ in self.uc.mem_regions() for page in
                 range(a, b + 1, _PAGE)}  # fmt: skip
        for page in range(start & -_PAGE, stop, _PAGE):
            if page not in known:
                self.uc.mem_map(page, _PAGE)

    def _access(
        self, uc: Any, kind: int, address: int, size: int, value: int, data: Any
    ) -> None:
        if address % size:
            self.misaligned.append(address)

    def call(self, function: str, *args: int) -> int:
        """What the function returns, as a signed number.

        Errors  TimeoutError after the limit
        """
        if self.is_arm:
            first, back = arm_const.UC_ARM_REG_R0, arm_const.UC_ARM_REG_LR
            stack = arm_const.UC_ARM_REG_SP
        else:
            first, back = riscv_const.UC_RISCV_REG_A0, riscv_const.UC_RISCV_REG_RA
            stack = riscv_const.UC_RISCV_REG_SP
        for index, value in enumerate(args):
            self.uc.reg_write(first + index, value & 0xFFFFFFFF)
        self.uc.reg_write(stack, self.symbols["stack_top"])
        self.uc.reg_write(back, _RETURN | int(self.is_arm))
        begin = self.symbols[function]
        self.uc.emu_start(begin, _RETURN, timeout=self.limit * 1000000)
        if self.limit and self.uc.query(UC_QUERY_TIMEOUT):
            raise TimeoutError(function)
        result = int(self.uc.reg_read(first)) & 0xFFFFFFFF
        return result - (1 << 32) if result >> 31 else result

    def infer(
        self, name: str, inputs: Iterable[bytes], sizes: Iterable[int]
    ) -> list[bytes]:
        """One run of a model of the image: inputs and outputs in its order."""
        assert self.call("runner_init", self.symbols[f"{name}_model"]) == 0
        for index, data in enumerate(inputs):
            self.uc.mem_write(self._pointer("runner_input", index), data)
        assert self.call("runner_run") == 0
        return [
            bytes(self.uc.mem_read(self._pointer("runner_output", index), size))
            for index, size in enumerate(sizes)
        ]

    def _pointer(self, function: str, index: int) -> int:
        return self.call(function, index) & 0xFFFFFFFF

    def counted(self, function: str, *args: int) -> int:
        """Instructions that a call executes."""
        lengths: dict[tuple[int, int], int] = {}
        total = 0

        def block(uc: Any, address: int, size: int, data: Any) -> None:
            nonlocal total
            if (address, size) not in lengths:
                code = bytes(uc.mem_read(address, size))
                lengths[address, size] = self._instructions(code)
            total += lengths[address, size]

        # what an earlier call has translated has no hook
        self.uc.ctl_flush_tb()
        handle = self.uc.hook_add(UC_HOOK_BLOCK, block)
        self.call(function, *args)
        self.uc.hook_del(handle)
        assert total, function
        return total

    def _instructions(self, code: bytes) -> int:
        at = count = 0
        while at < len(code):
            half = int.from_bytes(code[at : at + 2], "little")
            wide = half >> 11 >= 0b11101 if self.is_arm else half & 3 == 3
            at += 4 if wide else 2
            count += 1
        return count
