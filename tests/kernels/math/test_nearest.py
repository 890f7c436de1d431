"""Rounding of real numbers to integers that are real numbers, ties to even, up to where
all numbers are integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.ir.loop import FLOAT32, FLOAT64, load
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.math.floats import nearest_even
from tests.kernels.kernel_bench import Job, run_c, run_llvm


def _job(dtype: DType) -> Job:
    digits = 23 if dtype is FLOAT32 else 52
    powers = 2.0 ** np.arange(-3, digits + 2)[:, None]
    near = np.asarray([0.0, 0.25, 0.5, 1.0, 1.5, 2.5])
    numbers = np.concatenate([(powers - near).ravel(), (powers + near).ravel()])
    more = [np.inf, 1e30, 0.49999997]
    x: Array = np.concatenate([numbers, more]).astype(dtype.numpy)
    x = np.concatenate([x, -x])
    k = Builder("test_nearest")
    y, given = k.row("y", 0, dtype, writable=True), k.row("x", 1, dtype)
    with k.loop("i", k.arg("n", len(x))) as i:
        k.store(y, i, nearest_even(dtype)(load(given, i)))
    rows = [RowAccess(n, 1, x.nbytes, 1, 0) for n in ("y", "x")]
    made = Candidate(k.finish(), (len(x),), tuple(rows[:1]), tuple(rows[1:]))
    return Job(made, {"x": x}, {"y": np.rint(x)})


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=lambda dtype: dtype.value)
def test_nearest(dtype: DType, tmp_path: Path) -> None:
    job = _job(dtype)
    for (made,) in (run_llvm([job]), run_c([job], tmp_path)):
        np.testing.assert_array_equal(made["y"], job.outputs["y"])
