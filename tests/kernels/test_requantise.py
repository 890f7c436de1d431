"""The rounding rules as Loop IR, both printers, against ops/quant over all edges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.loop import INT32, load
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.epilogues.requantise import RULES, requant
from pybuild.ops.fixed_point.quant import requantize
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.toolchains import require

N = 512


def job(rule: str, shift: int) -> tuple[Job, np.ndarray]:
    """One kernel that requantises N accumulators, and what it must give."""
    chance = np.random.default_rng(abs(shift))
    multiplier = int(chance.integers(1 << 30, 1 << 31))
    ties = (np.arange(-40, 40) * 2 + 1) << max(0, min(20, -shift - 1))
    edges = [0, 1, -1, 2, -2, 127, -128, 2**29, -(2**29), *ties.tolist()]
    rest = chance.integers(-(2**26), 2**26, N - len(edges))
    acc = np.concatenate([edges, rest]).astype(np.int32)
    made = requant(rule, (multiplier,), (shift,), (-128, 127), 0)
    k = Builder(f"requant_{rule}")
    y = k.row("y", 0, INT32, writable=True)
    x = k.row("x", 1, INT32)
    factor = k.arg("multiplier", made.multipliers[0])
    right = k.arg("shift", made.shifts[0])
    with k.loop("i", k.arg("n", N)) as i:
        k.store(y, i, RULES[rule](load(x, i), factor, right))
    rows = (RowAccess("y", 1, 4 * N, 1, 0), RowAccess("x", 1, 4 * N, 1, 0))
    candidate = Candidate(k.finish(), tuple(k.values), rows[:1], rows[1:])
    made_job = Job(candidate, {"x": acc}, {"y": np.zeros(N, np.int32)})
    return made_job, requantize(acc, multiplier, shift, rule)


def power_of_two(rule: str) -> tuple[Job, np.ndarray]:
    """The multiplier 2^30, with which ties are common."""
    acc = np.arange(-N // 2, N // 2).astype(np.int32)
    made, _ = job(rule, -3)
    candidate = made.candidate
    right = requant(rule, (1 << 30,), (-3,), (-128, 127), 0).shifts[0]
    args = (1 << 30, right, N)
    changed = Candidate(candidate.func, args, candidate.outputs, candidate.inputs)
    return (
        Job(changed, {"x": acc}, {"y": np.zeros(N, np.int32)}),
        requantize(acc, 1 << 30, -3, rule),
    )


JOBS = [
    *(job(rule, -s) for rule in RULES for s in (0, 1, 2, 5, 8, 14, 22, 30)),
    *(power_of_two(rule) for rule in RULES),
]


def same(results: list[dict[str, np.ndarray]]) -> None:
    for (_, wanted), found in zip(JOBS, results, strict=True):
        np.testing.assert_array_equal(found["y"], wanted)


def test_llvm() -> None:
    same(run_llvm([made for made, _ in JOBS]))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c(tmp_path: Path, compiler: str) -> None:
    require(compiler)
    same(run_c([made for made, _ in JOBS], tmp_path, compiler))


def test_the_sums_are_int32() -> None:
    assert all(made.arrays["x"].dtype == DType.INT32.numpy for made, _ in JOBS)
