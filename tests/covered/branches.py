"""Branches of crt's object code, gcc's at -Os, on an emulated Cortex-M4: which ways
each went in crt's C tests. A site is an instruction that decides: a conditional branch,
CBZ, CBNZ, or IT, whose instructions then do something or nothing. Tables of jumps (TBB)
are none: the lines that they lead to are known to run (tests/crt/test_crt.py)."""

from __future__ import annotations

import bisect
import concurrent.futures
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybuild.boards.firmware.elf import Elf, Symbol, read_elf
from pybuild.boards.firmware.machine_code import length
from pybuild.boards.firmware.stack import code_pieces, data_marks
from tests.objects.images import HERE as LINKED
from tests.toolchains import INCLUDE, ROOT, SOURCES, require, run

TESTS = ROOT / "tests" / "crt"
CORE = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
FLAGS = (
    *CORE, "-std=c99", "-Os", "-ffunction-sections", "-fdata-sections", "-g",
    "-DCRT_PAUSE()=((void)0)",  # Unicorn ends at a YIELD
)  # fmt: skip
COMPILER = "12.2"  # whose code the page counts: another's has other branches
_SECONDS = 60
# nothing is printed there: what a test has found is what it returns
_QUIET = """#include <stddef.h>
int printf(const char *format, ...);
int printf(const char *format, ...) { (void)format; return 0; }
void *_sbrk(ptrdiff_t bytes);
void *_sbrk(ptrdiff_t bytes) /* for malloc: 4 KB in all */
{
    static char heap[4096] __attribute__((aligned(8)));
    static ptrdiff_t used;
    if (bytes > (ptrdiff_t)sizeof heap - used) { return (void *)-1; }
    used += bytes;
    return heap + used - bytes;
}
"""

# a way that no input leads to: function, words of its line in the source, why
NEVER = (
    (
        "crt_check_place", "data == crt_home(g, tensor)",
        "no place that is checked is at address 0, which a lazy tensor has for its own",
    ),
    (
        "crt_turn_begin", "__atomic_exchange_n",
        "a store that is exclusive fails only where another core or an interrupt "
        "has written in between; the loop then tries again",
    ),
    (
        "crt_graph_push_rows", "if (error != CRT_OK) {",
        "crt_end has given back the error that it was given, which was one",
    ),
    (
        "wait_for", "cores->wait != NULL",
        "a core that spins without a hook goes on only when another one has written: "
        "the simulator has one (on a PC it comes by a signal)",
    ),
    (
        "attach", "home != NULL",
        "memory of a region is never at address 0 for the CPU; lazy tensors, which "
        "have none, have gone another way in this code",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """An instruction of crt that decides.

    function, at  of which, and bytes from its begin
    file, line    of the source that it was made of
    text          that line
    went          the ways that it went
    """

    function: str
    at: int
    file: str
    line: int
    text: str
    went: frozenset[bool]

    @property
    def never(self) -> str:
        """Why it goes one way only; "": it is not known."""
        for function, words, why in NEVER:
            if self.function == function and words in self.text:
                return why
        return ""


def measured(programs: Sequence[str], folder: Path) -> tuple[Site, ...]:
    """programs  of tests/crt

    Errors  AssertionError where one of them finds something wrong
    """
    objects = _compiled(folder)
    images = [_linked(name, objects, folder) for name in programs]
    elfs = [read_elf(image) for image in images]
    own = [s.name for file in objects for s in read_elf(file).symbols if s.code]
    inside = _addresses(elfs[0], len(own))
    assert sorted(name for name, _ in inside.values()) == sorted(own)
    for elf in elfs[1:]:  # crt lies where it lies in the first one
        assert _addresses(elf, len(own)) == inside
    kinds = {
        at: kind
        for begin, (name, size) in inside.items()
        for at, kind in _sites(elfs[0], Symbol(name, begin, size, True))
    }
    went: dict[int, set[bool]] = {at: set() for at in kinds}
    for image in images:
        _watch(image, kinds, went)
    return tuple(_told(images[0], inside, went))


def _compiled(folder: Path) -> list[Path]:
    command = [require("arm-none-eabi-gcc"), *FLAGS, f"-I{INCLUDE}", "-c"]
    made = [folder / f"{source.stem}.o" for source in SOURCES]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = zip(SOURCES, made, strict=True)
        list(pool.map(lambda job: run([*command, job[0], "-o", job[1]]), jobs))
    return made


def _linked(program: str, objects: Sequence[Path], folder: Path) -> Path:
    """crt first: it lies at the same addresses in each image."""
    image, quiet = folder / f"{Path(program).stem}.elf", folder / "quiet.c"
    quiet.write_text(_QUIET)
    run([require("arm-none-eabi-gcc"), *FLAGS, "-fno-builtin-printf",
         f"-I{INCLUDE}", f"-I{TESTS}", *objects, TESTS / program, quiet,
         "-nostartfiles", "-specs=nano.specs", "-T", LINKED / "image.ld",
         "-Wl,--no-warn-rwx-segments", "-o", image])  # fmt: skip
    return image


def _addresses(elf: Elf, count: int) -> dict[int, tuple[str, int]]:
    """Name and bytes of each function of crt, by its address: the first of an image."""
    found = {s.address: (s.name, s.size) for s in elf.symbols if s.code}
    return {at: found[at] for at in sorted(found)[:count]}


def _sites(elf: Elf, function: Symbol) -> Iterator[tuple[int, tuple[str, int, int]]]:
    """Where it decides, and of what: ("flags", condition, 0), or ("zero", register,
    whether it goes where the register is 0)."""
    for begin, code in code_pieces(elf, function, data_marks(elf)):
        at = 0
        while at + 2 <= len(code):
            word = int.from_bytes(code[at : at + 4], "little")
            size, first, second = length("arm", word), word & 0xFFFF, word >> 16
            if size == 2 and first & 0xF000 == 0xD000 and first >> 8 & 15 < 14:
                yield begin + at, ("flags", first >> 8 & 15, 0)
            elif size == 2 and first & 0xF500 == 0xB100:
                yield begin + at, ("zero", first & 7, int(not first & 0x800))
            elif size == 2 and first & 0xFF00 == 0xBF00 and first & 15:
                yield begin + at, ("flags", first >> 4 & 15, 0)
            elif (
                size == 4
                and first & 0xF800 == 0xF000
                and second & 0xD000 == 0x8000
                and first >> 7 & 7 != 7
            ):
                yield begin + at, ("flags", first >> 6 & 15, 0)
            at += size


def _holds(condition: int, flags: int) -> bool:
    """flags: of xPSR"""
    n, z, c, v = (bool(flags >> bit & 1) for bit in (31, 30, 29, 28))
    least = (z, c, n, v, c and not z, n == v, n == v and not z, True)[condition >> 1]
    return least != bool(condition & 1)


def _watch(
    image: Path, kinds: Mapping[int, tuple[str, int, int]], went: dict[int, set[bool]]
) -> None:
    """Runs it, with a hook at each site that has a way left to go."""
    from unicorn import UC_HOOK_CODE, arm_const

    from tests.objects.simulated import Machine

    machine = Machine("cortex-m4", image)
    machine.limit = _SECONDS

    def decides(uc: Any, address: int, size: int, data: Any) -> None:
        if len(went[address]) == 2:
            return
        kind, which, wanted = kinds[address]
        if kind == "flags":
            way = _holds(which, uc.reg_read(arm_const.UC_ARM_REG_XPSR))
        else:
            zero = uc.reg_read(arm_const.UC_ARM_REG_R0 + which) == 0
            way = zero == bool(wanted)
        went[address].add(way)

    for at in kinds:
        if len(went[at]) < 2:
            machine.uc.hook_add(UC_HOOK_CODE, decides, begin=at, end=at)
    assert machine.call("main") == 0, f"{image.stem}: a test of tests/crt fails"


def _told(
    image: Path, inside: Mapping[int, tuple[str, int]], went: Mapping[int, set[bool]]
) -> Iterator[Site]:
    """With the lines of the source, by addr2line."""
    tool = require("arm-none-eabi-addr2line")
    lines = run([tool, "-e", image, *map(hex, went)]).splitlines()
    begins = list(inside)
    for (at, ways), line in zip(went.items(), lines, strict=True):
        begin = begins[bisect.bisect_right(begins, at) - 1]
        file, _, number = line.split(" ")[0].rpartition(":")
        name, _ = inside[begin]
        text = _lines(Path(file))[int(number) - 1].strip()
        short = Path(file).name
        yield Site(name, at - begin, short, int(number), text, frozenset(ways))


@functools.cache
def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def is_counted_here() -> bool:
    """Whether this machine's compiler is the page's."""
    version = run([require("arm-none-eabi-gcc"), "-dumpversion"])
    return version.startswith(COMPILER)


def table(sites: Sequence[Site]) -> list[str]:
    """Of the page: a line for each file, then what goes one way only."""
    lines = ["| branches of the object code of | all | both ways | one way, below |"]
    lines += ["|---|---:|---:|---:|"]
    for file in sorted({site.file for site in sites}):
        mine = [len(site.went) for site in sites if site.file == file]
        cells = len(mine), mine.count(2), mine.count(1) or ""
        lines.append(f"| `{file}` | {' | '.join(map(str, cells))} |")
    ways = [len(site.went) for site in sites]
    cells = len(ways), ways.count(2), ways.count(1)
    lines += [f"| all | {' | '.join(map(str, cells))} |", ""]
    lines += ["| one way only, in | at | why |", "|---|---|---|"]
    for site in sites:
        if len(site.went) < 2:
            text = site.text.replace("|", "\\|")
            lines.append(f"| {site.function} | `{text}` | {site.never or '-'} |")
    return lines
