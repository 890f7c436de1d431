"""Channels without a cheap end, sums beyond 32 bits of two in one, weights of -128:
every kernel of such a layer, on every core, under every rule, equals numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import (
    Job,
    must_be_equal,
    named_jobs,
    part_of,
    run_c,
    run_llvm,
)
from tests.kernels.kernel_cases import INT8, INT32, ROUNDINGS, Case, case, tensor

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "rv32imc")
FAST = ("depthwise_rows_", "dsp", "block")
# x, weights, clamp; of a depthwise layer three numbers
LAYERS = (
    ("conv2d", (1, 4, 5, 8), (6, 3, 3, 8), (None, None)),
    ("conv2d", (1, 3, 3, 12), (7, 1, 1, 12), (0.0, None)),
    ("conv2d", (1, 3, 4, 16), (8, 3, 3, 8), (None, 3.0)),
    ("conv2d", (1, 5, 5, 3), (1, 3, 3, 3), (None, None)),
    ("conv2d", (1, 2, 3, 1104), (5, 1, 1, 1104), (None, None)),
    ("dense", (1, 2048), (8, 2048), (None, None)),
    ("dense", (3, 72), (9, 72), (0.0, 6.0)),
    ("depthwise_conv2d", (1, 6, 7, 8), (3, 3, 8), (None, None)),
    ("depthwise_conv2d", (1, 7, 6, 5), (5, 5, 5), (0.0, None)),
    ("depthwise_conv2d", (1, 6, 6, 4), (3, 3, 8), (None, None)),
    ("depthwise_conv2d", (1, 6, 6, 2), (3, 3, 2), (None, None)),
)
PARTS = 8  # of all jobs, so that workers share them
SHIFT = 18  # of a hard channel's scale, so that its bias is beyond what is proven


def _layer(number: int, rule: str, lowest: int, fill: str) -> Case:
    """A fifth of the channels is hard: a sum that may begin next to a tie, or at an
    end of int32."""
    op, x, w, clamp = LAYERS[number]
    chance = np.random.default_rng((number, len(rule), lowest + 128))
    axis = 2 if op == "depthwise_conv2d" else 0
    outs = w[axis]
    weights = chance.integers(lowest, 128, w).astype(np.int8)
    scales = chance.uniform(0.1, 1.0, outs) / np.sqrt(weights.size / outs) / 64
    bias = chance.integers(-3000, 3000, outs)
    room = 2**31 - 1 - 256 * 128 * weights.size // outs
    for place, channel in enumerate(range(1 % outs, outs, 5)):
        scales[channel] = 2.0 ** (1 - SHIFT)
        units = (20.5, -30.5, 7.5)[place % 3]
        far = (room, -room)[place % 2]
        bias[channel] = far if place % 4 == 3 else int(units * 2**SHIFT)
    inputs = (
        tensor(x, INT8, 0.5, -3),
        (w, INT8, Quant(tuple(np.float32(scales).tolist()), (0,) * outs, axis)),
        ((outs,), INT32, None),
    )
    attrs = {"clamp": clamp}
    if op != "dense":
        side = w[1] if op == "conv2d" else w[0]
        attrs |= {"strides": (1, 1), "dilations": (1, 1), "pads": (side // 2,) * 4}
    if op == "conv2d":
        attrs["groups"] = x[3] // w[3]
    made = case(op, inputs, tensor((), INT8, 1.0, 5),
                {1: weights, 2: bias.astype(np.int32)}, rounding=rule,
                **attrs)  # fmt: skip
    return made if fill == "drawn" else _filled(made, fill)


def _filled(made: Case, fill: str) -> Case:
    """With the same value everywhere: the zero point, whose sums are ties; or each
    value an end of int8, by the sign of the first channel's weights."""
    x = made.arrays["x0"]
    value: Array = np.full(x.shape, -3, np.int8)
    if fill == "ends" and made.node.op != "depthwise_conv2d":
        first = made.arrays["x1"][:1].reshape(-1)
        ends = np.where(first > 0, 127, -128).astype(np.int8)
        value = np.resize(ends, x.shape)
    return replace(made, arrays={**made.arrays, "x0": value})


def _cases() -> Iterator[Case]:
    for number in range(len(LAYERS)):
        for index, rule in enumerate(ROUNDINGS):
            lowest = (-127, -128)[(number + index) % 2]
            fill = ("drawn", "zero", "ends")[(number + index) % 3]
            yield _layer(number, rule, lowest, fill)
            yield _layer(number, rule, -127 - lowest - 128, "drawn")


@cache
def _jobs() -> list[tuple[str, Job]]:
    return named_jobs(_cases(), CORES, FAST)


def test_forms() -> None:
    """Each form is among what the next tests run."""
    names = " ".join(name for name, _ in _jobs())
    for rule in ROUNDINGS:
        assert f"exact_{rule}" in names
    for form in ("_runs_", "_apart_", "split12_", "_signed_", "_lone_", "image",
                 "_rounded_twice", "_rounded_once", "_raised"):  # fmt: skip
        assert form in names, form


@pytest.mark.parametrize("part", range(PARTS))
def test_by_llvm(part: int) -> None:
    must_be_equal(part_of(_jobs(), part, PARTS), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_jobs()), lambda jobs: run_c(jobs, tmp_path))


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_no_layer_takes_the_plain_kernel(number: int, core: str) -> None:
    op, x, w, _ = LAYERS[number]
    if w[0] == 1:
        pytest.skip("of one output of 27 taps they may cost more")
    if op == "depthwise_conv2d" and w[2] > x[-1] and core != "cortex-m4":
        pytest.skip("of two outputs of a channel a copy takes more than it saves")
    one = _layer(number, "double", -127, "drawn")
    offers = candidates(one.node, one.graph, TARGETS[core])
    fastest = min(offers, key=lambda o: price(o, TARGETS[core]).instructions)
    assert fastest.func is not None
    assert any(word in fastest.func.name for word in FAST), fastest.func.name
