"""Maximum and minimum of int8 and int16 by words and by vectors: each length of a row,
each broadcast, in place, as numpy has it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.loop import FLOAT32, INT8, INT16
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

# of both operands: alike, one element, a row, a column, less than a word, outer and
# inner axes
SHAPES = (
    ((64,), (64,)), ((37,), (37,)), ((5,), (5,)), ((3,), (3,)), ((2, 19), (1,)),
    ((1,), (2, 21)), ((3, 20), (20,)), ((9,), (4, 9)), ((5, 17), (5, 1)),
    ((2, 3), (3,)), ((4, 1, 18), (1, 5, 18)), ((2, 33), (1, 33)),
)  # fmt: skip
CORES = ("cortex-m4", "cortex-m55")


def _case(fn: str, shapes: tuple[tuple[int, ...], ...], dtype: DType) -> Case:
    return case("map", [tensor(shape, dtype) for shape in shapes], fn=fn)


def _jobs() -> list[Job]:
    jobs = []
    kinds = product(("maximum", "minimum"), SHAPES, (INT8, INT16))
    for number, (fn, shapes, dtype) in enumerate(kinds):
        one = _case(fn, shapes, dtype)
        for core in CORES:
            plain, *more = candidates(one.node, one.graph, TARGETS[core])
            made = {"y": one.expected()}
            for offer in more:
                jobs += [Job(offer, one.arrays, made, n)
                         for n in (None, *offer.in_place)]  # fmt: skip
            if number % 4 == 0:
                jobs.append(Job(plain, one.arrays, made))
    return jobs


def test_as_numpy_by_llvm_and_in_c(tmp_path: Path) -> None:
    jobs = _jobs()
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    kinds = {name.split("_")[2] for name in names}
    assert {"mve16", "mve8", "mve4", "dsp16", "dsp8", "dsp4", "dsp2"} <= kinds
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = f"{job.candidate.func and job.candidate.func.name} {job.in_place}"
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize(("core", "most"), [("cortex-m4", 0.3), ("cortex-m55", 0.15)])
def test_it_takes_a_share_of_one_by_one(core: str, most: float) -> None:
    one = _case("minimum", ((500,), (500,)), INT8)
    plain, quick = (
        price(offer, TARGETS[core]).instructions
        for offer in candidates(one.node, one.graph, TARGETS[core])
    )
    assert quick <= most * plain


def test_others_are_compared_one_by_one() -> None:
    for core, dtype in (("cortex-m3", INT8), ("cortex-m55", FLOAT32)):
        one = _case("maximum", ((40,), (40,)), dtype)
        assert len(candidates(one.node, one.graph, TARGETS[core])) == 1
