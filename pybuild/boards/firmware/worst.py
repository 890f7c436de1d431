"""The worst-case instructions of a program's kernels, from their machine code and one
counted run.

How often a loop turns and a kernel is called is as counted; what a test of data decides
between is taken for the longer way. Knows no loop IR: who asks must know that no loop
of it depends on data (pybuild/bounds/timing.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pybuild.boards.firmware.branches import Step, steps
from pybuild.boards.firmware.elf import Elf, Symbol
from pybuild.boards.firmware.longest import Code, at_most
from pybuild.boards.firmware.stack import code_pieces, data_marks
from pybuild.records import dataclass

# take as long for any data; the compiler calls them for loops
_EVEN = re.compile(r"(__aeabi_)?mem(cpy|set|move|clr)[48]?")

# instructions of Thumb and RV32C that do nothing
_FILLING = (
    *(b"\x00\xbf", b"\xaf\xf3\x00\x80", b"\xc0\x46"),
    *(b"\x01\x00", b"\x13\x00\x00\x00"),
)


@dataclass(frozen=True)
class Trace:
    """A recorded run: how often each halfword of code was executed, by its number.

    at    address of the first
    left  how often the code did not go on at a halfword that it came to
    """

    at: int
    ran: Sequence[int]
    left: Sequence[int]

    def runs(self, address: int) -> int:
        return self.ran[(address - self.at) // 2]


@dataclass(frozen=True)
class KernelBound:
    """Instructions of all calls of one function of the model in an inference.

    counted  in the run; most: at most
    open     what of it has no bound here, in words; "": all has
    """

    name: str
    counted: int
    most: int
    open: str = ""


def kernel_bounds(elf: Elf, arch: str, trace: Trace) -> tuple[KernelBound, ...]:
    """The bound of each function in the section of kernels that was run."""
    inside, runtime = (_section(elf, name) for name in (".kernels", ".runtime"))
    names = {s.address: s.name for s in reversed(elf.symbols) if s.code}
    found = []
    for symbol in _functions(elf, inside):
        body = _steps(elf, symbol, arch)
        counted = sum(trace.runs(step.at) for step in body)
        if not counted:
            continue
        why = _open(body, (inside, runtime), names)
        most = counted
        if not why:
            code = _code(symbol.address, body, elf)
            most = at_most(code, {at: trace.runs(at) for at in code.sizes})
        found.append(KernelBound(symbol.name, counted, most, why))
    return tuple(found)


def function_counts(
    elf: Elf, arch: str, trace: Trace
) -> dict[str, list[tuple[int, bool]]]:
    """How often each instruction of each function in the section of kernels was run,
    by address, and whether it only fills up to an address."""
    inside = _section(elf, ".kernels")
    return {
        symbol.name: [
            (trace.runs(step.at), elf.image(step.at)[: step.size] in _FILLING)
            for step in _steps(elf, symbol, arch)
        ]
        for symbol in elf.symbols
        if symbol.code and symbol.size and symbol.address in inside
    }


def _section(elf: Elf, name: str) -> range:
    begin, size = elf.sections.get(name, (0, 0))
    return range(begin, begin + size)


def _functions(elf: Elf, inside: range) -> list[Symbol]:
    """The functions in a range of addresses; if several names share one, the first."""
    kept: dict[int, Symbol] = {}
    for symbol in elf.symbols:
        if symbol.code and symbol.size and symbol.address in inside:
            kept.setdefault(symbol.address, symbol)
    return [kept[at] for at in sorted(kept)]


def _steps(elf: Elf, symbol: Symbol, arch: str) -> list[Step]:
    marks = data_marks(elf)
    pieces = code_pieces(elf, symbol, marks)
    return [step for at, piece in pieces for step in steps(arch, piece, at)]


def _open(
    body: Sequence[Step], known: Sequence[range], names: Mapping[int, str]
) -> str:
    """Calls of functions whose time is their own, and jumps to where nothing says."""
    if any(step.unknown for step in body):
        return "a jump through a register"
    for step in body:
        ends = () if step.calls is None else (step.calls,)
        for at in (*ends, *step.targets):
            name = names.get(at, "")
            if not any(at in one for one in known) and not _EVEN.fullmatch(name):
                return f"calls {name or 'through a register'}"
    return ""


def _code(start: int, body: Sequence[Step], elf: Elf) -> Code:
    """Its pieces: each begins where something jumps to."""
    by_address = {step.at: step for step in body}
    jumps = {
        step.at: (*step.targets, *_entries(step, body, elf) * bool(step.table))
        for step in body
    }
    leaders = {start} | {to for ends in jumps.values() for to in ends}
    leaders |= {s.at + s.size for s in body if s.targets or not s.falls}
    leaders &= set(by_address)
    sizes: dict[int, int] = {}
    after: dict[int, tuple[int, ...]] = {}
    for leader in sorted(leaders):
        at, count = leader, 0
        while True:
            step = by_address[at]
            count += 1
            at += step.size
            if step.targets or not step.falls or at in leaders or at not in by_address:
                break
        ends = [*jumps[step.at], *([at] if step.falls else [])]
        sizes[leader] = count
        after[leader] = tuple(sorted({one for one in ends if one in leaders}))
    return Code(start, sizes, after)


def _entries(step: Step, body: Sequence[Step], elf: Elf) -> tuple[int, ...]:
    """The targets in the table behind a jump; the table ends where code begins
    again."""
    if not step.table:
        return ()
    begin = step.at + step.size
    ends = [other.at for other in body if other.at >= begin]
    end = min(ends, default=begin)
    data = elf.image(begin)[: end - begin]
    width = step.table
    offsets = [
        int.from_bytes(data[at : at + width], "little")
        for at in range(0, len(data) - width + 1, width)
    ]
    return tuple(sorted({begin + 2 * one for one in offsets}))
