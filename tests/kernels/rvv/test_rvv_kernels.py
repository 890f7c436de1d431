"""Kernels on RISC-V's vectors: random layers against the numpy meaning of their
operators, by LLVM and by C of this machine, where a vector is a loop over lanes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from tests.kernels import test_int16
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor
from tests.kernels.rvv.rvv_cases import halves, others
from tests.kernels.rvv.rvv_jobs import CORE, check, jobs_of, wide_layer
from tests.kernels.vector_layers import PLAIN, layer

WEIGHTED = ("conv2d", "depthwise_conv2d", "dense")


def _layers(seeds: range) -> list[Case]:
    plain = [layer(op, seed) for op in PLAIN for seed in seeds[::2]]
    return [*(layer(op, seed) for op in WEIGHTED for seed in seeds), *plain]


def _grouped(seeds: range) -> list[Case]:
    return [layer("grouped", seed) for seed in seeds]


def test_llvm_equals_numpy() -> None:
    more = [*halves((0, 12)), *others(range(3))]
    jobs = jobs_of([*_layers(range(7)), *map(wide_layer, range(5)), *more])
    assert len(jobs) >= 70
    check(jobs, run_llvm(jobs))


@SOME
def test_c_equals_numpy(some: Some, tmp_path: Path) -> None:
    more = [*halves(range(18)), *others(range(6, 12)), *_grouped(range(6))]
    layers = [*_layers(range(20, 29)), *map(wide_layer, range(5, 9)), *more]
    jobs = some(jobs_of(layers))
    check(jobs, run_c(jobs, tmp_path))


def test_sums_of_int16_beyond_32_bits_have_no_kernel() -> None:
    """Whether the bias or the weights may bring them there."""
    for number, kind in ((10, "loud"), (0, "far")):
        assert jobs_of([test_int16.layer(number, "wide", "")])
        assert not jobs_of([test_int16.layer(number, "wide", kind)])


def test_tables_of_bytes() -> None:
    """More elements than a vector has lanes, fewer, and as many."""
    shapes = [(1, 5, 7, channels) for channels in (1, 3, 16)]
    end = (INT8, 1 / 256, -128)
    cases = [
        case("logistic", (tensor(shape, INT8, 0.05, 3),), tensor(shape, *end))
        for shape in shapes
    ]
    jobs = jobs_of(cases)
    assert len(jobs) == len(shapes)
    check(jobs, run_llvm(jobs))


def test_rows_are_written_over_what_was_read() -> None:
    """A layer that makes a row from a row, in one place."""
    one = wide_layer(0)
    found = candidates(one.node, one.graph, CORE)
    (over,) = [o for o in found if o.func and "rvv" in o.func.name and o.in_place]
    job = Job(over, one.arrays, {"y": one.expected()})
    check([job], run_llvm([job]))


@pytest.mark.sweep
def test_many_more_layers() -> None:
    more = [*halves(range(18)), *others(range(100, 200)), *_grouped(range(100, 160))]
    layers = [*_layers(range(100, 300)), *map(wide_layer, range(100, 160)), *more]
    jobs = jobs_of(layers)
    check(jobs, run_llvm(jobs))


def _depthwise(values: tuple[int, ...], x: int) -> Case:
    """3x3 windows of one channel each, whose neighbouring weights are the values."""
    weights = np.resize(np.asarray(values, np.int8), (3, 3, 16))
    weights[:] = np.resize(np.asarray(values, np.int8), 9).reshape(3, 3, 1)
    inputs = (tensor((1, 5, 5, 16), INT8, 0.05, 0),
              (weights.shape, INT8, Quant((0.01,) * 16, (0,) * 16, 2)),
              tensor((16,), INT32))  # fmt: skip
    one = case("depthwise_conv2d", inputs, tensor((), INT8, 20.0, 0),
               {1: weights, 2: np.zeros(16, np.int32)}, rounding="double",
               clamp=(None, None), strides=(1, 1), pads=(1, 1, 1, 1))  # fmt: skip
    one.arrays["x0"][:] = x
    return one


def test_two_products_are_added_as_halves_where_they_fit() -> None:
    """Of two least weights and the least input the sum is 2^15: then each is added to
    the words by itself."""
    cases = [
        _depthwise(values, x)
        for values, x in itertools.product(((-128, -127), (-128, -128)), (-128, 127))
    ]
    jobs = jobs_of(cases)
    paired = ["pairs" in job.candidate.func.name for job in jobs if job.candidate.func]
    assert paired == [True, True, False, False]
    check(jobs, run_llvm(jobs))


def test_sums_of_the_greatest_reach_end_by_the_rule() -> None:
    """Beyond what the cheap end is proven for, on both sides of zero."""
    jobs: list[Job] = []
    for sign, rule in itertools.product((1, -1), ("double", "single", "away")):
        weights = np.full((20, 40_000), 127 * sign, np.int8)
        inputs = (tensor((1, 40_000), INT8, 0.05, 0),
                  (weights.shape, INT8, Quant((0.01,) * 20, (0,) * 20, 0)),
                  tensor((20,), INT32))  # fmt: skip
        bias = np.arange(-10, 10, dtype=np.int32) * 1_000_003
        one = case("dense", inputs, tensor((), INT8, 3e3, 0), {1: weights, 2: bias},
                   rounding=rule, clamp=(None, None))  # fmt: skip
        one.arrays["x0"][:] = 127
        jobs += jobs_of([one])
    assert len(jobs) == 6
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    assert all("exact" in name for name in names)
    check(jobs, run_llvm(jobs))


def test_weights_of_4_bits_keep_the_kernels_on_vectors() -> None:
    """Packed two in a byte they would be multiplied one by one."""
    chance = np.random.default_rng(1)
    weights = chance.integers(-8, 8, (64, 200)).astype(np.int8)
    quant = Quant((0.01,) * 64, (0,) * 64, 0)
    inputs = tensor((1, 200)), (weights.shape, INT8, quant), tensor((64,), INT32)
    one = case("dense", inputs, tensor((), INT8, 0.3, 0),
               {1: weights, 2: np.zeros(64, np.int32)}, rounding="double",
               clamp=(None, None))  # fmt: skip
    found = candidates(one.node, one.graph, CORE)
    assert any("rvv" in offer.func.name for offer in found if offer.func)
    packed = candidates(one.node, one.graph, CORE, "size")
    assert any("int4" in offer.func.name for offer in packed if offer.func)
