"""float32 kernels that sum blocks: the same bits as the plain kernel of their layer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, Case, case, tensor

FLOATING = ("generic", "host", "cortex-m4")
# x, kernel, output channels, strides, dilations, pads
CONVOLUTIONS = (
    ((1, 5, 7, 8), (1, 1), 8, (1, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 4, 9, 6), (1, 1), 19, (2, 2), (1, 1), (0, 0, 0, 0)),
    ((1, 6, 11, 3), (3, 3), 10, (2, 2), (1, 1), (0, 0, 1, 1)),
    ((1, 7, 8, 4), (3, 3), 16, (1, 1), (1, 1), (1, 1, 1, 1)),
    ((1, 8, 10, 1), (5, 4), 9, (2, 2), (1, 1), (2, 1, 1, 1)),
    ((2, 5, 6, 5), (2, 3), 4, (1, 1), (1, 1), (0, 0, 0, 0)),
    ((1, 9, 12, 2), (3, 3), 17, (1, 2), (2, 3), (2, 3, 2, 3)),
    ((1, 9, 17, 3), (3, 3), 5, (1, 1), (1, 2), (0, 0, 0, 0)),
)


def _convolutions() -> Iterator[Case]:
    for index, (x, kernel, outs, strides, dilations, pads) in enumerate(CONVOLUTIONS):
        shapes = (x, (outs, *kernel, x[3]), (outs,))[: 2 + index % 2]
        fixed = {position: None for position in range(1, len(shapes))}
        clamp = ((None, None), (0.0, None), (-9.0, 9.0))[index % 3]
        inputs = [tensor(shape, FLOAT32) for shape in shapes]
        attrs = {"strides": strides, "dilations": dilations, "pads": pads}
        yield case("conv2d", inputs, None, fixed, **attrs, clamp=clamp)


def _dense() -> Iterator[Case]:
    for batch, taps, outs in ((1, 33, 21), (3, 16, 8), (7, 10, 4)):
        inputs = (tensor((batch, taps), FLOAT32), tensor((outs, taps), FLOAT32))
        yield case("dense", inputs, None, {1: None}, clamp=(0.0, None))


def _job(one: Case, offer: Candidate) -> Job:
    return Job(offer, one.arrays, {"y": one.expected()})


@cache
def _jobs() -> tuple[list[Job], list[Array]]:
    """One of each kernel, and what the plain kernel of its layer makes."""
    jobs: dict[str, Job] = {}
    plain: list[Job] = []  # of each
    for one in (*_convolutions(), *_dense()):
        for target in FLOATING:
            first, *more = candidates(one.node, one.graph, TARGETS[target])
            for offer in more:
                assert offer.func is not None
                name = offer.func.name
                if "f32_block" in name and name not in jobs:
                    jobs[name] = _job(one, offer)
                    plain.append(_job(one, first))
    assert len(jobs) > 25
    return list(jobs.values()), [made["y"] for made in run_llvm(plain)]


def _check(results: list[dict[str, Array]], every: int = 1) -> None:
    jobs, wanted = (found[::every] for found in _jobs())
    wrong = [
        job.candidate.func.name
        for job, result, want in zip(jobs, results, wanted, strict=True)
        if not np.array_equal(result["y"], want)
    ]
    assert not wrong, f"{len(wrong)} of {len(jobs)} differ: {wrong}"


def test_llvm_equals_plain_kernels() -> None:
    _check(run_llvm(_jobs()[0]))


def test_plain_kernels_are_right() -> None:
    jobs, wanted = _jobs()
    for job, got in zip(jobs, wanted, strict=True):
        want = job.outputs["y"]
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize(
    ("compiler", "every"),
    [
        ("gcc", 4),
        pytest.param("gcc", 1, marks=pytest.mark.sweep),
        pytest.param("clang", 1, marks=pytest.mark.sweep),
    ],
)
def test_c_equals_plain_kernels(compiler: str, every: int, tmp_path: Path) -> None:
    _check(run_c(_jobs()[0][::every], tmp_path, compiler), every)
