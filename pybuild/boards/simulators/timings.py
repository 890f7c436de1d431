"""Cycles of Thumb instructions, as Arm publishes them for each core: an estimate.

Memory answers at once: no wait states, no busy bus. Sources: Arm's TRM of Cortex-M0
(DDI 0432C) table 3-1, M0+ (DDI 0484C) table 3-1, M3 (DDI 0337) table 3-1, M4 (DDI
0439B) tables 3-1 and 7-1; of the Cortex-M33 none is published: as its predecessor, M4
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.records import dataclass

Halves = npt.NDArray[np.int64]

# of a byte for each halfword: cycles in the low bits
WIDE = 0x40  # the instruction has a second halfword
SINGLE = 0x80  # a load or store: a cycle less directly after another


@dataclass(frozen=True)
class Timing:
    """A core's cycles where they differ.

    pairs   loads and stores in a row overlap
    taken   for filling the pipeline again: of 1 to 3, the middle
    add     of a multiplication that adds; long: of one with a result of 64 bits;
            divide: the middle of 2 to 12
    call    of BL, and on top of a POP to the program counter, less 1
    """

    pairs: bool
    taken: int
    add: int = 1
    long: int = 1
    divide: int = 7
    call: int = 1


_M4 = Timing(True, 2)
TIMINGS = {
    "cortex-m0": Timing(False, 2, call=2),
    "cortex-m0plus": Timing(False, 1, call=2),
    "cortex-m3": Timing(True, 2, add=2, long=4),
    "cortex-m4": _M4,
    "cortex-m33": _M4,
    "cortex-m33-nodsp": _M4,
}


def costs(code: bytes, timing: Timing) -> bytes:
    """A byte for each halfword, as if an instruction began there."""
    halves = np.frombuffer(code + b"\0" * (-len(code) % 2), "<u2").astype(np.int64)
    second = np.append(halves[1:], 0)
    wide = halves >= 0xE800
    cycles = np.where(wide, _wide(halves, second, timing), _narrow(halves, timing))
    single = np.where(wide, _single(halves), (halves >= 0x4800) & (halves < 0xA000))
    made = np.minimum(cycles, 63) + WIDE * wide
    if timing.pairs:
        made = made + SINGLE * single
    return bytes(made.astype(np.uint8))


def _bits(values: Halves, count: int = 16) -> Halves:
    """How many of the lowest bits are set."""
    return np.asarray(sum((values >> i) & 1 for i in range(count)), np.int64)


def _narrow(h: Halves, t: Timing) -> Halves:
    """Instructions of one halfword; what a jump takes comes on top."""
    loads = (h >= 0x4800) & (h < 0xA000)
    stack = ((h & 0xFE00) == 0xB400) | ((h & 0xFE00) == 0xBC00)
    many = (h >= 0xC000) & (h < 0xD000)
    cycles = np.where(loads, 2, 1)
    cycles = np.where(stack, 1 + _bits(h, 9), cycles)
    cycles = np.where(many, 1 + _bits(h, 8), cycles)
    return np.asarray(cycles + np.where((h & 0xFF00) == 0xBD00, t.call - 1, 0))


def _single(h: Halves) -> Halves:
    """Loads and stores of one register, integer or float."""
    return np.asarray(((h & 0xFE00) == 0xF800) | ((h & 0xFF20) == 0xED00))


def _wide(h: Halves, second: Halves, t: Timing) -> Halves:
    """Instructions of two halfwords; what a jump takes comes on top."""
    cycles = np.where(_single(h), 2, 1)
    calls = ((h & 0xF800) == 0xF000) & ((second & 0xD000) == 0xD000)
    cycles = np.where(calls, t.call, cycles)
    cycles = np.where((h & 0xFE40) == 0xE800, 1 + _bits(second), cycles)
    cycles = np.where((h & 0xFE40) == 0xE840, 3, cycles)
    adds = ((h & 0xFF80) == 0xFB00) & (second >> 12 != 15)
    cycles = np.where(adds, t.add, cycles)
    cycles = np.where((h & 0xFF80) == 0xFB80, t.long, cycles)
    cycles = np.where((h & 0xFFD0) == 0xFB90, t.divide, cycles)
    # floats: several registers; multiply and add; division and square root
    block = ((h & 0xFE00) == 0xEC00) & ((h & 0xFF20) != 0xED00)
    cycles = np.where(block, 1 + (second & 0xFF), cycles)
    scalar = (h & 0xFF00) == 0xEE00
    cycles = np.where(scalar & ((h & 0xA0) == 0) & ((h & 0x30) < 0x20), 3, cycles)
    divides = (h & 0xFFB0) == 0xEE80
    roots = ((h & 0xFFBF) == 0xEEB1) & ((second & 0xC0) == 0xC0)
    cycles = np.where(divides | roots, 14, cycles)
    moves = scalar & ((second & 0x10) != 0)  # between the registers of both kinds
    return np.asarray(np.where(moves, 1, cycles))
