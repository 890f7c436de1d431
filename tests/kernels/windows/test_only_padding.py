"""Depthwise layers of which no tap lies on a column of the image, only on padding: each
kernel on every core equals numpy, through LLVM and as C."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from tests.kernels.kernel_bench import Job, must_be_equal, named_jobs, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, Case, case, tensor

CORES = ("generic", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")


def _layer(channels: int) -> Case:
    """Two taps, one column apart: left and right of an image of one column."""
    chance = np.random.default_rng(channels)
    shape = (3, 2, channels)
    scales = tuple(np.float32(chance.uniform(0.01, 0.02, channels)).tolist())
    inputs = (
        tensor((1, 5, 1, channels), INT8, 0.05, 3),
        (shape, INT8, Quant(scales, (0,) * channels, 2)),
        ((channels,), DType.INT32, None),
    )
    weights = chance.integers(-127, 128, shape).astype(np.int8)
    bias = chance.integers(-3000, 3000, channels).astype(np.int32)
    return case(
        "depthwise_conv2d", inputs, tensor((), INT8, 0.3, -5), {1: weights, 2: bias},
        rounding="double", strides=(1, 1), dilations=(1, 2), pads=(1, 1, 1, 1),
        clamp=(None, None),
    )  # fmt: skip


@cache
def _jobs() -> list[tuple[str, Job]]:
    return named_jobs([_layer(4), _layer(16)], CORES, ("",))


def test_by_llvm() -> None:
    must_be_equal(_jobs(), run_llvm)


@pytest.mark.slow
def test_by_c_with_sanitizers(tmp_path: Path) -> None:
    must_be_equal(_jobs(), lambda jobs: run_c(jobs, tmp_path))
