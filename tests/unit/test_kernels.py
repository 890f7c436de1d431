"""Each kernel alone against the numpy meaning of its operator, both printers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.table import candidates
from tests.unit.kernel_bench import Job, run_c, run_llvm
from tests.unit.kernel_cases import Case, float_cases, int8_cases

# float32: of the largest value that the operator made, and of each value
RANGE, EACH = 1e-6, 3e-6


@cache
def _exact() -> tuple[Case, ...]:
    return tuple(int8_cases())


@cache
def _floats() -> tuple[Case, ...]:
    return tuple(float_cases())


def _jobs(cases: Sequence[Case], optimise: str) -> list[tuple[Case, Job]]:
    """Every candidate of every case, also in place of each input it may take."""
    jobs = []
    for case in cases:
        for offer in candidates(case.node, case.graph, optimise=optimise):
            made = {"y": case.expected()}
            jobs.append((case, Job(offer, case.arrays, made)))
            computed = [n for n in case.node.inputs if n not in case.graph.constants]
            for position in offer.in_place:
                if case.node.inputs[position] not in computed:
                    continue
                taken = computed.index(case.node.inputs[position])
                jobs.append((case, Job(offer, case.arrays, made, taken)))
    return jobs


def _same(case: Case, got: Array) -> bool:
    want = case.expected()
    if want.dtype != np.float32:
        return np.array_equal(got, want)
    room = RANGE * float(np.abs(want).max(initial=0)) + EACH * np.abs(want)
    return bool((np.abs(got - want) <= room).all())


def _check(
    jobs: Sequence[tuple[Case, Job]], results: Sequence[dict[str, Array]]
) -> None:
    wrong = [
        f"{job.candidate.func.name}: {case.graph.dump()}"
        for (case, job), result in zip(jobs, results, strict=True)
        if not _same(case, result["y"])
    ]
    assert not wrong, f"{len(wrong)} of {len(jobs)} differ, the first:\n{wrong[0]}"


@pytest.mark.parametrize("kind", ["int8", "float"])
@pytest.mark.parametrize("optimise", ["balanced", "speed"])
def test_llvm_equals_numpy(kind: str, optimise: str) -> None:
    jobs = _jobs(_exact() if kind == "int8" else _floats(), optimise)
    if optimise == "speed":
        jobs = jobs[::7]
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("kind", ["int8", "float"])
def test_c_equals_numpy(kind: str, compiler: str, tmp_path: Path) -> None:
    jobs = _jobs(_exact() if kind == "int8" else _floats(), "balanced")
    results = run_c([job for _, job in jobs], tmp_path, compiler)
    _check(jobs, results)
    if kind == "float":
        twins = run_llvm([job for _, job in jobs])
        for (_, job), c, llvm in zip(jobs, results, twins, strict=True):
            assert c["y"].tobytes() == llvm["y"].tobytes(), job.candidate.func.name
