"""Several cores of Unicorn on one memory: firmware that runs a model on all of them, in
slices of time that a seed draws, with a check of every byte of the arena.

What a core writes between two meetings no other core may read or write before the
next: the check fails for that, even if all bits are right.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import unicorn

from pybuild.boards.firmware.elf import Elf, read_elf
from pybuild.dtype import Array
from pybuild.emit.content import pieces
from pybuild.library import Library
from tests.toolchains import require, run

FLASH, RAM, SIZE = 0x10000000, 0x20000000, 1 << 20
STACK, DONE = 0x8000, 0x2FFFFFF0
_FLAGS = ("-Os", "-std=c99", "-ffreestanding", "-ffunction-sections", "-nostdlib")
_CALL, _READY, _THERE = 8, 32, 0x80000000  # of struct crt_cores
_YIELD = b"\x10\xbf"
_LINK = f"""\
SECTIONS {{
    . = {FLASH};
    .text : {{ *(.text* .rodata*) }}
    . = {RAM};
    .bss : {{ *(.data* .bss* COMMON) }}
}}
"""
_MAIN = """\
#include "{name}.h"
static uint8_t arena[{upper}_ARENA_BYTES] __attribute__((aligned(16)));
static struct {name} m;
uint8_t input[{inputs}], output[{outputs}], arena_end[1];
int result = 1;
const uint32_t arena_bytes = {upper}_ARENA_BYTES;
uint8_t *arena_at = arena;
static void begin(void)
{{
    const struct {name}_memory memory = {upper}_MEMORY(arena);
    (void){name}_init(&m, &memory);
    (void)crt_graph_set_input(&m.graph, 0, input, sizeof input);
}}
static void end(void)
{{
    if (result == 0)
        result = crt_graph_get_output(&m.graph, 0, output, sizeof output);
}}
void *memcpy(void *to, const void *from, size_t bytes)
{{
    uint8_t *out = to;
    const uint8_t *in = from;
    while (bytes-- > 0)
        *out++ = *in++;
    return to;
}}
void prepare(void) {{ begin(); }}
void finish(void) {{ end(); }}
void alone(void) {{ result = {name}_run(&m); }}
"""
_CORES = """\
struct crt_cores cores;
void first(void) {{ result = {name}_run_cores(&m, &cores); }}
void other(uint32_t core) {{ (void){name}_work(&m, &cores, core); }}
"""


@dataclass(frozen=True)
class Core:
    """A processor as Unicorn and gcc have it."""

    target: str
    model: str
    gcc: tuple[str, ...]
    riscv: bool = False


M0 = Core("cortex-m0", "UC_CPU_ARM_CORTEX_M0", ("-mcpu=cortex-m0plus", "-mthumb"))
M33 = Core("cortex-m33", "UC_CPU_ARM_CORTEX_M33", ("-mcpu=cortex-m33", "-mthumb"))
RV32 = Core(
    "rv32imc", "UC_CPU_RISCV32_BASE32", ("-march=rv32imc", "-mabi=ilp32"), riscv=True
)


def firmware(library: Library, core: Core, folder: Path, write: bool = True) -> Elf:
    """A program with the functions of _MAIN, which are called from outside.

    write  False: the folder has the model already, changed by a test
    """
    name, tables = library.name, library.tables
    for file, content in library.files().items() if write else ():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(pieces(content)))
    sizes = {
        "inputs": tables.inputs[0].tensor.bytes,
        "outputs": tables.outputs[0].tensor.bytes,
    }
    main = _MAIN + (_CORES if tables.cores > 1 else "")
    main = main.format(name=name, upper=name.upper(), **sizes)
    (folder / "main.c").write_text(main)
    (folder / "link.ld").write_text(_LINK)
    gcc = "riscv64-unknown-elf-gcc" if core.riscv else "arm-none-eabi-gcc"
    sources = [*folder.glob("*.c"), *(folder / "crt/src").glob("*.c")]
    sources = [s for s in sources if "selftest" not in s.name]
    out = folder / "pair.elf"
    switches = ["-DCRT_NO_STRING_H", "-fno-tree-loop-distribute-patterns"]
    run([require(gcc), *core.gcc, *_FLAGS, *switches, f"-I{folder}",
         f"-I{folder / 'crt/include'}", *sources, "-T", folder / "link.ld",
         "-Wl,-e,alone,--no-warn-rwx-segments", "-lgcc", "-o", out])  # fmt: skip
    return read_elf(out)


@dataclass
class Pair:
    """All cores, each at rest until it is told what to run.

    races  what went wrong, in words
    """

    elf: Elf
    core: Core
    count: int = 2
    checked: bool = False
    races: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.memory = (ctypes.c_uint8 * SIZE)()
        self.symbols = {s.name: s.address for s in self.elf.symbols}
        self.uc = [self._core(number) for number in range(self.count)]
        for segment in self.elf.segments:
            if segment.address >= RAM:
                at = segment.address - RAM
                self.memory[at : at + len(segment.data)] = list(segment.data)
        self.wrote: dict[int, tuple[int, int]] = {}
        self.read: dict[int, dict[int, int]] = {}

    def _core(self, number: int) -> Any:
        if self.core.riscv:
            uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
            uc.ctl_set_cpu_model(getattr(unicorn.riscv_const, self.core.model))
        else:
            mode = unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS
            uc = unicorn.Uc(unicorn.UC_ARCH_ARM, mode)
            uc.ctl_set_cpu_model(getattr(unicorn.arm_const, self.core.model))
        uc.mem_map(FLASH, SIZE)
        uc.mem_map_ptr(RAM, SIZE, unicorn.UC_PROT_ALL, ctypes.addressof(self.memory))
        uc.mem_map(DONE & -0x1000, 0x1000)
        for segment in self.elf.segments:
            if segment.address < RAM:
                uc.mem_write(segment.address, segment.data)
        return uc

    def check(self) -> None:
        """From here on every access to the arena is looked at."""
        begin = self.word("arena_at")
        end = begin + self.flash_word("arena_bytes") - 1
        kinds = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
        for number, uc in enumerate(self.uc):
            uc.hook_add(kinds, self._looks(number), None, begin, end)
        ready = self.symbols["cores"] + _READY
        self.uc[0].hook_add(unicorn.UC_HOOK_MEM_READ, self._meets, None, ready,
                            ready + 4 * self.count - 5)  # fmt: skip
        self.met: dict[int, int] = {}

    def _meets(
        self, uc: Any, kind: int, at: int, size: int, value: int, user: object
    ) -> None:
        """The first core sees that another is done with a call."""
        ready = int.from_bytes(bytes(self.memory[at - RAM : at - RAM + 4]), "little")
        self.met[at] = (ready ^ _THERE) - 1

    def _epoch(self, core: int) -> int:
        """Two for each call: the first core goes on alone when it has met all."""
        at = self.symbols["cores"] + _CALL - RAM
        now = int.from_bytes(bytes(self.memory[at : at + 4]), "little")
        met = list(self.met.values()).count(now) == self.count - 1
        return 2 * now + (core == 0 and met)

    def _looks(self, core: int) -> Callable[..., None]:
        def look(
            uc: Any, kind: int, at: int, size: int, value: int, user: object
        ) -> None:
            now = self._epoch(core)
            stores = kind == unicorn.UC_MEM_WRITE
            for byte in range(at, at + size):
                epoch, who = self.wrote.get(byte, (-1, core))
                if epoch == now and who != core:
                    verb = "writes" if stores else "reads"
                    self.races.append(
                        f"epoch {now}: core {core} {verb} what {who} wrote"
                    )
                if stores:
                    self.wrote[byte] = now, core
                    for other, last in self.read.get(byte, {}).items():
                        if last == now and other != core:
                            text = f"epoch {now}: core {core} writes what {other} reads"
                            self.races.append(text)
                else:
                    self.read.setdefault(byte, {})[core] = now

        return look

    def word(self, name: str) -> int:
        at = self.symbols[name] - RAM
        return int.from_bytes(bytes(self.memory[at : at + 4]), "little")

    def flash_word(self, name: str) -> int:
        data = bytes(self.uc[0].mem_read(self.symbols[name], 4))
        return int.from_bytes(data, "little")

    def put(self, name: str, data: bytes) -> None:
        at = self.symbols[name] - RAM
        self.memory[at : at + len(data)] = list(data)

    def begin(self, number: int, name: str, argument: int = 0) -> None:
        """Puts a core before a function."""
        uc, thumb = self.uc[number], 0 if self.core.riscv else 1
        stack = RAM + SIZE - number * STACK - 64
        back = DONE & -0x1000
        if self.core.riscv:
            regs = unicorn.riscv_const
            pairs = ((regs.UC_RISCV_REG_SP, stack), (regs.UC_RISCV_REG_RA, back),
                     (regs.UC_RISCV_REG_A0, argument))  # fmt: skip
            self.pc = regs.UC_RISCV_REG_PC
        else:
            regs = unicorn.arm_const
            pairs = ((regs.UC_ARM_REG_SP, stack), (regs.UC_ARM_REG_LR, back | 1),
                     (regs.UC_ARM_REG_R0, argument))  # fmt: skip
            self.pc = regs.UC_ARM_REG_PC
        for register, value in pairs:
            uc.reg_write(register, value)
        uc.reg_write(self.pc, self.symbols[name] & -2 | thumb)

    def go(self, number: int, steps: int) -> bool:
        """Runs so many instructions; True if the function has returned."""
        uc = self.uc[number]
        thumb = 0 if self.core.riscv else 1
        try:
            uc.emu_start(uc.reg_read(self.pc) | thumb, DONE & -0x1000, count=steps)
        except unicorn.UcError:
            last = uc.reg_read(self.pc) - 2
            if self.core.riscv or bytes(uc.mem_read(last, 2)) != _YIELD:
                raise  # else it waits, and leaves the rest of its slice
        return bool(uc.reg_read(self.pc) & -2 == DONE & -0x1000)

    def call(self, name: str) -> int:
        """Instructions of a function on the first core, to some tens."""
        self.begin(0, name)
        taken = 0
        while not self.go(0, 50):
            taken += 50
        return taken

    def together(self, slices: Iterator[tuple[int, ...]]) -> int:
        """A run on all cores: each in turn as many instructions as the next slice says.
        The instructions of the first core, waits included."""
        self.begin(0, "first")
        for number in range(1, self.count):
            self.begin(number, "other", number)
        left, taken = set(range(self.count)), 0
        for lengths in slices:
            for number in [n for n in range(self.count) if n in left]:
                if number == 0:
                    taken += lengths[0]
                if self.go(number, lengths[number]):
                    left.discard(number)
            if not left:
                break
        return taken

    def outputs(self) -> bytes:
        self.call("finish")
        assert self.word("result") == 0
        at = self.symbols["output"] - RAM
        size = next(s.size for s in self.elf.symbols if s.name == "output")
        return bytes(self.memory[at : at + size])

    def given(self, data: Array) -> None:
        self.put("input", data.tobytes())
        self.call("prepare")


def drawn(seed: int, count: int, most: int = 600) -> Iterator[tuple[int, ...]]:
    """Slices of time for each core, of any length."""
    random_ = random.Random(seed)
    while True:
        yield tuple(random_.randint(1, most) for _ in range(count))


def even(count: int, length: int = 50) -> Iterator[tuple[int, ...]]:
    """Slices of time that are alike: both cores at the same pace."""
    while True:
        yield (length,) * count


def samples(library: Library, seed: int) -> Array:
    tensor = library.tables.inputs[0].tensor
    random_ = np.random.default_rng(seed)
    if tensor.dtype.is_float:
        return random_.standard_normal(tensor.shape).astype(tensor.dtype.numpy)
    return random_.integers(-128, 128, tensor.shape).astype(tensor.dtype.numpy)
