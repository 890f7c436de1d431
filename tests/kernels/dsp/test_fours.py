"""Depthwise layers whose four channels lie side by side: every form of window equals
numpy, of int8 and of int16, and what takes less is what is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pybuild.dtype import DType
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import (
    Job,
    must_be_equal,
    named_jobs,
    run_c,
    run_llvm,
)
from tests.kernels.kernel_cases import INT8, Case, weighted_case

INT16 = DType.INT16
M4 = TARGETS["cortex-m4"]
# type, x, weights, stride
LAYERS = (
    (INT8, (1, 7, 5, 8), (3, 3, 8), 2),
    (INT8, (2, 5, 9, 6), (3, 3, 6), 1),
    (INT8, (1, 9, 6, 5), (5, 5, 5), 2),
    (INT8, (1, 4, 4, 4), (7, 7, 4), 1),
    (INT8, (1, 1, 8, 12), (1, 5, 12), 1),
    (INT8, (1, 24, 26, 4), (5, 5, 4), 1),
    (INT16, (1, 7, 5, 8), (3, 3, 8), 2),
    (INT16, (2, 6, 6, 7), (3, 3, 7), 1),
    (INT16, (1, 24, 26, 4), (5, 3, 4), 1),
    (INT16, (1, 4, 21, 12), (1, 5, 12), 1),
    (INT8, (1, 8, 3, 8), (3, 5, 8), 1),
    (INT16, (1, 11, 1, 8), (3, 3, 8), 2),
    # windows of which a good part stands on padding
    (INT8, (1, 3, 3, 6), (3, 3, 6), 1),
    (INT8, (2, 5, 5, 8), (5, 5, 8), 2),
    (INT8, (1, 7, 7, 4), (7, 7, 4), 1),
    (INT8, (1, 12, 3, 4), (5, 5, 4), 1),
    (INT8, (1, 2, 6, 4), (7, 5, 4), 1),
    (INT8, (1, 3, 11, 4), (5, 5, 4), 1),
    (INT8, (1, 7, 24, 4), (5, 5, 4), 1),
    (INT16, (1, 7, 3, 4), (7, 7, 4), 1),
)


def _cases() -> Iterator[Case]:
    for dtype, x, w, stride in LAYERS:
        strides = (stride, stride)
        yield weighted_case("depthwise_conv2d", x, w, dtype, strides=strides)


@cache
def _jobs() -> list[tuple[str, Job]]:
    return named_jobs(_cases(), ("cortex-m4",), ("fours",))


def test_forms() -> None:
    """Each form is among what the next tests run."""
    names = [name for name, _ in _jobs()]
    forms = ("_whole_", "_turned_", "_s16_", "_padded_", "_stride2", "_tail")
    skips = ("_centred", "_inside_", "_less2of3_", "_blocks1_", "_blocks2_")
    for form in (*forms, *skips, "_across_", "once_", "3rest1_", "2rest"):
        assert {form in name for name in names} == {True, False}, form


def test_by_llvm() -> None:
    must_be_equal(_jobs(), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_jobs()), lambda jobs: run_c(jobs, tmp_path))


@pytest.mark.parametrize(
    ("number", "kernel"),
    [(0, "fours_whole_3x3"), (8, "fours_5x3_s16"), (6, "fours_whole_3x3_s16")],
)
def test_the_cheapest(number: int, kernel: str) -> None:
    one = list(_cases())[number]
    offers = candidates(one.node, one.graph, M4)
    best = min(offers, key=lambda offer: price(offer, M4).instructions)
    assert best.func is not None
    assert kernel in best.func.name


def test_the_kernel_for_any_core_is_never_cheapest() -> None:
    """It is offered, for plans with less RAM than any other can have."""
    for one in _cases():
        offers = candidates(one.node, one.graph, M4)
        best = min(offers, key=lambda offer: price(offer, M4).instructions)
        assert best.func is not None
        fast = ("_dsp_", "_block_", "depthwise_rows_")
        assert any(part in best.func.name for part in fast)
