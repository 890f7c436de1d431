"""Stack for spilled vectors on RISC-V: multiples of a register's bytes, which code
reads from the machine (vlenb). Knows no program.
"""

from __future__ import annotations

from pybuild.boards.firmware.machine_code import length

LONGEST = 64  # bytes of a register that frames are counted for: 512 bits
_VLENB, _SP = 0xC22, 2
# a number that code has in a register: so many times vlenb, and so much more
_Number = tuple[int, int]


def vector_bytes(code: bytes) -> int | None:
    """The stack that a function takes for vectors at most; None: it moves the stack by
    a number that is not known here."""
    known: dict[int, _Number] = {0: (0, 0)}
    total, at = 0, 0
    while at + 2 <= len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        size = length("riscv", word)
        if word & 0xFE0FFFFF == 0x40010133:  # sub sp, sp, register
            found = known.get(word >> 20 & 31)
            if found is None:
                return None
            times, more = found
            total += times * LONGEST + more
        else:
            target, value = _made(word & 0xFFFF if size == 2 else word, size, known)
            if target:
                known.pop(target, None)
                if value is not None:
                    known[target] = value
        at += size
    return total


def _made(
    word: int, size: int, known: dict[int, _Number]
) -> tuple[int, _Number | None]:
    """The register that an instruction changes, 0 for none that matters here, and
    what it holds then, where that is known."""
    if size == 2:
        return _made_16(word, known)
    target, a, b = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    kind, opcode = word >> 12 & 7, word & 0x7F
    if opcode == 0x73 and kind == 2 and word >> 20 == _VLENB:
        return target, (1, 0)
    if opcode == 0x13 and kind == 1:
        return target, _times(known.get(a), 1 << b)
    if opcode == 0x13 and kind == 0:
        more = (word >> 20) - (1 << 12) * (word >> 31)
        return target, _sum(known.get(a), (0, more))
    if opcode == 0x33 and word >> 25 == 0 and kind == 0:
        return target, _sum(known.get(a), known.get(b))
    if opcode == 0x33 and word >> 25 == 0x20 and kind == 0:
        return target, _sum(known.get(a), _times(known.get(b), -1))
    if opcode == 0x33 and word >> 25 == 1 and kind == 0:
        return target, _product(known.get(a), known.get(b))
    writes = opcode in (0x03, 0x13, 0x17, 0x33, 0x37, 0x67, 0x6F, 0x73)
    return (target if writes else 0), None


def _made_16(word: int, known: dict[int, _Number]) -> tuple[int, _Number | None]:
    target, other = word >> 7 & 31, word >> 2 & 31
    kind = word & 0xE003
    if kind == 0x0002:  # c.slli
        return target, _times(known.get(target), 1 << other)
    if kind == 0x4001:  # c.li
        return target, (0, other - 32 * (word >> 12 & 1))
    if kind == 0x8002 and other:  # c.mv, c.add
        if word >> 12 & 1:
            return target, _sum(known.get(target), known.get(other))
        return target, known.get(other)
    if kind in (0x0001, 0x4002, 0x6001):  # c.addi, c.lwsp, c.lui
        return (0 if target == _SP else target), None
    if kind in (0x4000, 0x0000):  # c.lw, c.addi4spn
        return 8 + (other & 7), None
    if kind == 0x8001:  # c.srli, c.and, ...
        return 8 + (target & 7), None
    return 0, None


def _sum(a: _Number | None, b: _Number | None) -> _Number | None:
    return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])


def _times(a: _Number | None, by: int) -> _Number | None:
    return None if a is None else (a[0] * by, a[1] * by)


def _product(a: _Number | None, b: _Number | None) -> _Number | None:
    if a is None or b is None:
        return None
    if a[0] and b[0]:
        return None
    return _times(a, b[1]) if a[0] else _times(b, a[1])
