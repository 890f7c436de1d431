"""Kernels on vectors: random layers against the numpy meaning of their operators,
by C (gcc with sanitizers, clang) and LLVM on this machine; which layers have them;
and each of their operations."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    INT64,
    Func,
    Intrin,
    const,
    i32,
    i64,
    load,
    offset,
)  # fmt: skip
from pybuild.kernels.base import vectors
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.vector_packs import LANES8, gathered_halves
from pybuild.kernels.base.vectors import bytes_at, gathered_bytes, halves_at, words_at
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import ROUNDINGS
from tests.kernels.vector_layers import OPERATORS, OTHERS, layer

CORE = TARGETS["cortex-m55"]
SEEDS = range(18)
# of rows woven in twos
_ENDS = ("left", "right", "last", "ragged", "pieces", "pieces_left_even", "rest")


def _jobs(seeds: range, optimise: str = "balanced") -> list[Job]:
    """The kernels on vectors of layers that have one; not those that leave their end
    to another, which tests/kernels/mve runs."""
    jobs = []
    for op in (*OPERATORS, *OTHERS):
        found = 0
        for seed in seeds if op in OPERATORS else seeds[: len(seeds) // 3]:
            one = layer(op, seed)
            for offer in candidates(one.node, one.graph, CORE, optimise):
                func = offer.func
                if func is not None and "mve" in func.name and offer.finish is None:
                    jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
                    found += 1
        assert found > len(seeds) // (2 if op in OPERATORS else 9), op
    return jobs


def _check(jobs: list[Job], results: list[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        func = job.candidate.func
        name = func.name if func else ""
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("optimise", ["balanced", "speed"])
def test_llvm_equals_numpy(optimise: str) -> None:
    jobs = _jobs(SEEDS if optimise == "balanced" else range(6), optimise)
    _check(jobs, run_llvm(jobs))


def test_rows_in_pieces_equal_numpy() -> None:
    """Each with less scratch than the kernel of whole rows, padding at either end, and
    a last piece that begins before the one before ends."""
    jobs, forms = [], set()
    for op, seed in itertools.product(("depthwise_conv2d", "wide"), range(60)):
        one = layer(op, seed)
        offers = candidates(one.node, one.graph, CORE)
        rows = next((c for c in offers if c.func and "mve" in c.func.name), None)
        for offer in offers:
            if offer.spare and offer.func is not None and rows is not None:
                assert offer.scratch <= 0.75 * rows.scratch
                jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
                forms.add(offer.func.name.partition("pieces")[2])
    assert len(jobs) > 30 and forms >= {"", "_left_right", "_left_right_rest"}
    _check(jobs, run_llvm(jobs))


@SOME
def test_rows_in_halves_equal_numpy(some: Some, tmp_path: Path) -> None:
    """Woven in twos: windows that slide by one or by two, two in a vector or one in
    several, of channels that fill vectors or not, with padding at either end or none;
    the last row has a pixel of its own or shares each with its neighbour."""
    jobs, forms = [], set()
    for seed in range(80):
        one = layer("twos", seed)
        for offer in candidates(one.node, one.graph, CORE):
            name = offer.func.name if offer.func else ""
            if "_halves" in name:
                jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
                forms |= {f for f in _ENDS if f in name}
                forms |= set(re.findall("(?:1by1|1by2|2by2)_halves", name))
    assert len(jobs) > 40 and forms == {
        *_ENDS, "1by1_halves", "1by2_halves", "2by2_halves",
    }  # fmt: skip
    _check(jobs, run_llvm(jobs))
    jobs = some(jobs)
    _check(jobs, run_c(jobs, tmp_path))


@SOME
def test_eight_pixels_equal_numpy(some: Some, tmp_path: Path) -> None:
    """Of rows of any length: the last eight again, or four, or one or two that end with
    the numbers of each channel; six and seven are eight."""
    jobs, forms = [], set()
    for seed in range(28):
        one = layer("long", seed)
        for offer in candidates(one.node, one.graph, CORE):
            if offer.func is not None and "_eight" in offer.func.name:
                jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
                forms |= set(re.findall("by[12]_(eight.*?)_(?:odd|shift|exact|cl)",
                                        offer.func.name))  # fmt: skip
    assert forms >= {
        "eight", "eights", "eights_again", "eights_fours", "eights_1", "eights_2",
    }  # fmt: skip
    _check(jobs, run_llvm(jobs))
    jobs = some(jobs)
    _check(jobs, run_c(jobs, tmp_path))


@pytest.mark.parametrize(
    "compiler", ["gcc", pytest.param("clang", marks=pytest.mark.sweep)]
)
@SOME
def test_c_equals_numpy(some: Some, compiler: str, tmp_path: Path) -> None:
    jobs = some(_jobs(SEEDS[:9]))
    _check(jobs, run_c(jobs, tmp_path, compiler))


@pytest.mark.sweep
def test_many_more_layers() -> None:
    jobs = _jobs(range(1000, 1500))
    _check(jobs, run_llvm(jobs))


def test_written_over() -> None:
    """The output may lie where an operand was."""
    jobs = []
    for op, seed in itertools.product(("add", "mul"), (1, 5, 7, 11)):
        one = layer(op, seed)
        for offer in candidates(one.node, one.graph, CORE):
            if offer.func is not None and "mve" in offer.func.name:
                made = {"y": one.expected()}
                jobs += [Job(offer, one.arrays, made, n) for n in offer.in_place]
    assert any("rest" in job.candidate.func.name for job in jobs if job.candidate.func)
    _check(jobs, run_llvm(jobs))


def test_the_planner_prefers_them() -> None:
    for op in (*OPERATORS, *OTHERS):
        one = layer(op, 1 if op in OTHERS else 3)
        offers = candidates(one.node, one.graph, CORE)
        best = min(offers, key=lambda offer: offer.cost)
        assert best.func is not None and "mve" in best.func.name


def test_no_layer_is_without_one() -> None:
    """Whatever the rule of rounding, and however far sums reach."""
    for op, rule in itertools.product(OPERATORS, (*ROUNDINGS, "great")):
        one = layer(op, 3)
        if rule == "great":
            bias = np.full_like(one.arrays["x2"], 1 << 27)
            graph = replace(one.graph, constants={**one.graph.constants, "x2": bias})
        else:
            node = one.node.with_attrs(rounding=rule)
            graph = replace(one.graph, nodes=(node,))
        found = [c.func.name for c in candidates(graph.nodes[0], graph, CORE) if c.func]
        assert any("mve" in name for name in found), (op, rule, found)


def test_replaceable_weights_have_kernels_that_know_no_value() -> None:
    one = layer("conv2d", 3)
    graph = replace(one.graph, parameters={"x1": "w"})
    found = [one.func for one in candidates(one.node, graph, CORE)]
    assert found and all(f and f.name.startswith("conv2d_s8_padded") for f in found)


# ---- single operations ----------------------------------------------------------

Made = tuple[Func, dict[str, Array], Array]
_WORD = np.asarray(
    [0, -1, 1, 255, -256, 2**31 - 1, -(2**31), 1 << 22, -(1 << 22), 77, -77, 1 << 30],
    np.int32,
)


def _rows(one: Intrin, *given: Array) -> Made:
    """y[i] = one(x0[i], x1[i], ...) on vectors of words; of a scalar: 3."""
    k = Builder(f"test_{one.name}")
    y = k.row("y", 0, INT32, writable=True)
    rows = [k.row(f"x{i}", i + 1, INT32) for i in range(len(given))]
    count = len(given[0]) if given else 4
    with k.loop("i", k.arg("n", count), 0, 4) as i:
        values = [k.let(f"v{j}", words_at(row, i)) for j, row in enumerate(rows)]
        scalars = [k.arg(p.name, 3) for p in one.params[len(given) :]]
        k.store(y, i, one(*values, *scalars))
    arrays = {f"x{i}": a for i, a in enumerate(given)}
    return k.finish(), arrays, np.zeros(count, np.int32)


def _vectors() -> list[tuple[Made, Array]]:
    """Kernels of one operation each, and what they must make."""
    a, b = _WORD, _WORD[::-1].copy()
    small = (a >> 9).astype(np.int32)
    tiny, wide = small >> 8, a.astype(np.int64)
    found: list[tuple[Made, Array]] = [
        (_rows(vectors.MULHI4, a, b), (wide * b) >> 32),
        (_rows(vectors.SCALE4, small, small[::-1].copy()),
         small * np.int64(256) + small[::-1]),
        (_rows(vectors.CORRECT4, small, small[::-1].copy(), small),
         small + small[::-1] + np.where(small < 0, small, 0)),
        (_rows(vectors.EVEN4, small), small + 3 + (small >> 3 & 1)),
        (_rows(vectors.ADD4, small), small + 3),
        (_rows(vectors.MAX4, a, b), np.maximum(a, b)),
        (_rows(vectors.PLUS4, small, small[::-1].copy()), small + small[::-1]),
        (_rows(vectors.TIMES4, tiny, tiny[::-1].copy()), tiny * tiny[::-1]),
        (_rows(vectors.LINE4, tiny, tiny[::-1].copy()), tiny * tiny[::-1] + 3),
        (_rows(vectors.MORE4, small, small[::-1].copy()), small + small[::-1] * 3),
        (_rows(vectors.ALL4), np.full(4, 3)),
    ]  # fmt: skip
    k = Builder("test_narrow")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT32)
    low, high, shift = k.arg("low", -100), k.arg("high", 90), k.arg("shift", 5)
    with k.loop("i", k.arg("n", len(a)), 0, 4) as i:
        k.store(y, i, vectors.NARROW4(words_at(x, i), shift, low, high))
    made = k.finish(), {"x0": a}, np.zeros(len(a), np.int8)
    found.append((made, np.clip(a >> 5, -100, 90)))
    return [*found, *_bytes()]


def _bytes() -> list[tuple[Made, Array]]:
    chance = np.random.default_rng(5)
    x = chance.integers(-128, 128, 64 + 15).astype(np.int8)
    k = Builder("test_dot")
    y, row = k.row("y", 0, INT32, writable=True), k.row("x0", 1, INT8)
    with k.loop("i", k.arg("n", 48)) as i:  # at every address
        total = k.let("total", i * 1000)
        k.assign(total, vectors.DOT16(total, bytes_at(row, i), bytes_at(row, 15)))
        k.store(y, i, total)
    sums = [i * 1000 + int(x[i : i + 16].astype(int) @ x[15:31]) for i in range(48)]
    dots = (k.finish(), {"x0": x}, np.zeros(48, np.int32)), np.asarray(sums)

    k = Builder("test_dot_halves")
    y, row = k.row("y", 0, INT32, writable=True), k.row("x0", 1, INT16)
    weights, again = k.row("w", 1, INT8), k.row("again", 0, INT32, writable=True)
    with k.loop("i", k.arg("m", 24)) as i:  # at every address
        total = k.let("total", i * 1000)
        values, bytes_ = halves_at(row, i), halves_at(weights, i + 1)
        k.assign(total, vectors.DOT8(total, values, bytes_))
        k.store(y, i, total)
    k.store(again, 24, k.let("four", words_at(row, 1)))
    two = x[:78].view(np.int16).astype(int)
    sums = [i * 1000 + two[i : i + 8] @ x[i + 1 : i + 9].astype(int) for i in range(24)]
    wanted = np.asarray([*sums, *two[1:5]])
    halves = (k.finish(), {"x0": x[:78]}, np.zeros(28, np.int32)), wanted

    k = Builder("test_dot_long")
    y, row = k.row("y", 0, INT32, writable=True), k.row("x0", 1, INT16)
    with k.loop("i", k.arg("m", 24)) as i:  # beyond 32 bits from the third product on
        total = k.let("total", i64(i))
        k.assign(total, vectors.LONG_DOT8(total, halves_at(row, i), halves_at(row, 16)))
        k.store(y, i, i32(total >> const(9, INT64)))
    large = np.where(x[:32] < 0, -32768, 32767 - x[:32].astype(int)).astype(np.int16)
    by = large.astype(np.int64)
    ends = [(i + int(by[i : i + 8] @ by[16:24])) >> 9 for i in range(24)]
    longs = (k.finish(), {"x0": large}, np.zeros(24, np.int32)), np.asarray(ends)

    k = Builder("test_zip")
    y, row = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT8)
    rows = [k.let(f"r{i}", bytes_at(row, 16 * i + 3)) for i in range(4)]
    k.store(y, 0, vectors.ZIP4(*rows))
    zipped = (k.finish(), {"x0": x}, np.zeros(64, np.int8)), x[3:67].reshape(4, 16).T

    k = Builder("test_zip_two")
    y, row = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT8)
    two_rows = [k.let(f"r{i}", bytes_at(row, 21 * i + 3)) for i in range(2)]
    k.store(y, 0, vectors.ZIP2(*two_rows))
    want = np.stack([x[3:19], x[24:40]], 1)
    twos = (k.finish(), {"x0": x}, np.zeros(32, np.int8)), want

    k = Builder("test_gather")
    y, to = k.row("y", 0, INT8, writable=True), k.row("to", 0, INT32, writable=True)
    words = k.row("x0", 1, INT32)
    four = vectors.LANES(*(load(words, i) for i in range(4)))
    k.store(to, 4, k.let("four", four))
    k.store(to, 8, k.let("widened", words_at(k.row("bytes", 1, INT8), 3)))
    k.store(to, 12, k.let("again", words_at(words, 1)))
    offsets = k.let("offsets", vectors.LANES(0, 12, 4, 20))
    k.store(y, 0, gathered_bytes(offset(to, 8), offsets))
    given = chance.integers(-(2**31), 2**31, 8).astype(np.int32)
    widened = given.view(np.int8)[3:7].astype(np.int32)
    all_words = np.concatenate([given[:4], widened, given[1:5]])
    picked = all_words[4:][[0, 3, 1, 5]]
    want = np.concatenate([picked, all_words]).astype(np.int32).view(np.int8)
    gathered = (k.finish(), {"x0": given}, np.zeros(64, np.int8)), want
    others = [_few(x), _halves(x), _table(x), *_ends(x)]
    return [dots, halves, longs, zipped, twos, gathered, *others]


def _few(x: Array) -> tuple[Made, Array]:
    """One to fifteen bytes, the last that there are, and zeros."""
    k = Builder("test_few")
    y, row = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT8)
    with k.loop("i", const(15), 0) as i:
        k.store(y, i * 16, vectors.FIRST16(offset(row, len(x) - 1 - i), i + 1))
    want = np.zeros((15, 16), np.int8)
    for n in range(15):
        want[n, : n + 1] = x[len(x) - 1 - n :]
    return (k.finish(), {"x0": x}, np.zeros(240, np.int8)), want


def _halves(x: Array) -> tuple[Made, Array]:
    """Eight int16 from anywhere, as bytes."""
    k = Builder("test_gather_halves")
    y, to = k.row("y", 0, INT8, writable=True), k.row("to", 0, INT16, writable=True)
    for i in range(0, 32, 8):
        k.store(to, 8 + i, k.let("v", halves_at(k.row("x0", 1, INT16), i)))
    where = (0, 31, 7, 7, 2, 30, 16, k.arg("place", 3))
    places = k.let("places", LANES8(*where))
    k.store(y, 0, gathered_halves(offset(to, 8), places))
    all_halves = x[:64].view(np.int16)
    picked = all_halves[[0, 31, 7, 7, 2, 30, 16, 3]]
    want = np.concatenate([picked, all_halves]).view(np.int8)
    return (k.finish(), {"x0": x[:64]}, np.zeros(80, np.int8)), want


def _ends(x: Array) -> Iterator[tuple[Made, Array]]:
    """The greater and the less of bytes."""
    for one, meaning in ((vectors.MAX16, np.maximum), (vectors.MIN16, np.minimum)):
        k = Builder(f"test_{one.name}")
        y, row = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT8)
        pair = one(bytes_at(row, 1), vectors.ALL16(k.arg("level", 3)))
        k.store(y, 0, one(bytes_at(row, 20), pair))
        want = meaning(meaning(x[1:17], 3), x[20:36])
        yield (k.finish(), {"x0": x}, np.zeros(16, np.int8)), want


def _table(x: Array) -> tuple[Made, Array]:
    """Entries of bytes, the ends among them."""
    k, at = Builder("test_table16"), np.append(x[:14], np.int8([-128, 127]))
    y, row = k.row("y", 0, INT8, writable=True), k.row("x0", 1, INT8)
    k.store(y, 0, vectors.TABLE16(row, bytes_at(k.row("x1", 2, INT8))))
    arrays = {"x0": np.resize(x, 256), "x1": at}
    want = arrays["x0"][at.astype(int) + 128]
    return (k.finish(), arrays, np.zeros(16, np.int8)), want


def _operation_jobs() -> tuple[list[Job], list[Array]]:
    jobs, wanted = [], []
    for (func, arrays, out), want in _vectors():
        rows = [RowAccess("y", 1, out.nbytes, 1, 0)]
        rows += [RowAccess(n, 1, a.nbytes, 1, 0) for n, a in arrays.items()]
        values = {"n": len(out), "m": 24, "low": -100, "high": 90, "shift": 5}
        args = tuple(values.get(arg.name, 3) for arg in func.args)
        made = Candidate(func, args, tuple(rows[:1]), tuple(rows[1:]))
        jobs.append(Job(made, arrays, {"y": out}))
        wanted.append(want.reshape(-1))
    return jobs, wanted


def test_every_operation_by_llvm_and_c(tmp_path: Path) -> None:
    jobs, wanted = _operation_jobs()
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result, want in zip(jobs, results, wanted, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], want, name)


def test_none_is_left_out() -> None:
    named = {v.name for v in vars(vectors).values() if isinstance(v, Intrin)}
    tried = {"crt_mulhi4", "crt_scale4", "crt_correct4", "crt_add4", "crt_narrow4",
             "crt_dot16", "crt_dot8", "crt_zip2", "crt_zip4", "crt_gather4",
             "crt_lanes", "crt_all4", "crt_all16", "crt_max16", "crt_min16", "crt_max4",
             "crt_plus4", "crt_even4", "crt_times4", "crt_line4", "crt_more4",
             "crt_long_dot8", "crt_first16", "crt_table16"}  # fmt: skip
    # int4 weights are tried by tests/kernels/test_int4_kernels.py
    others = {"crt_mulhi", "crt_sum16", "crt_sum8", "crt_high_int4", "crt_low_int4"}
    assert named - others == tried
