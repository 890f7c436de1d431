"""Pools of int16 on vectors: each number of channels, edges and clamps as numpy has
them, and every sum that a division by a product could get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.loop import INT16
from pybuild.kernels.layers.quotient import quotient
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

M55 = TARGETS["cortex-m55"]
# and what distinguishes kernels on their vectors
CORES = {M55: "_mve", TARGETS["rv32imcv"]: "_rvv"}
# shape, window, steps, padding
POOLS = (
    ((1, 6, 6, 16), (2, 2), (2, 2), (0, 0, 0, 0)),
    ((2, 5, 6, 11), (3, 3), (2, 1), (0, 0, 0, 0)),
    ((1, 5, 5, 6), (2, 3), (1, 2), (0, 0, 0, 0)),
    ((1, 7, 8, 4), (5, 4), (1, 2), (0, 0, 0, 0)),
    ((1, 6, 5, 19), (3, 3), (2, 2), (1, 1, 1, 1)),
    ((1, 4, 5, 6), (2, 3), (1, 1), (0, 1, 1, 1)),
)
CLAMPS = ((None, None), (-9.0, 12.0))
SIXTEEN = (-(2**15), 2**15 - 1)


def _cases() -> Iterator[Case]:
    for number, (x, kernel, strides, pads) in enumerate(POOLS):
        source = tensor(x, INT16, 0.001)
        for op, clamp in product(("max_pool2d", "avg_pool2d"), CLAMPS):
            rule = {"rounding": "double"} if op == "avg_pool2d" else {}
            one = case(op, (source,), kernel=kernel, strides=strides, pads=pads,
                       clamp=clamp, **rule)  # fmt: skip
            # the ends of the type, and what divides with a tie
            few = one.arrays["x0"] // 2**14 + np.int16(number)
            ends = np.where(one.arrays["x0"] < 0, *SIXTEEN).astype(np.int16)
            for arrays in (one.arrays, {"x0": few}, {"x0": ends}):
                yield replace(one, arrays=arrays)


def test_as_numpy_by_llvm_and_in_c(tmp_path: Path) -> None:
    jobs = []
    for one in _cases():
        for core, mark in CORES.items():
            offers = candidates(one.node, one.graph, core)
            vectors = [o for o in offers if o.func and mark in o.func.name]
            ragged = one.node.op == "avg_pool2d" and any(one.node.attrs["pads"])
            assert len(vectors) == (core is M55 or not ragged)
            jobs += [Job(o, one.arrays, {"y": one.expected()}) for o in vectors]
    names = " ".join({job.candidate.func.name for job in jobs if job.candidate.func})
    forms = ("by16", "by8", "by4", "rest", "large", "padded", "clamped")
    for word in ("rvv", "high", *forms):
        assert word in names, word
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("cells", [*range(1, 40), 63, 64, 100, 255, 1000, 4096])
def test_a_product_divides(cells: int) -> None:
    """Around each tie, at the ends and at 0."""
    made = quotient(cells, SIXTEEN)
    assert made is not None and 1 <= made.shift <= 31 and made.factor < 2**31
    wanted = np.arange(-(2**15), 2**15)
    near = (wanted * cells)[:, None] + np.array([-1, 0, 1, cells // 2, -(cells // 2)])
    near = np.concatenate([near.ravel(), near.ravel() + cells % 2])
    sums = np.clip(near, -(2**15) * cells, (2**15 - 1) * cells)
    high = (sums * 16 * made.factor) >> 32
    found = (high + (1 << (made.shift - 1))) >> made.shift
    half = np.sign(sums) * ((2 * np.abs(sums) + cells) // (2 * cells))
    np.testing.assert_array_equal(found, half)


def test_of_too_many_cells_there_is_none() -> None:
    assert quotient(4097, SIXTEEN) is None


def test_it_takes_a_third_of_one_by_one() -> None:
    for op, rule in (("max_pool2d", {}), ("avg_pool2d", {"rounding": "double"})):
        one = case(op, (tensor((1, 16, 16, 32), INT16),), kernel=(2, 2),
                   strides=(2, 2), **rule)  # fmt: skip
        offers = candidates(one.node, one.graph, M55)
        plain, *others = (price(o, M55).instructions for o in offers)
        assert min(others) * 3 <= plain
