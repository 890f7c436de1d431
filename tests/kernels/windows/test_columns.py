"""Layers along one column of pixels, as those over time are: kernels compute several of
its rows in a call, or all of them as one row. All equal numpy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, must_be_equal, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, case, tensor
from tests.kernels.windows.test_any_window import kernels_of, layer_of


def _bands() -> list[tuple[str, Job]]:
    """The kernels of several rows of some layers."""
    layers = (layer_of(n, column=True) for n in range(12))
    jobs = (job for layer in layers for job in kernels_of(layer))
    return [job for job in jobs if _is_band(job[1].candidate)]


def _is_band(candidate: Candidate) -> bool:
    made = candidate.outputs[0]
    return candidate.bands > 1 and made.window == made.stride > 1


def test_by_llvm() -> None:
    bands = _bands()
    must_be_equal(bands, run_llvm)
    made = [job.candidate for _, job in bands]
    assert len({candidate.func for candidate in made}) > 20
    assert {candidate.outputs[0].window for candidate in made} >= {3, 4, 5, 7}


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_bands()), lambda jobs: run_c(jobs, tmp_path))


@pytest.mark.parametrize("core", ["generic", "cortex-m4", "cortex-m55", "cortex-m0"])
def test_floats(core: str) -> None:
    chance = np.random.default_rng(3)
    weights = (chance.normal(size=(12, 5, 1, 9)) / 7).astype(np.float32)
    bias = chance.normal(size=12).astype(np.float32)
    x = tensor((1, 24, 1, 9), FLOAT32)
    specs = (x, tensor(weights.shape, FLOAT32), tensor(bias.shape, FLOAT32))
    layer = case("conv2d", specs, tensor((), FLOAT32), {1: weights, 2: bias},
                 strides=(1, 1), pads=(2, 0, 2, 0))  # fmt: skip
    expected = layer.expected()
    found = candidates(layer.node, layer.graph, TARGETS[core])
    jobs = [Job(c, layer.arrays, {"y": expected}) for c in found]
    assert any(map(_is_band, found))
    for job, made in zip(jobs, run_llvm(jobs), strict=True):
        name = str(job.candidate.func and job.candidate.func.name)
        np.testing.assert_allclose(made["y"], expected, 1e-5, 1e-5, err_msg=name)
