"""Control flow of Thumb and RV32C machine code: branches, loops, tables, returns.

Knows one instruction at a time, and of IT blocks which instructions are in one.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.boards.firmware.machine_code import flows, length
from pybuild.records import dataclass


@dataclass(frozen=True)
class Step:
    """One instruction: where it stands, and where the next one may be.

    targets  addresses that it may jump to; outside of the function: it leaves
    falls    the next instruction may follow
    calls    of what it calls, 0 where a register says; None: it calls nothing
    table    entries of so many bytes behind it say where it goes; 0: none do
    unknown  it goes where nothing says
    """

    at: int
    size: int
    targets: tuple[int, ...] = ()
    falls: bool = True
    calls: int | None = None
    table: int = 0
    unknown: bool = False

    @property
    def is_branch(self) -> bool:
        """True if it goes one of two ways."""
        return self.falls and bool(self.targets)


def steps(arch: str, data: bytes, address: int) -> Iterator[Step]:
    """All instructions of a piece of code without data in it."""
    decode = _thumb if arch == "arm" else _riscv
    at, conditional, high = 0, 0, 0
    while at + 2 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        size = length(arch, word)
        step = decode(word, size, address + at, high)
        # what an RV32 instruction puts into a register's high bits, for the next one
        high = 0
        if arch == "riscv" and word & 0x7F == 0x17:
            high = address + at + _signed(word & 0xFFFFF000, 32)
        if conditional:  # within IT: it may do nothing
            falls = True
            step = Step(
                step.at, size, step.targets, falls, step.calls, step.table, step.unknown
            )
            conditional -= 1
        first = word & 0xFFFF
        if arch == "arm" and first & 0xFF00 == 0xBF00 and first & 0xF:
            conditional = 4 - ((first & -first) & 0xF).bit_length() + 1
        yield step
        at += size


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _thumb(word: int, size: int, at: int, _: int) -> Step:
    first, second = word & 0xFFFF, word >> 16
    if size == 2:
        return _thumb_16(first, at)
    if first & 0xF800 == 0xF000 and second & 0x8000:
        return _thumb_branch(word, at)
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:  # tbb, tbh
        return Step(at, 4, falls=False, table=2 if second & 0x10 else 1)
    pops = first & 0xFFD0 == 0xE890 and second & 0x8000  # ldm, pop.w
    loads = first & 0xFF70 == 0xF850 and second >> 12 == 15  # ldr pc
    if loads and first & 0xF != 13:
        return Step(at, 4, falls=False, unknown=True)
    return Step(at, 4, falls=not (pops or loads))


def _thumb_16(word: int, at: int) -> Step:
    if word & 0xF000 == 0xD000 and word >> 8 & 15 < 14:  # b<c>
        return Step(at, 2, (at + 4 + _signed((word & 0xFF) << 1, 9),))
    if word & 0xF800 == 0xE000:
        return Step(at, 2, (at + 4 + _signed((word & 0x7FF) << 1, 12),), falls=False)
    if word & 0xF500 == 0xB100:  # cbz, cbnz
        return Step(at, 2, (at + 4 + (word >> 9 & 1) * 64 + (word >> 3 & 31) * 2,))
    if word & 0xFF80 == 0x4780:  # blx
        return Step(at, 2, calls=0)
    if word & 0xFF80 == 0x4700:  # bx: a return, or a call that does not return here
        return Step(at, 2, falls=False, calls=None if word == 0x4770 else 0)
    if word & 0xFF87 == 0x4687:  # mov pc
        return Step(at, 2, falls=False, unknown=True)
    return Step(at, 2, falls=word & 0xFF00 != 0xBD00)  # pop {pc}


def _thumb_branch(word: int, at: int) -> Step:
    first, second = word & 0xFFFF, word >> 16
    if second & 0xF001 == 0xC001:  # le, letp back; wls, wlstp ahead
        far = (second >> 1 & 0x3FF) << 2 | (second >> 11 & 1) << 1
        return Step(at, 4, (at + 4 + (-far if first & 15 == 15 else far),))
    found = next(iter(flows("arm", word.to_bytes(4, "little"), at)), None)
    if found is None or found.kind != "call":
        return Step(at, 4)
    if second & 0xD000 == 0xD000:
        return Step(at, 4, calls=found.value)
    return Step(at, 4, (found.value,), falls=second & 0x1000 == 0)


def _riscv(word: int, size: int, at: int, high: int) -> Step:
    code = word.to_bytes(4, "little")[:size]
    found = next(iter(flows("riscv", code, at)), None)
    if size == 2:
        half = word & 0xFFFF
        kind = half & 0xE003
        if kind in (0xC001, 0xE001):  # c.beqz, c.bnez
            far = 0
            for source, place in (
                (12, 8), (11, 4), (10, 3), (6, 7), (5, 6), (4, 2), (3, 1), (2, 5),
            ):  # fmt: skip
                far |= (half >> source & 1) << place
            return Step(at, 2, (at + _signed(far, 9),))
        if kind == 0xA001 and found is not None:
            return Step(at, 2, (found.value,), falls=False)
        if kind == 0x2001 and found is not None:
            return Step(at, 2, calls=found.value)
        if kind == 0x8002 and half & 0x7C == 0 and half >> 7 & 31:
            register, links = half >> 7 & 31, bool(half & 0x1000)
            back = register in (1, 5) and not links
            return Step(at, 2, falls=links, calls=0 if links else None,
                        unknown=not links and not back)  # fmt: skip
        return Step(at, 2)
    if word & 0x7F == 0x63:
        far = (word >> 31) << 12 | (word >> 7 & 1) << 11
        far |= (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1
        return Step(at, 4, (at + _signed(far, 13),))
    target, source = word >> 7 & 31, word >> 15 & 31
    if word & 0x7F == 0x6F and found is not None:
        if target:
            return Step(at, 4, calls=found.value)
        return Step(at, 4, (found.value,), falls=False)
    if word & 0x7F == 0x67 and high:
        to = (high + _signed(word >> 20, 12)) & 0xFFFFFFFF
        if target:
            return Step(at, 4, calls=to)
        return Step(at, 4, (to,), falls=False)
    if word & 0x7F == 0x67:
        back = not target and source in (1, 5)
        return Step(at, 4, falls=bool(target), calls=0 if target else None,
                    unknown=not target and not back)  # fmt: skip
    return Step(at, 4)
