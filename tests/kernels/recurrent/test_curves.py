"""Curves of int16 of an LSTM, in the ways in which kernels have them: all 65,536
numbers, by LLVM and by sanitised C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from pybuild.ir.loop import INT16, INT32, UINT16, Expr, cast, i32, load
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.vector_eights import BETWEEN4
from pybuild.kernels.base.vectors import halves_at, words_at
from pybuild.kernels.math.curves16 import LOGISTIC16, tanh16
from pybuild.kernels.portable.act16 import curve_points
from pybuild.kernels.recurrent.curves_dsp import LOGISTIC_WORDS, tanh_words
from pybuild.kernels.recurrent.curves_mve import LOGISTIC8, tanh8
from pybuild.ops.fixed_point import curves16
from pybuild.ops.int16.act16 import CurveParameters, curve
from pybuild.ops.recurrent import SIGMOID
from tests.kernels.kernel_bench import Job, run_c, run_llvm

X = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
BITS = (0, 2, 3, 4, 6)
_Curve = Callable[[Expr], Expr]


def _job(name: str, by: _Curve, wanted: np.ndarray, lanes: int) -> Job:
    k = Builder(f"test_{name}")
    y, x = k.row("y", 0, INT16, writable=True), k.row("x", 1, INT16)
    with k.loop("i", k.arg("n", len(X)), 0, lanes) as i:
        value = halves_at(x, i) if lanes > 1 else i32(load(x, i))
        made = by(k.let("value", value))
        k.store(y, i, made if lanes > 1 else cast(made, INT16))
    rows = [RowAccess(n, 1, X.nbytes, 1, 0) for n in "yx"]
    one = Candidate(k.finish(), tuple(k.values), tuple(rows[:1]), tuple(rows[1:]))
    return Job(one, {"x": X}, {"y": wanted.astype(np.int16)})


def _by_table(made: CurveParameters) -> Job:
    """Between points, four numbers at a time; d of all numbers is at hand."""
    x = X.astype(np.int64)
    d = (x * made.multiplier + ((1 << made.shift) >> 1)) >> made.shift
    k = Builder("test_between4")
    y, at = k.row("y", 0, INT32, writable=True), k.row("d", 1, INT32)
    points = k.row("points", 2, UINT16)
    with k.loop("i", k.arg("n", len(X)), 0, 4) as i:
        k.store(y, i, BETWEEN4(points, words_at(at, i), made.bits, made.top))
    rows = [RowAccess(n, 1, 4 * len(X), 1, 0) for n in "yd"]
    table = (curve_points(),)
    func = k.finish()
    one = Candidate(func, tuple(k.values), tuple(rows[:1]), tuple(rows[1:]), table)
    wanted = curve(x, made).astype(np.int32)
    return Job(one, {"d": d.astype(np.int32)}, {"y": wanted})


def _jobs() -> list[Job]:
    x, jobs = X.astype(np.int64), []
    for kind, lanes, logistic, tanh in (
        ("plain", 1, LOGISTIC16, tanh16),
        ("words", 1, LOGISTIC_WORDS, tanh_words),
        ("eights", 8, LOGISTIC8, tanh8),
    ):
        wanted = curves16.logistic16(x)
        jobs.append(_job(f"logistic_{kind}", logistic, wanted, lanes))
        for bits in BITS:
            wanted = curves16.tanh16(x, bits)
            jobs.append(_job(f"tanh_{kind}_{bits}", tanh(bits), wanted, lanes))
    tables = (SIGMOID, CurveParameters(3 << 1, 0, 8, 0xFFFF))
    return [*jobs, *map(_by_table, (*tables, CurveParameters(3, 3, 8, 0xFFFF)))]


def test_every_number(tmp_path: Path) -> None:
    jobs = _jobs()
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, made in zip(jobs, results, strict=True):
            assert job.candidate.func is not None
            name = job.candidate.func.name
            np.testing.assert_array_equal(made["y"], job.outputs["y"], name)
