"""Just enough of Thumb, RV32C and Xtensa machine code: lengths, calls, stack movements.

Knows instructions, no program; what a kernel computes is of no interest here.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.records import dataclass


@dataclass(frozen=True)
class Flow:
    """The effect of one instruction on control flow and stack.

    kind   "call": may return here (a tail call too); "indirect": calls a register;
           "push": takes `value` bytes of stack
    value  address of the called function, or bytes
    """

    kind: str
    value: int = 0


def flows(arch: str, data: bytes, address: int) -> Iterator[Flow]:
    """The control flow of a piece of code: its calls and jumps, those inside it
    included."""
    decode = {"arm": _thumb, "riscv": _riscv, "xtensa": _xtensa}[arch]
    at = 0
    high = 0  # what the RV32 instruction before put into a register's high bits
    while at + 2 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        size = length(arch, word)
        if at + size > len(data):
            return
        if arch == "riscv" and word & 0x7F == 0x17:
            high = address + at + _signed(word & 0xFFFFF000, 32)
        yield from decode(word, size, address + at, high)
        if arch == "riscv" and word & 0x7F != 0x17:
            high = 0
        at += size


def length(arch: str, word: int) -> int:
    """Bytes of the instruction whose first halfword is the low half of `word`."""
    if arch == "xtensa":
        return 2 if word & 8 else 3
    if arch == "riscv":
        return 4 if word & 3 == 3 else 2
    return 4 if (word >> 11) & 0x1F >= 0b11101 else 2


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _ones(mask: int) -> int:
    return mask.bit_count()


def _thumb(word: int, size: int, at: int, _: int) -> Iterator[Flow]:
    first, second = word & 0xFFFF, word >> 16
    if size == 2:
        yield from _thumb_16(first, at)
    elif first & 0xF800 == 0xF000 and second & 0x8000:
        yield from _thumb_branch(first, second, at)
    elif first == 0xE92D:  # push.w
        yield Flow("push", 4 * _ones(second))
    elif first == 0xF84D and second & 0xFFF == 0xD04:  # str r, [sp, #-4]!
        yield Flow("push", 4)
    elif first == 0xE96D or (  # strd r, r, [sp, #-n]!
        first & 0xFFBF == 0xED2D and second & 0x0E00 == 0x0A00  # vpush
    ):
        yield Flow("push", 4 * (second & 0xFF))
    elif first & 0xFBEF == 0xF1AD and second & 0x8F00 == 0x0D00:  # sub.w sp, sp, #n
        yield Flow("push", _expanded(first >> 10 & 1, second))
    elif first & 0xFBFF == 0xF2AD and second & 0x8F00 == 0x0D00:  # subw sp, sp, #n
        yield Flow("push", _plain(first >> 10 & 1, second))


def _thumb_16(word: int, at: int) -> Iterator[Flow]:
    if word & 0xFF80 == 0x4780 or (word & 0xFF80 == 0x4700 and word != 0x4770):
        yield Flow("indirect")
    elif word & 0xF800 == 0xE000:
        yield Flow("call", at + 4 + _signed((word & 0x7FF) << 1, 12))
    elif word & 0xFE00 == 0xB400:
        yield Flow("push", 4 * _ones(word & 0x1FF))
    elif word & 0xFF80 == 0xB080:
        yield Flow("push", 4 * (word & 0x7F))


def _thumb_branch(first: int, second: int, at: int) -> Iterator[Flow]:
    """bl, b.w and b<c>.w; others of their encoding jump nowhere."""
    sign = first >> 10 & 1
    j1, j2 = second >> 13 & 1, second >> 11 & 1
    if second & 0x1000:
        i1, i2 = 1 - (j1 ^ sign), 1 - (j2 ^ sign)
        far = sign << 24 | i1 << 23 | i2 << 22
        far |= (first & 0x3FF) << 12 | (second & 0x7FF) << 1
        yield Flow("call", at + 4 + _signed(far, 25))
    elif second & 0xD000 == 0x8000 and first >> 7 & 7 != 7:
        far = sign << 20 | j2 << 19 | j1 << 18
        far |= (first & 0x3F) << 12 | (second & 0x7FF) << 1
        yield Flow("call", at + 4 + _signed(far, 21))


def _plain(i: int, second: int) -> int:
    return i << 11 | (second >> 12 & 7) << 8 | second & 0xFF


def _expanded(i: int, second: int) -> int:
    """The constants of Thumb-2: a byte, repeated or rotated."""
    code = _plain(i, second)
    low = code & 0xFF
    if code >> 10:
        rotate = code >> 7
        return (0x80 | low & 0x7F) << (32 - rotate)
    return (low, low << 16 | low, low << 24 | low << 8, low * 0x01010101)[code >> 8]


def _riscv(word: int, size: int, at: int, high: int) -> Iterator[Flow]:
    if size == 2:
        yield from _riscv_16(word & 0xFFFF, at)
        return
    opcode, target, source = word & 0x7F, word >> 7 & 31, word >> 15 & 31
    if opcode == 0x6F:
        far = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12
        far |= (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
        yield Flow("call", at + _signed(far, 21))
    elif opcode == 0x67:
        if high:
            yield Flow("call", (high + _signed(word >> 20, 12)) & 0xFFFFFFFF)
        elif source not in (1, 5) or target:
            yield Flow("indirect")
    elif opcode == 0x13 and (target, source, word >> 12 & 7) == (2, 2, 0):
        yield from _moved(_signed(word >> 20, 12))


def _riscv_16(word: int, at: int) -> Iterator[Flow]:
    kind, register = word & 0xE003, word >> 7 & 31
    if kind in (0x2001, 0xA001):  # c.jal, c.j
        far = 0
        for source, place in (
            (12, 11), (11, 4), (10, 9), (9, 8), (8, 10), (7, 6), (6, 7), (5, 3),
            (4, 2), (3, 1), (2, 5),
        ):  # fmt: skip
            far |= (word >> source & 1) << place
        yield Flow("call", at + _signed(far, 12))
    elif kind == 0x8002 and word & 0x7C == 0 and register:
        if word & 0x1000 or register not in (1, 5):
            yield Flow("indirect")
    elif kind == 0x6001 and register == 2:  # c.addi16sp
        far = (word >> 12 & 1) << 9 | (word >> 6 & 1) << 4 | (word >> 5 & 1) << 6
        far |= (word >> 3 & 3) << 7 | (word >> 2 & 1) << 5
        yield from _moved(_signed(far, 10))
    elif kind == 0x0001 and register == 2:  # c.addi sp
        yield from _moved(_signed((word >> 12 & 1) << 5 | word >> 2 & 31, 6))


def _moved(by: int) -> Iterator[Flow]:
    if by < 0:
        yield Flow("push", -by)


def _xtensa(word: int, size: int, at: int, _: int) -> Iterator[Flow]:
    """Calls without windows; what is beyond their reach is called through a register
    with a constant, whose function cannot be seen here."""
    if size == 2:
        return
    word &= 0xFFFFFF
    if word & 0x3F == 0x05:  # CALL0
        yield Flow("call", (at & ~3) + 4 + 4 * _signed(word >> 6, 18))
    elif word & 0x3F == 0x06:  # J: a tail call, where it leaves the function
        yield Flow("call", at + 4 + _signed(word >> 6, 18))
    elif word & 0xFFF0FF in (0x0000C0, 0x0000A0):  # CALLX0, JX
        yield Flow("indirect")
    elif word & 0xFFF == 0xC112:  # ADDI a1, a1, N
        yield Flow("push", max(0, -_signed(word >> 16, 8)))
