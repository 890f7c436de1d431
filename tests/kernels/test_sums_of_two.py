"""add and sub by two multiplications, and add, sub and mul by their own rule, where no
cheaper form is proven: every pair of int8, and int16 to its ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.kernels.dsp import eltwise as dsp
from pybuild.kernels.epilogues.affine_add import affine_add
from pybuild.kernels.mve import eltwise as mve
from pybuild.kernels.operators import eltwise as operators
from pybuild.kernels.table import candidates
from pybuild.ops.eltwise import add, add_parameters
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

INT8, INT16 = DType.INT8, DType.INT16
# of a, b and the output: alike, apart by up to 2^9, and coarse or fine outputs
SCALES = ((0.05, 0.05, 0.07), (0.031, 0.05, 0.08), (0.07, 0.0002, 0.05),
          (0.0021, 0.043, 0.3), (0.05, 0.0311, 0.004))  # fmt: skip
SIDE = 256


def _ends(dtype: DType) -> tuple[Array, Array]:
    """Every pair of int8; of int16 those at the ends, and others."""
    if dtype is INT8:
        x = np.arange(-128, 128, dtype=np.int8)
        return np.repeat(x, SIDE).reshape(SIDE, SIDE), np.tile(x, (SIDE, 1))
    chance = np.random.default_rng(4)
    few = [-32768, -32767, -1, 0, 1, 32766, 32767, 12345]
    a, b = chance.integers(-32768, 32768, (2, 97, 37)).astype(np.int16)
    pairs = np.asarray([*itertools.product(few, few)], np.int16)
    a.reshape(-1)[:64], b.reshape(-1)[:64] = pairs[:, 0], pairs[:, 1]
    return a, b


def _cases(dtype: DType) -> Iterator[Case]:
    a, b = _ends(dtype)
    unit = 1 if dtype is INT8 else 1 / 256
    zeros = (3, -77, 11) if dtype is INT8 else (0, 0, 0)
    rules = ("double", "single") if dtype is INT8 else ("double",)
    ends = ((None, None), (0.0, None), (-1.0, 1.0))
    ops = ("add", "sub", "mul", *(["prelu"] if dtype is INT8 else []))
    for op, rule in itertools.product(ops, rules):
        for index, scales in enumerate(SCALES):
            left, right, out = (s * unit for s in scales)
            clamp: dict[str, Any] = {"clamp": ends[index % 3]}
            if op == "mul":
                out = left * right * (70 if index % 2 else 1 / 1.7) / unit
            if op == "prelu":
                out, clamp = left * (0.3, 1, 1.9)[index % 3], {}
            inputs = (
                tensor(a.shape, dtype, left, zeros[0]),
                tensor(b.shape, dtype, right, zeros[1]),
            )
            made = case(op, inputs, tensor((), dtype, out, zeros[2]), rounding=rule,
                        **clamp)  # fmt: skip
            yield Case(made.node, made.graph, {"x0": a, "x1": b})
            # an operand that stays along a row
            for some in ((a[5:6, 7:8], b), (a, b[:1])) if index < 2 else ():
                shapes = [
                    tensor(x.shape, dtype, s, z)
                    for x, s, z in zip(some, (left, right), zeros, strict=False)
                ]
                one = case(op, shapes, tensor((), dtype, out, zeros[2]),
                           rounding=rule, **clamp)  # fmt: skip
                arrays = dict(zip(("x0", "x1"), some, strict=True))
                yield Case(one.node, one.graph, arrays)


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """No layer has a proven form."""
    for room in (dsp, mve, operators):
        monkeypatch.setattr(room, "affine_add", lambda made: None)
    for room in (dsp, mve):
        monkeypatch.setattr(room, "of_products", lambda made: None)


def _jobs(dtype: DType, core: str) -> list[Job]:
    jobs = []
    for one in _cases(dtype):
        found = [
            offer
            for offer in candidates(one.node, one.graph, TARGETS[core])
            if offer.func is not None and "_exact_" in offer.func.name
        ]
        # a core with DSP instructions has none of products of int8
        bytes_of = core == "cortex-m4" and one.node.op == "mul" and dtype is INT8
        assert found or bytes_of, one.node
        jobs += [Job(offer, one.arrays, {"y": one.expected()}) for offer in found]
    return jobs


def _check(jobs: list[Job], results: list[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        assert job.candidate.func is not None
        name = job.candidate.func.name
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.usefixtures("unproven")
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("dtype", [INT8, INT16], ids=["INT8", "INT16"])
@SOME
def test_equals_numpy(some: Some, dtype: DType, core: str, tmp_path: Path) -> None:
    jobs = _jobs(dtype, core)
    _check(jobs, run_llvm(jobs))
    jobs = some(jobs)
    _check(jobs, run_c(jobs, tmp_path))


@pytest.mark.usefixtures("unproven")
@pytest.mark.sweep
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_clang_equals_numpy(core: str, tmp_path: Path) -> None:
    jobs = [*_jobs(INT8, core), *_jobs(INT16, core)]
    _check(jobs, run_c(jobs, tmp_path, "clang"))


@pytest.mark.usefixtures("unproven")
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_no_sum_is_without_a_fast_kernel(core: str) -> None:
    """Of scales as converters give them, whatever they are."""
    word = {"cortex-m4": "_dsp_", "cortex-m55": "_mve_"}[core]
    chance = np.random.default_rng(8)
    for number in range(40):
        dtype, rule = (INT8, INT16)[number % 2], ("double", "single")[number // 2 % 2]
        left, right = 10.0 ** chance.uniform(-4, 0, 2)
        out = (left + right) * chance.uniform(0.1, 1.1)
        inputs = (tensor((5, 9), dtype, left), tensor((5, 9), dtype, right))
        one = case("add", inputs, tensor((), dtype, out), rounding=rule)
        target = TARGETS[core]
        offers = candidates(one.node, one.graph, target)
        best = min(offers, key=lambda offer: price(offer, target).instructions)
        assert best.func is not None and word in best.func.name, (left, right, out)


ALIKE = ((0.05, 0.05, 0.07), (0.03, 0.05, 0.08), (0.07, 0.002, 0.05), (1.0, 1.0, 1.0))
# where values of the inputs meet in the middle of two outputs
TIED = ((1.0, 1.0, 2.0), (1.0, 0.5, 1.0), (1.0, 0.25, 2.0), (1.0, 2.0**-4, 1.0),
        (0.7, 0.31, 0.7))  # fmt: skip


@pytest.mark.parametrize("rule", ["double", "single", "away", "even"])
@pytest.mark.parametrize("op", ["add", "sub"])
def test_every_pair(op: str, rule: str) -> None:
    found = 0
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    for index, (left, right, out) in enumerate((*ALIKE, *TIED)):
        inputs = (tensor(a.shape, scale=left, zero=3), tensor(b.shape, scale=right))
        clamp = ((None, None), (0.0, 2.0))[index % 2]
        made = case(op, inputs, tensor((), scale=out, zero=7), rounding=rule,
                    clamp=clamp)  # fmt: skip
        params = add_parameters(made.node, made.graph)
        form = affine_add(params)
        if form is None:
            continue
        found += 1
        total = a * form.a_factor + b * form.b_factor + form.offset
        if form.base is not None:
            total += (1 << form.shift - 1) - 1 + (total >> form.shift & 1)
        assert np.abs(total).max() < 1 << 31
        y = np.clip((total >> form.shift) + (form.base or 0), params.low, params.high)
        values = [a.astype(np.int8), b.astype(np.int8)]
        (want,) = add(made.node, made.graph, values)
        np.testing.assert_array_equal(y, want)
    # 0.7, 0.31: multipliers that are rounded one by one decide where ties go
    assert found >= len(ALIKE) + len(TIED) - 2
