"""3 x 3 convolutions by products of transformed tiles: exact, and proven to fit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.dsp import winograd
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

M4 = TARGETS["cortex-m4"]
# B^T and A^T of F(2 x 2, 3 x 3)
INPUTS = np.asarray([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
OUTPUTS = np.asarray([[1, 1, 1, 0], [0, 1, -1, -1]])
# x, output channels, pads, input zero point, clamp, weights
LAYERS = (
    ((1, 8, 8, 16), 16, (1, 1, 1, 1), 0, (None, None), 127),
    ((1, 7, 9, 8), 5, (1, 1, 1, 1), -7, (0.0, None), 127),
    ((1, 4, 6, 4), 4, (0, 0, 0, 0), -128, (None, None), 127),
    ((2, 6, 7, 12), 7, (2, 0, 1, 2), 5, (0.0, 6.0), 100),
    ((1, 3, 6, 20), 11, (0, 1, 1, 0), 127, (None, None), 60),
    ((1, 1, 3, 64), 8, (2, 2, 2, 2), 9, (-1.0, None), 12),
)


def layer(index: int, most: int | None = None) -> Case:
    shape, outputs, pads, zero, clamp, largest = LAYERS[index]
    chance = np.random.default_rng(index)
    top = largest if most is None else most
    weights = chance.integers(-top - 1, top + 1, (outputs, 3, 3, shape[3]), np.int8)
    bias = chance.integers(-9000, 9000, outputs, np.int32)
    return case(
        "conv2d",
        (tensor(shape, scale=0.05, zero=zero), tensor(weights.shape, scale=0.013),
         ((outputs,), DType.INT32, None)),
        tensor((), scale=0.31 + index / 10, zero=4 * index - 3),
        {1: weights, 2: bias}, strides=(1, 1), dilations=(1, 1), pads=pads,
        rounding=("double", "single", "away")[index % 3], clamp=clamp,
    )  # fmt: skip


def offered(one: Case, optimise: str = "speed") -> list[Candidate]:
    found = candidates(one.node, one.graph, M4, optimise)
    return [c for c in found if c.func and "winograd" in c.func.name]


@cache
def _jobs() -> tuple[Job, ...]:
    """Of each layer its own kernel, and of one that with arguments."""
    jobs = []
    for index in range(len(LAYERS)):
        one = layer(index)
        own, shared = offered(one)
        for offer in (own, shared)[: 1 + (index == 3)]:
            jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
    return tuple(jobs)


def _check(results: Sequence[dict[str, Array]], every: int = 1) -> None:
    for job, got in zip(_jobs()[::every], results, strict=True):
        assert job.candidate.func is not None
        same = np.array_equal(got["y"], job.outputs["y"])
        assert same, job.candidate.func.name


def test_llvm_equals_numpy() -> None:
    _check(run_llvm(list(_jobs())))


@pytest.mark.parametrize(
    "compiler", ["gcc", pytest.param("clang", marks=pytest.mark.sweep)]
)
def test_c_equals_numpy(compiler: str, tmp_path: Path) -> None:
    every = 2 if compiler == "gcc" else 1
    _check(run_c(list(_jobs()[::every]), tmp_path, compiler), every)


def test_only_speed_spends_the_flash() -> None:
    one = layer(0)
    for optimise in ("size", "balanced"):
        assert not offered(one, optimise)
    assert len(offered(one)) == 2
    taken = replace(one.graph, parameters={"x1": "weights"})
    assert not offered(replace(one, graph=taken))


def test_what_does_not_suit() -> None:
    """Strides, dilations, groups, other sides, too few pixels, other cores."""
    one = layer(0)
    for attrs in ({"strides": (2, 1)}, {"strides": (1, 2)}, {"dilations": (1, 2)}):
        node = replace(one.node, attrs={**one.node.attrs, **attrs})
        assert not offered(replace(one, node=node))
    found = candidates(one.node, one.graph, TARGETS["cortex-m3"], "speed")
    assert not any("winograd" in c.func.name for c in found if c.func)


def test_transformed_weights_make_four_times_the_convolution() -> None:
    chance = np.random.default_rng(5)
    w = chance.integers(-128, 128, (3, 3, 3, 5), np.int8)
    x = chance.integers(-128, 128, (4, 4, 5), np.int8).astype(np.int64)
    tile = np.einsum("iy,yxc,jx->ijc", INPUTS, x, INPUTS)
    products = np.einsum("oijc,ijc->oij", winograd.transformed(w), tile)
    made = np.einsum("ai,oij,bj->oab", OUTPUTS, products, OUTPUTS)
    for row, column in itertools.product(range(2), range(2)):
        under = x[row : row + 3, column : column + 3]
        plain = (w * under).sum((1, 2, 3))
        assert np.array_equal(made[:, row, column], 4 * plain)


def test_no_lane_and_no_sum_can_leave_its_type() -> None:
    """The worst inputs there are, at each step, against what `fits` takes."""
    most = np.abs(np.einsum("iy,jx->ijyx", INPUTS, INPUTS)).sum((2, 3)).max()
    assert most * 128 == winograd.PIXELS
    worst = np.full((1, 3, 3, 4), -128, np.int8)
    assert np.abs(winograd.transformed(worst)).max() == 9 * 128
    back = np.abs(np.einsum("ai,bj->abij", OUTPUTS, OUTPUTS))
    assert back.max() == 1 and back.sum((2, 3)).max() == 9

    none = np.zeros(1, np.int64)
    edge = (2**31 - 1) // (16 * winograd.PIXELS)
    weights = np.zeros((1, 4, 4, 8), np.int64)
    weights[...] = edge // 8
    assert winograd.fits(np.minimum(weights, 2**15 - 1), none, none, none)
    many = np.full((1, 4, 4, 9), 2**15 - 1)
    assert not winograd.fits(many, none, none, none)  # int32
    assert not winograd.fits(np.full((1, 4, 4, 1), 2**15), none, none, none)  # int16
    weights[...] = 1
    for sums, start, good in (
        (2**23 - 1, 0, True), (2**23, 0, False), (2**22, 2**30 - 1, True),
        (2**22, 2**30, False), (-(2**22), -(2**30), False),
    ):  # fmt: skip
        one, two = np.asarray([min(sums, 0)]), np.asarray([max(sums, 0)])
        assert winograd.fits(weights, one, two, np.asarray([start])) is good
