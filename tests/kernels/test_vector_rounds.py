"""Rules of rounding on vectors: each operation by LLVM and sanitised C against the
meaning of its rule, at sums and shifts to the ends of their ranges; and the ends of
layers that they make, whatever the layer reaches."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import INT8, INT32, Intrin, offset
from pybuild.kernels.base import vector_packs, vector_rounds
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.vector_packs import PLACES8
from pybuild.kernels.base.vectors import words_at
from pybuild.kernels.mve.epilogue import numbers_of, table
from pybuild.kernels.mve.exact import BYTE, FIVE, Exact, ExactFinish, exact
from pybuild.kernels.mve.pixel_epilogue import PixelFinish
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import requantize
from tests.kernels.kernel_bench import Job, run_c, run_llvm

RULES = ("double", "single", "away")
SUMS = 400
MULTIPLIERS = (1 << 30, (1 << 31) - 1, 3 << 29, 1_518_500_250, 0)


def _made(rule: str) -> tuple[ConvParameters, Ints]:
    """A channel for each multiplier and shift, and its sums: ends of int32, some small
    ones, some that meet ties."""
    pairs = [(m, s) for m in MULTIPLIERS for s in range(-33, 6)]
    mults, shifts = zip(*pairs, strict=True)
    chance = np.random.default_rng(3)
    bits = chance.integers(1, 31, (len(pairs), SUMS))
    sums = chance.integers(-(1 << 31), 1 << 31, (len(pairs), SUMS)) >> bits
    sums[:, :40] = np.arange(-20, 20)
    sums[:, 40:80] = (1 << bits[:, 40:80]) - (bits[:, 40:80] % 3 == 0)
    sums[:, 80:120] *= 1 << 4
    most = (2**31 - 1) >> np.maximum(np.asarray(shifts), 0)[:, None]
    sums = np.clip(sums, -most, most)
    return ConvParameters(rule, mults, shifts, (), 0, -5, -120, 127), sums


def _job(epilogue: Exact, sums: Ints, wanted: Array, bias: Ints | None = None) -> Job:
    """y[channel] = end(sum), four channels at a time."""
    count = len(sums)
    bias = np.zeros(count, np.int64) if bias is None else bias
    k = Builder("test_exact")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT32)
    ends = k.let("at", k.row("ends", 2, INT32))
    finish = ExactFinish(k, epilogue)
    with k.loop("i", k.arg("n", count), 0, 4) as i:
        numbers = numbers_of(epilogue, ends)
        k.store(y, i, finish.narrow(words_at(x, i), numbers))
        k.assign(ends, offset(ends, epilogue.size))
    func = k.finish()
    table = epilogue.table(bias, np.arange(count))
    rows = [RowAccess(n, 1, b, 1, 0) for n, b in (("y", count), ("x", 4 * count))]
    made = Candidate(func, tuple(k.values), tuple(rows[:1]), tuple(rows[1:]), (table,))
    arrays = {"x": sums.astype(np.int32)}
    return Job(made, arrays, {"y": wanted.astype(np.int8)})


def _jobs(rule: str) -> list[Job]:
    made, sums = _made(rule)
    count = len(sums) // 4 * 4
    mult, bits = (np.asarray(v, np.int64) for v in (made.multipliers, made.shifts))
    jobs = []
    for column in range(0, SUMS, 8):
        some = sums[:count, column]
        y = requantize(some, mult[:count], bits[:count], rule) + made.y_zero
        wanted = np.clip(y, made.low, made.high)
        every = sums.min(1), sums.max(1)
        epilogue = exact(made, *every)
        first = replace(epilogue, factors=epilogue.factors[:count])
        jobs.append(_job(first, some, wanted))
    return jobs


def _pixels(
    epilogue: Exact, sums: Ints, wanted: Array, turned: bool, bias: Ints | None = None
) -> Job:
    """y[channel, pixel] = end(sum), four channels of four pixels at a time: as they
    are packed, pixel by pixel."""
    count = len(sums)
    bias = np.zeros(count, np.int64) if bias is None else bias
    k = Builder("test_pixels")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT32)
    ends = k.let("at", k.row("ends", 2, INT32))
    finish = PixelFinish(k, epilogue, turned)
    with k.loop("i", k.arg("n", count), 0, 4) as i:
        numbers = [finish.numbers(ends, c) for c in range(4)]
        found = [
            k.let("v", finish.one(k, words_at(x, i * 4 + 4 * c), numbers[c]))
            for c in (0, 2, 1, 3)
        ]
        halves = [k.let("h", finish.halves(*found[n : n + 2])) for n in (0, 2)]
        k.store(y, i * 4, finish.bytes(*halves))
        k.assign(ends, offset(ends, finish.size))
    func = k.finish()
    ended = table(epilogue, bias, np.arange(count), turned)
    sizes = (("y", 4 * count), ("x", 16 * count))
    rows = [RowAccess(n, 1, b, 1, 0) for n, b in sizes]
    made = Candidate(func, tuple(k.values), tuple(rows[:1]), tuple(rows[1:]), (ended,))
    packed = wanted.reshape(-1, 4, 4).transpose(0, 2, 1)
    arrays = {"x": sums.astype(np.int32)}
    return Job(made, arrays, {"y": packed.reshape(-1).astype(np.int8)})


def _eights(epilogue: Exact, sums: Ints, wanted: Array) -> Job:
    """y[pixel, channel] = end(sum), eight pixels of a channel at a time: each byte is
    stored in a place of its own."""
    count = len(sums)
    k = Builder("test_eights")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT32)
    ends = k.let("at", k.row("ends", 2, INT32))
    finish, channels = PixelFinish(k, epilogue, False), k.arg("n", count)
    places = k.let("places", PLACES8(channels, channels * 4))
    with k.loop("i", channels) as i:
        numbers = [k.let("number", one) for one in finish.numbers(ends, 0)]
        fours = [words_at(x, i * 8 + 4 * n) for n in (0, 1)]
        ended = [k.let("v", finish.one(k, four, numbers)) for four in fours]
        halves = k.let("h", finish.halves(*ended))
        k.store(offset(y, i), places, finish.low_bytes(halves))
        k.assign(ends, offset(ends, finish.size // 4))
    ended_by = table(epilogue, np.zeros(count, np.int64), np.arange(count), False)
    sizes = (("y", 8 * count), ("x", 32 * count))
    rows = [RowAccess(n, 1, b, 1, 0) for n, b in sizes]
    func = k.finish()
    made = Candidate(
        func, tuple(k.values), tuple(rows[:1]), tuple(rows[1:]), (ended_by,)
    )
    arrays = {"x": sums.astype(np.int32)}
    return Job(made, arrays, {"y": wanted.T.reshape(-1).astype(np.int8)})


@pytest.mark.parametrize("rule", RULES)
def test_an_end_of_pixels_is_its_rule(rule: str, tmp_path: Path) -> None:
    """Also where all channels shift, and where what is below zero does not matter."""
    every, sums = _made(rule)
    mult, bits = (np.asarray(v, np.int64) for v in (every.multipliers, every.shifts))
    jobs = []
    ways = itertools.product(
        (mult > 0, (bits < 0) & (bits > -30)), (-120, -5, -128), (True, False)
    )
    for right, low, turned in ways:
        chosen = np.flatnonzero(right)
        chosen = chosen[: len(chosen) // 4 * 4]
        some, m, b = sums[chosen, 38:238:8], mult[chosen], bits[chosen]
        made = ConvParameters(rule, tuple(m), tuple(b), (), 0, -5, low, 127)
        end = exact(made, sums[chosen].min(1), sums[chosen].max(1))
        for at in range(0, 24, 8):
            y = requantize(some[:, at : at + 4], m[:, None], b[:, None], rule) - 5
            wanted = np.clip(y, low, 127)
            jobs.append(_pixels(end, some[:, at : at + 4], wanted, turned))
        y = requantize(some[:, :8], m[:, None], b[:, None], rule) - 5
        jobs.append(_eights(end, some[:, :8], np.clip(y, low, 127)))
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            np.testing.assert_array_equal(result["y"], job.outputs["y"])


@pytest.mark.parametrize("rule", RULES)
def test_an_end_is_its_rule(rule: str, tmp_path: Path) -> None:
    jobs = _jobs(rule)
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            np.testing.assert_array_equal(result["y"], job.outputs["y"])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("bits", (BYTE, FIVE))
def test_bias_and_shift_lie_in_one_word(rule: str, bits: int, tmp_path: Path) -> None:
    """To the ends of what a bias may be, of four channels and of four pixels."""
    every, sums = _made(rule)
    mult, shifts = (np.asarray(v, np.int64) for v in (every.multipliers, every.shifts))
    chosen = np.flatnonzero((shifts < (0 if rule == "double" else -1)) & (shifts > -30))
    chosen = chosen[: len(chosen) // 4 * 4]
    m, s = mult[chosen], shifts[chosen]
    made = ConvParameters(rule, tuple(m), tuple(s), (), 0, -5, -120, 127)
    half = 1 << (31 - bits)
    bias = np.random.default_rng(7).integers(-half, half, len(chosen))
    bias[:4] = -half, half - 1, -1, 0
    jobs = []
    for at in range(0, 200, 8):
        some = np.clip(sums[chosen, at : at + 4], -(2**30), 2**30)
        end = exact(made, some.min(1), some.max(1)).with_bias(bias)
        assert end.joined == bits
        y = requantize(some, m[:, None], s[:, None], rule) - 5
        wanted, given = np.clip(y, -120, 127), some - bias[:, None]
        jobs.append(_job(end, given[:, 0], wanted[:, 0], bias))
        jobs += [_pixels(end, given, wanted, turned, bias) for turned in (True, False)]
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_words_are_joined_where_both_have_room() -> None:
    low, high = np.asarray([-1000]), np.asarray([1000])

    def joined(bias: int, shift: int = -9, rule: str = "double") -> int:
        made = ConvParameters(rule, ((1 << 30) + 1,), (shift,), (), 0, 0, -128, 127)
        return exact(made, low, high).with_bias(np.asarray([bias])).joined

    assert [joined(b) for b in (-(1 << 23), (1 << 23) - 1)] == [BYTE, BYTE]
    assert [joined(b) for b in (-(1 << 23) - 1, 1 << 23, (1 << 26) - 1)] == [FIVE] * 3
    assert [joined(1 << 26), joined(0, shift=0), joined(0, 3, "single")] == [0, 0, 0]


def test_a_float_is_rounded_to_even(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    sums = chance.integers(-(1 << 20), 1 << 20, 200)
    scales = np.float32(2.0) ** chance.integers(-21, -1, 200).astype(np.float32)
    made = ConvParameters("even", (), (), tuple(map(float, scales)), 0, 9, -128, 127)
    y = np.rint(sums.astype(np.float32) * scales).astype(np.int64) + 9
    job = _job(exact(made, sums, sums), sums, np.clip(y, -128, 127))
    for (result,) in (run_llvm([job]), run_c([job], tmp_path)):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_ties_alone_need_the_longer_form() -> None:
    """Of an odd multiplier no product is halfway; of a power of two some are."""
    low, high = np.asarray([-1000]), np.asarray([1000])

    def rule(multiplier: int) -> str:
        made = ConvParameters("away", (multiplier,), (-9,), (), 0, 0, -128, 127)
        return exact(made, low, high).rule

    assert rule((1 << 30) + 1) == "single"
    assert rule(1 << 30) == "away"


def test_every_name_needs_the_header() -> None:
    named = {v.name for v in vars(vector_rounds).values() if isinstance(v, Intrin)}
    named |= {one.name for one in vector_rounds.LANE}
    assert named == vector_rounds.NAMES
    # LANES of crt/vector.h, in order, and those that are known already
    packs = {v.name for v in vars(vector_packs).values() if isinstance(v, Intrin)}
    assert packs - {"crt_lanes", "crt_lanes_now"} == vector_packs.NAMES
