"""Instructions of a model on RISC-V's vectors, and the same with each vector
instruction counted as often as it has registers: `python -m
tests.kernels.rvv.weighted MODEL...`.

The registers are those of the type that was set last before it in the code.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from unittest import mock

import numpy as np

import pybuild
from pybuild.boards import bench
from pybuild.boards.firmware.build import Firmware
from pybuild.boards.firmware.machine_code import length
from pybuild.boards.simulators import qemu
from pybuild.boards.simulators.count import Costs
from pybuild.boards.simulators.stand_ins import rv32_vectors
from pybuild.boards.simulators.timings import WIDE
from tests.boards.devices import device

BITS = (128, 256, 512)
_LOAD, _STORE, _ARITHMETIC = 0x07, 0x27, 0x57
_SET = 7  # funct3 of vsetvli and its like
_WIDENED = range(0b110000, 0b111000)  # vwadd, vwsub and their like
_PRODUCTS = range(0b111000, 0b1000000)  # vwmul, vwmacc
_NARROWED = range(0b101100, 0b110000)  # vnsrl, vnclip


def weights(code: bytes) -> bytes:
    """A byte for each halfword, as if an instruction began there: its registers."""
    made = np.ones(len(code) // 2 + 1, np.uint8)
    at, group, sew = 0, 1.0, 8
    while at + 2 <= len(code):
        word = int.from_bytes(code[at : at + 4], "little")
        size = length("riscv", word)
        opcode, kind = word & 0x7F, word >> 12 & 7
        count = 1.0
        if size == 4 and opcode == _ARITHMETIC and kind == _SET:
            if word >> 31 == 0 or word >> 30 == 3:
                group, sew = _type(word >> 20)
        elif size == 4 and opcode == _ARITHMETIC:
            count = group * (2 if _is_double(word >> 26, kind) else 1)
        elif size == 4 and opcode in (_LOAD, _STORE) and kind in (0, 5, 6, 7):
            width = {0: 8, 5: 16, 6: 32, 7: 64}[kind]
            indexed = word >> 26 & 3 in (1, 3)
            count = group if indexed else group * width / sew
        made[at // 2] = max(1, round(count)) + WIDE * (size == 4)
        at += size
    return bytes(made)


def _type(vtype: int) -> tuple[float, int]:
    """The registers of a group, and the bits of an element."""
    power = vtype & 7
    return 2.0 ** (power - 8 if power > 3 else power), 8 << (vtype >> 3 & 7)


def _is_double(function: int, kind: int) -> bool:
    """True if a result or an operand has elements of twice the width."""
    if kind in (2, 6):  # OPMVV, OPMVX
        return function in _WIDENED or function in _PRODUCTS
    return kind in (0, 3, 4) and function in _NARROWED


def _costs(firmware: Firmware) -> Costs:
    at = firmware.board.flash.origin
    return Costs(weights(firmware.elf.image(at)), at, 0)


def measured(path: str, bits: int, emit: str = "c") -> list[tuple[str, int, int, int]]:
    """Of each layer: operator, multiply-accumulates, instructions, and these by
    registers."""
    board = device("riscv32-virt-v", "zig")
    arguments = rv32_vectors(bits).arguments
    board = replace(board, board=replace(board.board, arguments=arguments))
    library = pybuild.load(path).build(target="rv32imcv", emit=emit)
    with mock.patch.object(qemu, "costs_of", _costs):
        found = bench.bench_on_board(board, library)
    return [
        (layer.op, layer.macs, layer.instructions, layer.cycles or 0)
        for layer in found.layers
    ]


if __name__ == "__main__":
    for model in sys.argv[1:]:
        for length_ in BITS:
            rows = measured(model, length_)
            for op in sorted({row[0] for row in rows}):
                some = [row[1:] for row in rows if row[0] == op]
                macs, plain, registers = map(sum, zip(*some, strict=True))
                each = [f"{n / macs:.3f}" for n in (plain, registers) if macs]
                print(model, length_, op, macs, plain, registers, *each)
