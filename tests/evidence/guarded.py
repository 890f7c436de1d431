"""Bits of memory that flip while digits runs on an emulated Cortex-M4, where nothing
but arena, instance and stack can be written, and nothing lies beside them.

python -m tests.evidence.guarded: the counts of docs/security.md.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

from unicorn import (
    UC_ERR_WRITE_PROT,
    UC_ERR_WRITE_UNMAPPED,
    UC_PROT_EXEC,
    UC_PROT_READ,
    UcError,
)

import pybuild
from tests.evidence.flips import DIGITS
from tests.evidence.m4 import linked
from tests.objects.simulated import Machine

_PAGE = 4096
_INSTANCE, _ARENA, _ROWS = 0x30010000, 0x40010000, 0x50000000  # ends, but of rows
_WRITES = (UC_ERR_WRITE_PROT, UC_ERR_WRITE_UNMAPPED)
_ROW, _COUNT = 8, 8  # bytes of a row of digits, and how many there are


class Guarded:
    """The network with its memory; each place ends where nothing is mapped.

    instance, arena, counters  (address, bytes)
    """

    def __init__(self, folder: Path, *flags: str) -> None:
        model = pybuild.load(DIGITS)
        model.build(folder / "net", name="net", target="cortex-m4", push=["image"])
        image = linked(folder / "net", "pushed.c", folder / "net.elf", *flags)
        self.core = Machine("cortex-m4", image)
        sizes = [self.core.call("size_of", what) for what in range(4)]
        self.instance = (_INSTANCE - sizes[0]) & -16, sizes[0]
        self.arena = (_ARENA - sizes[1]) & -16, sizes[1]
        self.counters = self.arena[0] + sizes[2], sizes[3]
        uc, stack = self.core.uc, self.core.symbols["stack_top"]
        for start, stop, _ in uc.mem_regions():
            if not start < stack <= stop + 1:
                uc.mem_protect(start, stop + 1 - start, UC_PROT_READ | UC_PROT_EXEC)
            elif stack - 0x10000 > start:
                size = stack - 0x10000 - start
                uc.mem_protect(start, size, UC_PROT_READ | UC_PROT_EXEC)
        for end, size in ((_INSTANCE, sizes[0]), (_ARENA, sizes[1])):
            pages = -(-size // _PAGE) * _PAGE
            uc.mem_map(end - pages, pages)
        uc.mem_map(_ROWS, _PAGE, UC_PROT_READ)
        uc.mem_write(_ROWS, bytes(i * 37 % 256 for i in range(_ROW * _COUNT)))
        assert self.core.call("begin", self.instance[0], self.arena[0]) == 0
        self.fresh = bytes(uc.mem_read(*self.instance))
        self.right = self.pushed()

    def flip(self, address: int, bit: int) -> None:
        (byte,) = self.core.uc.mem_read(address, 1)
        self.core.uc.mem_write(address, bytes([byte ^ 1 << bit]))

    def pushed(self, *flips: tuple[int, int, int], anew: bool = False) -> bytes:
        """The result, or b"" where the run is refused.

        flips   (row, address, bit); row -1: before the run
        anew    net_init begins the run, as firmware does that trusts no instance
        Errors  UcError where anything else was read or written
        """
        core, me = self.core, self.instance[0]
        for when, address, bit in flips:
            if when < 0:
                self.flip(address, bit)
        if anew:
            error = core.call("begin", me, self.arena[0])
        else:
            error = core.call("reset", me)
        for row in range(_COUNT):
            for when, address, bit in flips:
                if when == row:
                    self.flip(address, bit)
            error = error or core.call("push", me, _ROWS + _ROW * row, 1)
        if error or core.call("done", me):
            return b""
        return bytes(core.uc.mem_read(core.call("result", me), 10))

    def kind(self, *flips: tuple[int, int, int], anew: bool = False) -> str:
        """What comes of it; "beside": more was written than arena and instance."""
        uc = self.core.uc
        uc.mem_write(self.instance[0], self.fresh)
        try:
            found = self.pushed(*flips, anew=anew)
        except UcError as error:
            return "write stopped" if error.errno in _WRITES else "read stopped"
        beside = False
        for at, size in (self.instance, self.arena):
            for start, room in ((at & -_PAGE, at % _PAGE), (at + size, -(at + size))):
                if any(uc.mem_read(start, room % _PAGE)):
                    uc.mem_write(start, bytes(room % _PAGE))
                    beside = True
        if beside:
            return "beside"
        if found == self.right:
            return "same"
        return "other" if found else "refused"


def in_arena(net: Guarded, runs: int) -> Counter[str]:
    """Up to 16 bits of the arena before each row."""
    chance = random.Random(24)
    kinds: Counter[str] = Counter()
    for number in range(runs):
        flips = [
            (row, net.arena[0] + chance.randrange(net.arena[1]), chance.randrange(8))
            for row in range(_COUNT)
            for _ in range(1 + number % 16)
        ]
        kinds[net.kind(*flips)] += 1
    return kinds


def each_bit(
    net: Guarded, place: tuple[int, int], row: int, anew: bool = False
) -> Counter[str]:
    """Each bit of a place, before a row, or before the run: -1."""
    at, size = place
    flips = [(row, at + i // 8, i % 8) for i in range(8 * size)]
    return Counter(net.kind(one, anew=anew) for one in flips)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        net = Guarded(Path(folder))
        print("arena", in_arena(net, 1000))
        print("counters", each_bit(net, net.counters, 4))
        print("instance", each_bit(net, net.instance, -1))
        print("instance, anew", each_bit(net, net.instance, -1, anew=True))
