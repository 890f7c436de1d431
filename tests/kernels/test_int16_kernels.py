"""Fast kernels of int16 layers, on every core and under every rule, sums of 32 and of
64 bits: each equals numpy, through LLVM and as C under sanitizers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from pybuild.kernels.layers.sums16 import MOST_WEIGHTS, turns_of_run
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, Case, case, tensor

CORES = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
FAST = ("_dsp_", "_mve_", "_block")
# x, weights, strides, dilations
LAYERS = (
    ("conv2d", (1, 5, 6, 8), (6, 3, 3, 8), 1, 1),
    ("conv2d", (1, 6, 7, 3), (9, 3, 3, 3), 2, 1),
    ("conv2d", (1, 7, 6, 5), (5, 3, 3, 5), 1, 2),
    ("conv2d", (1, 3, 5, 16), (7, 1, 1, 16), 1, 1),
    ("conv2d", (1, 4, 5, 21), (2, 1, 1, 21), 2, 1),
    ("conv2d", (1, 3, 3, 600), (5, 1, 1, 600), 1, 1),
    ("conv2d", (1, 3, 5, 75), (4, 3, 3, 75), 1, 1),
    ("conv2d", (1, 4, 4, 1), (8, 3, 3, 1), 1, 1),
    ("conv2d", (1, 4, 5, 8), (1, 3, 3, 8), 1, 1),
    ("conv2d", (1, 4, 5, 12), (8, 3, 3, 6), 1, 1),
    ("dense", (1, 530), (9, 530), 1, 1),
    ("dense", (3, 24), (10, 24), 1, 1),
    ("depthwise_conv2d", (1, 6, 7, 8), (3, 3, 8), 1, 1),
    ("depthwise_conv2d", (1, 7, 8, 5), (5, 5, 5), 2, 1),
    ("depthwise_conv2d", (1, 9, 9, 6), (3, 3, 6), 1, 2),
    ("depthwise_conv2d", (1, 7, 9, 16), (7, 7, 16), 1, 1),
    ("depthwise_conv2d", (1, 6, 6, 4), (3, 3, 8), 1, 1),
    ("depthwise_conv2d", (1, 12, 3, 32), (3, 3, 32), 2, 1),
)
RULES = ("wide", "double")
LOUD, QUIET, GREAT = "loud", "quiet", "great"


def layer(number: int, rule: str, kind: str) -> Case:
    """Loud: all weights at one end, so that sums are as great as they can be; quiet:
    channels whose factor is far below the others'; great: scales that raise sums."""
    op, x, w, stride, dilation = LAYERS[number]
    chance = np.random.default_rng((16, number, len(rule)))
    axis = 2 if op == "depthwise_conv2d" else 0
    outs = w[axis]
    weights = chance.integers(-127, 128, w)
    if kind == LOUD:
        weights = np.where(weights < 0, -128, 127)
        weights = np.moveaxis(weights, axis, 0)
        weights[0] = 127
        weights = np.moveaxis(weights, 0, axis)
    scales = chance.uniform(0.2, 1.0, outs) / np.sqrt(weights.size / outs) / 64
    bias = chance.integers(-300_000, 300_000, outs)
    if kind == QUIET:
        scales[1::3] *= 2.0**-14
        scales[2::3] = 2.0**-40
    if kind == GREAT:
        weights = np.clip(weights, -1, 1)
        scales[::2] = chance.uniform(0.3, 4.0, scales[::2].shape)
        bias //= 10_000
    inputs = (
        tensor(x, DType.INT16, 1.0),
        (w, INT8, Quant(tuple(np.float32(scales).tolist()), (0,) * outs, axis)),
        ((outs,), DType.INT64, None),
    )
    attrs: dict[str, object] = {"clamp": ((None, None), (0.0, None))[number % 2]}
    if op != "dense":
        side = w[1] if op == "conv2d" else w[0]
        attrs |= {"strides": (stride, stride), "dilations": (dilation, dilation),
                  "pads": (side // 2 * dilation,) * 4}  # fmt: skip
    if op == "conv2d":
        attrs["groups"] = x[3] // w[3]
    fixed = {1: weights.astype(np.int8), 2: bias.astype(np.int64)}
    made = case(op, inputs, tensor((), DType.INT16, 1.0), fixed, rounding=rule,
                **attrs)  # fmt: skip
    return made if kind != LOUD else _at_ends(made)


def _at_ends(made: Case) -> Case:
    """Every input at one end, so that the sums of all taps are the greatest."""
    x = np.full_like(made.arrays["x0"], -32768)
    x.reshape(-1)[:: x.size // 3] = 32767
    return replace(made, arrays={**made.arrays, "x0": x})


def _cases() -> Iterator[Case]:
    for number, (op, *_) in enumerate(LAYERS):
        rules = ("wide", "away") if op == "dense" else ("wide",)
        for rule in rules:
            for kind in (LOUD, QUIET, GREAT, ""):
                yield layer(number, rule, kind)
    for number in (0, 3, 11, 12):
        yield layer(number, "double", QUIET)


@cache
def _jobs() -> list[tuple[str, Job]]:
    """Two of each kernel."""
    found: dict[str, tuple[str, Job]] = {}
    for count, one in enumerate(_cases()):
        expected = one.expected()
        for core in CORES:
            for offer in candidates(one.node, one.graph, TARGETS[core]):
                assert offer.func is not None
                name = offer.func.name
                if any(word in name for word in FAST):
                    job = Job(offer, one.arrays, {"y": expected})
                    found.setdefault(f"{name}{count % 2}", (name, job))
    return list(found.values())


def test_forms() -> None:
    """Each form of an end, and of sums, is among what the next tests run."""
    names = " ".join(name for name, _ in _jobs())
    for form in ("_high", "_shifted", "_parts", "_wide", "_exact", "_double", "_s64"):
        assert form in names, form


def test_by_llvm() -> None:
    jobs = _jobs()
    for (name, job), made in zip(jobs, run_llvm([j for _, j in jobs]), strict=True):
        np.testing.assert_array_equal(made["y"], job.outputs["y"], name)


@pytest.mark.slow
def test_by_c_with_sanitizers(tmp_path: Path) -> None:
    jobs = _jobs()
    results = run_c([j for _, j in jobs], tmp_path)
    for (name, job), made in zip(jobs, results, strict=True):
        np.testing.assert_array_equal(made["y"], job.outputs["y"], name)


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_no_layer_takes_the_plain_kernel(number: int, core: str) -> None:
    one = layer(number, "wide", "")
    offers = candidates(one.node, one.graph, TARGETS[core])
    fastest = min(offers, key=lambda o: price(o, TARGETS[core]).instructions)
    assert fastest.func is not None
    assert any(word in fastest.func.name for word in FAST), fastest.func.name


def test_runs_are_as_long_as_is_proven() -> None:
    taps = 1040
    kernels = np.full((2, taps), 127, np.int8)
    assert turns_of_run(kernels[:, :515], 516, 4) == 129
    turns = turns_of_run(kernels, 1040, 4)
    assert turns * 4 * 127 <= MOST_WEIGHTS < taps * 127
    assert turns == 87  # of 260, in three
