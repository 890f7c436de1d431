"""Estimated cycles: known instructions, each as its core's manual has it."""

from __future__ import annotations

import ctypes

import pytest

from pybuild.boards.simulators import unicorn_count
from pybuild.boards.simulators.count import counter_library
from pybuild.boards.simulators.timings import SINGLE, TIMINGS, WIDE, costs

M0, M3, M4 = (TIMINGS[f"cortex-m{n}"] for n in (0, 3, 4))
CASES = (
    # instruction, halfwords, cycles of M0, M3, M4 without a jump, load or store of one
    ("movs r0, #1", (0x2001,), (1, 1, 1), False),
    ("muls r0, r1", (0x4348,), (1, 1, 1), False),
    ("ldr r0, [r1]", (0x6808,), (2, 2, 2), True),
    ("ldr r0, [pc]", (0x4800,), (2, 2, 2), True),
    ("strb r0, [r1]", (0x7008,), (2, 2, 2), True),
    ("ldr r0, [sp]", (0x9800,), (2, 2, 2), True),
    ("push {r4-r7, lr}", (0xB5F0,), (6, 6, 6), False),
    ("pop {r4-r7, pc}", (0xBDF0,), (7, 6, 6), False),
    ("ldmia r0!, {r1-r3}", (0xC80E,), (4, 4, 4), False),
    ("bl", (0xF000, 0xF800), (2, 1, 1), False),
    ("ldr.w r0, [r1, #4]", (0xF8D1, 0x0004), (None, 2, 2), True),
    ("ldrsb.w r0, [r1, #1]", (0xF991, 0x0001), (None, 2, 2), True),
    ("ldrd r0, r1, [r2]", (0xE9D2, 0x0100), (None, 3, 3), False),
    ("ldmia.w r0, {r1-r4}", (0xE890, 0x001E), (None, 5, 5), False),
    ("mul r0, r1, r2", (0xFB01, 0xF002), (None, 1, 1), False),
    ("mla r0, r1, r2, r3", (0xFB01, 0x3002), (None, 2, 1), False),
    ("smlad r0, r1, r2, r3", (0xFB21, 0x3002), (None, None, 1), False),
    ("smull r0, r1, r2, r3", (0xFB82, 0x0103), (None, 4, 1), False),
    ("sdiv r0, r1, r2", (0xFB91, 0xF0F2), (None, 7, 7), False),
    ("udiv r0, r1, r2", (0xFBB1, 0xF0F2), (None, 7, 7), False),
    ("vldr s0, [r0]", (0xED90, 0x0A00), (None, None, 2), True),
    ("vldmia r0, {s0-s3}", (0xEC90, 0x0A04), (None, None, 5), False),
    ("vpush {s16-s23}", (0xED2D, 0x8A08), (None, None, 9), False),
    ("vadd.f32 s0, s0, s1", (0xEE30, 0x0A20), (None, None, 1), False),
    ("vmul.f32 s0, s0, s1", (0xEE20, 0x0A20), (None, None, 1), False),
    ("vmla.f32 s0, s0, s1", (0xEE00, 0x0A20), (None, None, 3), False),
    ("vdiv.f32 s0, s0, s1", (0xEE80, 0x0A20), (None, None, 14), False),
    ("vsqrt.f32 s0, s0", (0xEEB1, 0x0AC0), (None, None, 14), False),
    ("vneg.f32 s0, s0", (0xEEB1, 0x0A40), (None, None, 1), False),
    ("vmov s0, r0", (0xEE00, 0x0A10), (None, None, 1), False),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_as_its_manual(case: tuple[object, ...]) -> None:
    _, halves, wanted, single = case
    code = b"".join(half.to_bytes(2, "little") for half in halves)
    for timing, cycles in zip((M0, M3, M4), wanted, strict=True):
        if cycles is not None:
            extra = WIDE * (len(halves) == 2) + SINGLE * (single and timing.pairs)
            assert costs(code, timing)[0] == cycles + extra


def test_only_cores_with_published_timings() -> None:
    assert {"cortex-m7", "cortex-m55", "rv32imc"}.isdisjoint(TIMINGS)


def test_blocks_add_what_their_instructions_and_jumps_take() -> None:
    library = ctypes.CDLL(str(counter_library("unicorn_count.c")))
    load, move = b"\x08\x68", b"\x01\x20"
    code = load + load + move * 62
    known = costs(code, M4)
    state = unicorn_count.Count(code=code, code_at=0, code_bytes=len(code), is_riscv=0)
    state.costs = unicorn_count.CostsOfCode(known, 0, len(code), M4.taken)
    state.count.end, state.count.ring, state.count.step_bytes = 1000, 1000, 1
    core = unicorn_count.OneCore(ctypes.addressof(state), 0)
    spent = []
    for address, size in ((0, 6), (6, 2), (32, 2), (32, 2)):
        library.unicorn_block(
            None, ctypes.c_uint64(address), ctypes.c_uint32(size), ctypes.byref(core)
        )
        spent.append(state.count.core[0].cycles_of_runtime)
    # two loads in a row and a move; a move behind them; a jump to one, twice
    assert spent == [4, 5, 8, 11]
    assert state.count.core[0].of_runtime == 6
