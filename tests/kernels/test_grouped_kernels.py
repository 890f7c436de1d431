"""Convolutions in groups, and depthwise ones with several outputs of each channel, on
pairs of int16: every kernel of theirs against the numpy meaning of the operator."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, Case, case, tensor

CORE = TARGETS["cortex-m4"]
INT16 = DType.INT16
# pixels [H,W], channels, groups, outputs of a group, kernel, stride, dilation, padding
CONVOLUTIONS = (
    ((4, 5), 16, 2, 4, (3, 3), 1, 1, 1),
    ((4, 6), 18, 3, 5, (3, 2), 2, 1, 1),
    ((3, 5), 32, 4, 2, (1, 1), 1, 1, 0),
    ((5, 4), 8, 4, 2, (3, 3), 1, 1, 1),
    ((5, 7), 12, 2, 3, (2, 2), 1, 2, 0),
    ((5, 4), 6, 6, 1, (3, 3), 1, 1, 1),
    ((4, 5), 9, 3, 4, (3, 3), 1, 1, 0),
    ((3, 4), 8, 2, 1, (2, 3), 1, 1, 1),
    ((6, 5), 1, 1, 5, (3, 3), 1, 1, 1),
    ((1, 1), 24, 3, 6, (1, 1), 1, 1, 0),
    ((4, 5), 8, 1, 1, (3, 3), 1, 1, 1),
    ((3, 5), 16, 1, 1, (1, 1), 1, 1, 0),
    ((5, 4), 6, 2, 1, (2, 3), 2, 1, 0),
)
# pixels, channels, outputs of a channel, kernel, stride, padding
DEPTHWISE = (
    ((5, 6), 1, 8, (3, 3), 1, 1),
    ((5, 5), 2, 3, (3, 3), 1, 1),
    ((6, 7), 3, 4, (2, 4), 2, 1),
    ((6, 7), 3, 1, (3, 3), 1, 0),
    ((4, 5), 5, 2, (3, 3), 1, 1),
    ((6, 5), 2, 3, (4, 5), 1, 2),
)


def _layer(
    op: str, dtype: DType, x: tuple[int, ...], w: tuple[int, ...], **attrs: object
) -> Case:
    chance = np.random.default_rng((*x, *w))
    outs, axis = (w[0], 0) if op == "conv2d" else (w[-1], 2)
    weights = chance.integers(-127, 128, w).astype(np.int8)
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    scales = tuple(float(s) for s in chance.uniform(0.004, 0.02, outs))
    whole = dtype is INT8
    inputs = (
        tensor(x, dtype, 0.05, 7 if whole else 0),
        (w, INT8, Quant(scales, (0,) * outs, axis)),
        ((outs,), DType.INT32 if whole else DType.INT64, None),
    )
    values = bias if whole else bias.astype(np.int64) * 9
    return case(op, inputs, tensor((), dtype, 0.3, -5 if whole else 0),
                {1: weights, 2: values}, rounding="double" if whole else "wide",
                clamp=(-20.0, None), **attrs)  # fmt: skip


def layers() -> list[Case]:
    found = []
    for dtype in (INT8, INT16):
        for (h, width), c, groups, outs, kernel, stride, dilation, pad in CONVOLUTIONS:
            found.append(
                _layer("conv2d", dtype, (1 + h % 2, h, width, c),
                       (groups * outs, *kernel, c // groups), groups=groups,
                       strides=(stride,) * 2, dilations=(dilation,) * 2,
                       pads=(pad,) * 4)
            )  # fmt: skip
        for (h, width), c, times, kernel, stride, pad in DEPTHWISE:
            found.append(
                _layer("depthwise_conv2d", dtype, (1, h, width, c),
                       (*kernel, c * times), strides=(stride,) * 2,
                       dilations=(1, 1), pads=(pad,) * 4)
            )  # fmt: skip
    return found


@functools.cache
def _jobs() -> tuple[Job, ...]:
    return tuple(
        Job(offer, one.arrays, {"y": one.expected()})
        for one in layers()
        for offer in candidates(one.node, one.graph, CORE)
        if offer.func is not None and "_dsp" in offer.func.name
    )


def _check(jobs: Sequence[Job], results: Sequence[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        assert job.candidate.func is not None
        np.testing.assert_array_equal(
            result["y"], job.outputs["y"], job.candidate.func.name
        )


@pytest.mark.parametrize(
    "step", [5, pytest.param(1, marks=pytest.mark.sweep)], ids=["some", "all"]
)
def test_llvm_equals_numpy(step: int) -> None:
    """Groups of fewer channels than a word has, and of one output, have kernels, too:
    of several groups together, or of windows that are copied; an output alone, too."""
    jobs = _jobs()
    names = [job.candidate.func.name for job in jobs if job.candidate.func]
    for kind in ("conv2d_dsp", "conv2d_s16_dsp", "depthwise_s16_dsp", "gathered"):
        assert any(kind in name for name in names), kind
    # lone ones always
    some = [job for i, job in enumerate(jobs) if i % step == 0 or "_lone" in names[i]]
    assert step == 1 or len(some) > len(jobs) // step + 1
    _check(some, run_llvm(some))


@pytest.mark.sweep
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_c_equals_numpy(compiler: str, tmp_path: Path) -> None:
    _check(_jobs(), run_c(_jobs(), tmp_path, compiler))
