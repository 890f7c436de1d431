"""A line for each channel: layers of one tap on bytes, of any scale, zero point,
rounding and clamp, equal numpy for all 256 bytes of each channel, in place, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, must_be_equal, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, INT32, ROUNDINGS, Case, case, tensor

CHANNELS = (1, 2, 3, 4, 5, 8, 11, 16, 33)
CLAMPS = ((None, None), (0.0, None), (0.0, 6.0), (-1.0, 1.0))
CORES = ("generic", "cortex-m0", "cortex-m4", "rv32imc")


def _layer(seed: int, step: float = 0.0) -> Case:
    """step  what a step of x adds to y, about; 0: of a seed"""
    chance = np.random.default_rng((31, seed))
    channels = int(chance.choice(CHANNELS))
    zeros = chance.integers(-128, 128, 2)
    weights = chance.integers(-127, 128, (1, 1, channels)).astype(np.int8)
    weights[..., chance.random(channels) < 0.1] = 0
    scales = chance.uniform(0.004, 0.02, channels).astype(np.float32)
    bias = chance.integers(-9000, 9000, channels).astype(np.int32)
    inputs = (
        tensor((1, 16, 16, channels), INT8, 0.05, int(zeros[0])),
        (weights.shape, INT8, Quant(tuple(scales.tolist()), (0,) * channels, 2)),
        ((channels,), INT32, None),
    )
    size = 0.06 / step if step else float(chance.choice((0.02, 0.05, 0.2)))
    made = tensor((), INT8, size, int(zeros[1]))
    return case("depthwise_conv2d", inputs, made, {1: weights, 2: bias},
                strides=(1, 1), pads=(0, 0, 0, 0), dilations=(1, 1),
                clamp=CLAMPS[int(chance.integers(4))],
                rounding=ROUNDINGS[int(chance.integers(4))])  # fmt: skip


def _lines(layer: Case) -> list[Candidate]:
    found = [c for core in CORES
             for c in candidates(layer.node, layer.graph, TARGETS[core])]  # fmt: skip
    lines = {(c.func, c.args): c for c in found
             if c.func and c.func.name.startswith("lines_")}  # fmt: skip
    return [*lines.values()]


def _jobs(seeds: range) -> Iterator[tuple[str, Job]]:
    """Every byte in each channel."""
    for seed in seeds:
        layer = _layer(seed)
        shape = layer.graph.tensor("y").shape
        every = np.arange(-128, 128).astype(np.int8).reshape(1, 16, 16, 1)
        given = {**layer.arrays, "x0": np.broadcast_to(every, shape).copy()}
        layer = replace(layer, arrays=given)
        expected = layer.expected()
        for one in _lines(layer):
            for place in (None, 0):
                name = f"{seed}: {one.func and one.func.name}, {one.args}"
                yield name, Job(one, layer.arrays, {"y": expected}, place)


def test_by_llvm() -> None:
    jobs = [*_jobs(range(60))]
    must_be_equal(jobs, run_llvm)
    assert len({name.split(":")[0] for name, _ in jobs}) > 50
    assert len({job.candidate.func for _, job in jobs}) >= 8


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some([*_jobs(range(20))]), lambda jobs: run_c(jobs, tmp_path))


def test_no_line_where_a_sum_would_leave_int32() -> None:
    """Steps so large that factors have no room; others compute the layer."""
    assert _lines(_layer(3, 1.0))
    assert not _lines(_layer(3, 64.0))
    assert candidates(_layer(3, 64.0).node, _layer(3, 64.0).graph, TARGETS["generic"])
