"""A Cortex-M4 whose power fails: its writes are recorded, and any number of them from
the first on is what memory holds when it starts again. Knows no model."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile
from unicorn import (
    UC_ERR_WRITE_PROT,
    UC_ERR_WRITE_UNMAPPED,
    UC_HOOK_MEM_WRITE,
    UC_PROT_EXEC,
    UC_PROT_READ,
    UC_PROT_WRITE,
    UcError,
)

from tests.boards.programs import chain, compiler
from tests.objects.images import CORES
from tests.objects.images import HERE as OBJECTS
from tests.objects.simulated import Machine
from tests.toolchains import STRICT, run

HERE = Path(__file__).parent
GIVEN = 0x60000000  # what the world gives a device, which it can only read
_KEPT = 0x40000000
_ROOM = 0x8000  # of what is given
_PAGE = 4096
_STACK = 0x4000
_SECONDS = 20  # a call takes milliseconds, or it hangs
_WRITES = (UC_ERR_WRITE_PROT, UC_ERR_WRITE_UNMAPPED)


def linked(tree: Path, program: Path, *flags: str) -> Path:
    """An image of a tree of C and a program of this folder, or made of one."""
    core, image = CORES["cortex-m4"], tree / f"{program.stem}.elf"
    tools = chain(core, "gcc")
    sources = [
        *(path for path in sorted(tree.glob("*.c")) if path != program),
        *sorted((tree / "crt/src").glob("*.c")), OBJECTS / "runner.c", program,
    ]  # fmt: skip
    run([*compiler(core), *STRICT, "-Os", "-DCRT_NO_STRING_H", "-fdata-sections",
         "-ffunction-sections", "-Wl,--gc-sections", *flags, f"-I{tree}",
         f"-I{tree / 'crt/include'}", *sources,
         *tools.link_flags(core, str(HERE / "device.ld")), *tools.libraries(core),
         "-o", image])  # fmt: skip
    return image


class Hung(Exception):
    """A call did not come back."""


class Outside(Exception):
    """More was written than RAM, what outlives resets, and the stack."""


class Memory(NamedTuple):
    """What RAM holds, and what outlives resets."""

    ram: bytes
    kept: bytes


@dataclass
class Life:
    """Memory at first, and each write from there on: (address, bytes)."""

    before: Memory
    writes: list[tuple[int, bytes]] = field(default_factory=list)


class Device(Machine):
    """ram, kept  (address, bytes) of what the program has there"""

    def __init__(self, image: Path) -> None:
        super().__init__("cortex-m4", image)
        with image.open("rb") as file:
            elf = ELFFile(file)
            bss, kept = (elf.get_section_by_name(name) for name in (".bss", ".kept"))
            self.ram = bss["sh_addr"], bss["sh_size"]
            self.kept = (kept["sh_addr"], kept["sh_size"]) if kept else (_KEPT, 0)
        readable = UC_PROT_READ | UC_PROT_EXEC
        for start, stop, _ in list(self.uc.mem_regions()):
            self.uc.mem_protect(start, stop + 1 - start, readable)
        for start, size in self._places():
            pages = -(-size // _PAGE) * _PAGE
            self.uc.mem_protect(start, pages, UC_PROT_READ | UC_PROT_WRITE)
        self.stack = self.symbols["stack_top"] - _STACK
        self.uc.mem_map(self.stack, _STACK, UC_PROT_READ | UC_PROT_WRITE)
        self.uc.mem_map(GIVEN, _ROOM, UC_PROT_READ)
        self.limit = _SECONDS

    def _places(self) -> list[tuple[int, int]]:
        return [place for place in (self.ram, self.kept) if place[1]]

    def give(self, *pieces: bytes) -> list[int]:
        """Where each lies."""
        at, found = GIVEN, []
        for piece in pieces:
            self.uc.mem_write(at, piece)
            found.append(at)
            at += -(-len(piece) // 16) * 16
        assert at <= GIVEN + _ROOM
        return found

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.uc.mem_read(at, size)) if size else b""

    def memory(self) -> Memory:
        return Memory(self.read(*self.ram), self.read(*self.kept))

    def start(self, memory: Memory, chance: random.Random) -> None:
        """Power is back: registers and stack hold anything."""
        self.uc.mem_write(self.stack, chance.randbytes(_STACK))
        for (start, size), content in zip(self._places(), memory, strict=False):
            self.uc.mem_write(start, content + bytes(-(start + size) % _PAGE))

    def calls(self, function: str, *args: int) -> int:
        """What it returns.

        Errors  Hung, Outside
        """
        try:
            result = self.call(function, *args)
        except UcError as error:
            if error.errno in _WRITES:
                raise Outside(function) from error
            raise
        for start, size in self._places():
            end = start + size
            if any(self.read(end, -end % _PAGE)):
                raise Outside(function)
        return result

    def lived(self, function: str, *args: int) -> Life:
        """All that a call writes, but to the stack; it must be a good one."""
        life = Life(self.memory())

        def write(
            uc: Any, kind: int, address: int, size: int, value: int, data: Any
        ) -> None:
            content = (value % (1 << 8 * size)).to_bytes(size, "little")
            step = 1 if address >= self.kept[0] else size  # a word may be torn there
            for at in range(0, size, step):
                life.writes.append((address + at, content[at : at + step]))

        # what an earlier call has translated has no hook
        self.uc.ctl_flush_tb()
        hooks = [
            self.uc.hook_add(UC_HOOK_MEM_WRITE, write, None, start, start + size - 1)
            for start, size in self._places()
        ]
        assert self.calls(function, *args) == 0
        for hook in hooks:
            self.uc.hook_del(hook)
        self.uc.ctl_flush_tb()
        assert self.after(life, len(life.writes)) == self.memory(), "writes are missing"
        return life

    def after(self, life: Life, count: int) -> Memory:
        """Memory when so many of the writes have been made."""
        return next(self.cut(life, [count]))[1]

    def cut(self, life: Life, counts: list[int]) -> Any:
        """For each of the rising numbers of writes: it, and memory after them."""
        ram, kept = bytearray(life.before.ram), bytearray(life.before.kept)
        done = 0
        for count in counts:
            for address, content in life.writes[done:count]:
                where, at = (ram, address - self.ram[0])
                if address >= self.kept[0]:
                    where, at = kept, address - self.kept[0]
                where[at : at + len(content)] = content
            done = count
            yield count, Memory(bytes(ram), bytes(kept))
