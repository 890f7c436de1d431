"""Random layers with the kernels that RISC-V's vectors have for them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor

CORE = TARGETS["rv32imcv"]


def jobs_of(cases: Iterable[Case], optimise: str = "balanced") -> list[Job]:
    """A job for each kernel on vectors that serves one of the cases."""
    return [
        Job(offer, one.arrays, {"y": one.expected()})
        for one in cases
        for offer in candidates(one.node, one.graph, CORE, optimise)
        if offer.func is not None and "rvv" in offer.func.name and offer.finish is None
    ]


def check(jobs: list[Job], results: list[dict[str, Array]]) -> None:
    """Each result is what numpy makes."""
    for job, result in zip(jobs, results, strict=True):
        name = job.candidate.func.name if job.candidate.func else ""
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


def wide_layer(seed: int) -> Case:
    """More channels than a vector has lanes, and a number that is no multiple."""
    chance = np.random.default_rng((5, seed))
    outs = (17, 31, 33, 48, 70)[seed % 5]
    side, inside = (1, 3)[seed % 2], int(chance.choice([3, 8, 20]))
    weights = chance.integers(-128, 128, (outs, side, side, inside)).astype(np.int8)
    scales = tuple(float(s) for s in chance.uniform(0.002, 0.02, outs))
    inputs = (
        tensor((1, 4, 7, inside), INT8, 0.05, int(chance.integers(-128, 128))),
        (weights.shape, INT8, Quant(scales, (0,) * outs, 0)),
        tensor((outs,), INT32),
    )
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    pads = (side // 2,) * 4
    rule = ("double", "away", "single")[seed % 3]
    ways = {"rounding": rule, "clamp": (None, None), "strides": (1, 1), "pads": pads}
    known = {1: weights, 2: bias}
    return case("conv2d", inputs, tensor((), INT8, 0.3, 3), known, **ways)
