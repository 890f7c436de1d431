"""softmax of int16 by each core's kernel: scales that lift, keep and shorten what is
between two elements, short and long lines, any axis, in place, as numpy has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.ir.loop import INT16
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

CORES = ("cortex-m0", "cortex-m4", "cortex-m55")
# steps of the table are 10 / 65535
SCALES = (2.0**-12, 0.00031, 0.05, 2.0, 1e-4, 3e-6, 1e-9)
SHAPES = (((3, 50), 1), ((2, 7), 1), ((5, 1), 1), ((2, 2), 1), ((3, 4, 5), 1),
          ((2, 19), 1), ((2, 8), 1), ((1, 16), 1), ((2, 4), 1))  # fmt: skip


def _case(shape: tuple[int, ...], axis: int, scale: float) -> Case:
    out = (), INT16, Quant((2.0**-15,), (0,))
    return case("softmax", (tensor(shape, INT16, scale),), out, axis=axis, beta=1.0)


def _cases() -> Iterator[Case]:
    for shape, axis in SHAPES:
        for scale in SCALES if shape == SHAPES[0][0] else SCALES[:2]:
            one = _case(shape, axis, scale)
            x = one.arrays["x0"]
            ends = np.where(x < -20000, -32768, 32767).astype(np.int16)
            for values in (x, x // 64, ends, np.full_like(x, -32768)):
                yield replace(one, arrays={"x0": values})


@pytest.mark.parametrize("way", ["llvm", "c"])
def test_as_numpy(way: str, tmp_path: Path) -> None:
    jobs = []
    for one in _cases():
        want = {"y": one.expected()}
        for core in CORES:
            for offer in candidates(one.node, one.graph, TARGETS[core]):
                jobs += [Job(offer, one.arrays, want, at) for at in (None, 0)]
    names = " ".join({job.candidate.func.name for job in jobs if job.candidate.func})
    for word in ("dsp", "words", "odd", "mve_lifted", "up", "mve_double", "few", "past",
                 "rest", "strided"):  # fmt: skip
        assert word in names, word
    results = run_llvm(jobs) if way == "llvm" else run_c(jobs, tmp_path)
    for job, result in zip(jobs, results, strict=True):
        name = job.candidate.func.name if job.candidate.func else ""
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize(("core", "most"), [("cortex-m4", 0.7), ("cortex-m55", 0.4)])
def test_it_takes_a_share_of_any_cores(core: str, most: float) -> None:
    one = _case((50, 50), 1, SCALES[1])
    plain, quick = (
        price(o, TARGETS[core]).instructions
        for o in candidates(one.node, one.graph, TARGETS[core])
    )
    assert quick <= most * plain
