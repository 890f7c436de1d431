"""Kernels of 1x1 layers that make a row over the row they are made of: on cores that
multiply one by one, and on vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.loop_verify import with_distinct_parts
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, weighted_case

CORES = ("cortex-m0", "cortex-m3", "rv32imc", "cortex-m55")
# columns, channels in and out
SIZES = ((5, 64, 64), (1, 16, 16), (4, 20, 20), (7, 12, 12), (6, 9, 9), (3, 33, 33))


def _case(width: int, inputs: int, outputs: int, height: int = 3) -> Case:
    shape = (1, height, width, inputs)
    return weighted_case("conv2d", shape, (outputs, 1, 1, inputs))


def _by_rows(one: Case, core: str, optimise: str = "balanced") -> list[Candidate]:
    """Of a core's own, not those that any core has."""
    return [
        offer
        for offer in candidates(one.node, one.graph, TARGETS[core], optimise)
        if offer.in_place and offer.func and "_s8_" not in offer.func.name
    ]


def _jobs() -> list[Job]:
    jobs = []
    for core in CORES:
        for size in SIZES:
            one = _case(*size)
            for offer in _by_rows(one, core):
                made = {"y": one.expected()}
                jobs += [Job(offer, one.arrays, made, at) for at in (None, 0)]
    return jobs


def _check(jobs: list[Job], results: list[dict[str, np.ndarray]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        func = job.candidate.func
        name = f"{func.name if func else ''}, in place: {job.in_place}"
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


def test_rows_are_written_over_by_llvm() -> None:
    jobs = _jobs()
    names = " ".join(job.candidate.func.name for job in jobs if job.candidate.func)
    scalar = ("_ahead_", "_row_fours", "_unsigned_", "2_pointwise_row_rest1",
              "4_pointwise_row_rest1")  # fmt: skip
    for form in (*scalar, "mve_row_vectors", "mve_over_rest"):
        assert form in names, form
    _check(jobs, run_llvm(jobs))


def test_rows_are_written_over_in_c(tmp_path: Path) -> None:
    jobs = _jobs()
    _check(jobs, run_c(jobs, tmp_path))


@pytest.mark.parametrize("core", CORES)
def test_all_kernels_of_a_core_fit_into_one_file(core: str) -> None:
    """Functions of one name are the same, whether a row or all pixels call them."""
    cases = [_case(*size) for size in SIZES]
    target = TARGETS[core]
    offers = [o for one in cases for o in candidates(one.node, one.graph, target)]
    funcs = {offer.func: None for offer in offers if offer.func}
    assert len(funcs) > len(SIZES)
    assert with_distinct_parts(funcs) == tuple(funcs)


@pytest.mark.parametrize("core", CORES)
def test_a_row_is_not_much_dearer_than_all_pixels_at_once(core: str) -> None:
    one = _case(5, 64, 64, 25)
    offers = candidates(one.node, one.graph, TARGETS[core])
    best = min(offers, key=lambda offer: offer.cost)
    rows = min(_by_rows(one, core), key=lambda offer: offer.cost)
    assert rows.bands == 25
    most = 1.25 if core == "cortex-m55" else 1.05
    assert rows.cost <= most * best.cost


@pytest.mark.parametrize("core", (*CORES, "cortex-m4"))
def test_a_row_that_steps_over_others_is_not_written_over(core: str) -> None:
    """A result twice as long would lie on what is still to be read."""
    shape, weights = (1, 8, 6, 16), (32, 1, 1, 16)
    one = weighted_case("conv2d", shape, weights, strides=(2, 1))
    assert not _by_rows(one, core)
    assert not _by_rows(one, core, "size")


def test_windows_of_few_pixels_take_less_scratch() -> None:
    """What registers hold of sums needs much where a window has many taps."""
    one = weighted_case("conv2d", (1, 8, 8, 64), (16, 3, 3, 64))
    offers = candidates(one.node, one.graph, TARGETS["rv32imc"])
    sizes = {o.func.name[:15]: o.scratch for o in offers if o.func and o.scratch}
    assert sizes == {"conv2d_block4x4": 2304, "conv2d_block4x2": 1152}


@pytest.mark.parametrize("core", ["cortex-m3", "rv32imc"])
@pytest.mark.parametrize("width", [1, 5])
def test_depthwise_rows_are_no_dearer_than_an_image(core: str, width: int) -> None:
    """Where they are one block of pixels: nothing is copied."""
    one = weighted_case("depthwise_conv2d", (1, 13, width, 64), (3, 3, 64))
    target = TARGETS[core]
    offers = [o for o in candidates(one.node, one.graph, target) if not o.finish]
    images = [price(o, target).instructions for o in offers if o.bands == 1]
    rows = [price(o, target).instructions for o in offers if o.bands > 1]
    assert min(rows) <= min(images)
