"""Layers whose windows are further apart than they are high, so that no window sees
some rows: each kernel on every core equals numpy, through LLVM and as C."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, must_be_equal, named_jobs, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, Case, case, tensor

CORES = ("generic", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
# x, rows and columns of the window, stride
LAYERS = (
    ((1, 9, 11, 8), (2, 2), 3),
    ((1, 9, 11, 8), (3, 3), 4),
    ((1, 13, 11, 8), (5, 5), 6),
    ((1, 9, 11, 5), (2, 3), 3),
    ((1, 9, 11, 16), (1, 1), 2),
)


def _case(op: str, number: int, wide: bool) -> Case:
    x, window, stride = LAYERS[number]
    chance = np.random.default_rng((3, number, wide))
    depthwise, outs = op == "depthwise_conv2d", x[3]
    shape = (*window, outs) if depthwise else (outs, *window, outs)
    weights = chance.integers(-127, 128, shape).astype(np.int8)
    scales = tuple(np.float32(chance.uniform(0.01, 0.02, outs)).tolist())
    quant = Quant(scales, (0,) * outs, 2 if depthwise else 0)
    elem, long = (DType.INT16, DType.INT64) if wide else (INT8, DType.INT32)
    zeros = (0, 0) if wide else (3, -5)
    inputs = (
        tensor(x, elem, 0.05, zeros[0]),
        (shape, INT8, quant),
        ((outs,), long, None),
    )
    bias = chance.integers(-3000, 3000, outs).astype(long.numpy)
    made = tensor((), elem, 0.3, zeros[1])
    return case(
        op, inputs, made, {1: weights, 2: bias},
        rounding="wide" if wide else "double", strides=(stride, stride),
        dilations=(1, 1), pads=(window[0] // 2,) * 4, clamp=(None, None),
        **({} if depthwise else {"groups": 1}),
    )  # fmt: skip


@cache
def _jobs() -> list[tuple[str, Job]]:
    made = [
        _case(op, number, wide)
        for op in ("conv2d", "depthwise_conv2d")
        for number in range(len(LAYERS))
        for wide in (False, True)
    ]
    return named_jobs(made, CORES, ("",))


def test_rings_of_rows_are_among_them() -> None:
    names = " ".join(name for name, _ in _jobs())
    for form in ("dsp_image_3x3_stride4", "dsp_fours_5x5_stride6", "dsp_fours_2x2_s16"):
        assert form in names, form


def test_by_llvm() -> None:
    must_be_equal(_jobs(), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_jobs()), lambda jobs: run_c(jobs, tmp_path))
