"""Float kernels of vectors, wide ones and Helium's: random layers against sums in the
order of their taps, each product and each sum rounded alone: the same bits by LLVM and
by C.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.real_vectors import MVE, WIDE
from pybuild.kernels.base.wide_vectors import FEATURE
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, Case, Spec, case, tensor

OUTPUTS = (16, 17, 24, 32, 33, 48, 64, 70, 96, 144)
Clamp = tuple[float | None, float | None]
CLAMPS: tuple[Clamp, ...] = ((None, None), (0.0, None), (0.0, 6.0), (None, 1.0))


def _layer(seed: int) -> Case:
    """A layer of that seed: windows, strides, gaps and padding of all kinds."""
    chance = np.random.default_rng((78, seed))
    inside = int(chance.choice([1, 2, 3, 5, 8, 16]))
    outs = int(chance.choice(OUTPUTS))
    clamp = CLAMPS[seed % 4]
    if seed % 5 == 0:
        x: tuple[int, ...] = (int(chance.integers(1, 20)), inside)
        given = (tensor(x, FLOAT32), tensor((outs, inside), FLOAT32))
        return _case("dense", given, outs, clamp)
    kernel = tuple(int(n) for n in chance.integers(1, 6, 2))
    kernel = (1, 1) if chance.integers(3) == 0 else kernel
    stride = int(chance.integers(1, 4))
    gaps = (1 + int(chance.integers(3) == 0), 1 + int(chance.integers(3) == 0))
    reach = [(k - 1) * d for k, d in zip(kernel, gaps, strict=True)]
    pads = tuple(int(chance.integers(0, r + 1)) for r in (*reach, *reach))
    sides = [int(chance.integers(r + 2, r + 20)) for r in reach]
    given = (
        tensor((1, *sides, inside), FLOAT32),
        tensor((outs, *kernel, inside), FLOAT32),
    )
    attrs = {"strides": (stride, stride), "dilations": gaps, "pads": pads}
    return _case("conv2d", given, outs, clamp, **attrs)


def _depthwise(seed: int) -> Case:
    """A depthwise layer of that seed; rows that are narrower than the window too."""
    chance = np.random.default_rng((79, seed))
    channels = int(chance.choice((16, 17, 24, 32, 40, 64)))
    kernel = tuple(int(n) for n in chance.choice(((1, 1), (3, 3), (5, 5), (1, 7))))
    stride = int(chance.integers(1, 4))
    gaps = (1 + int(chance.integers(3) == 0), 1 + int(chance.integers(3) == 0))
    reach = [(k - 1) * d for k, d in zip(kernel, gaps, strict=True)]
    pads = tuple(int(chance.integers(0, r + 1)) for r in (*reach, *reach))
    least = [r + 1 - pads[i] - pads[i + 2] for i, r in enumerate(reach)]
    sides = [max(n, 1) + int(chance.integers(0, 14)) for n in least]
    given = (
        tensor((1, *sides, channels), FLOAT32),
        tensor((*kernel, channels), FLOAT32),
    )
    attrs = {"strides": (stride, stride), "dilations": gaps, "pads": pads}
    return _case("depthwise_conv2d", given, channels, CLAMPS[seed % 4], **attrs)


def _case(
    op: str, given: tuple[Spec, Spec], outs: int, clamp: Clamp, **attrs: object
) -> Case:
    inputs = (*given, tensor((outs,), FLOAT32))
    out = tensor((), FLOAT32)
    return case(op, inputs, out, {1: None, 2: None}, clamp=clamp, **attrs)


def _in_order(one: Case) -> Array:
    """bias + the products of the taps, one after the other."""
    x, w, bias = (one.arrays[name] for name in one.node.inputs)
    attrs = one.node.attrs
    if one.node.op == "dense":
        x, w = x[None, None], w[:, None, None]
    top, left, bottom, right = attrs.get("pads", (0, 0, 0, 0))
    (stride, _), gaps = attrs.get("strides", (1, 1)), attrs.get("dilations", (1, 1))
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    if one.node.op == "depthwise_conv2d":  # a channel, of each, is its own
        w = np.moveaxis(w, -1, 0)[..., None]
    _, kernel_h, kernel_w, channels = w.shape
    shape = one.graph.tensor(one.node.output).shape
    high, wide = shape[1:3] if len(shape) == 4 else (1, shape[0])
    total = np.broadcast_to(bias, (1, high, wide, len(w))).astype(np.float32)
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            rows = x[:, ky * gaps[0] :: stride, kx * gaps[1] :: stride]
            for c in range(channels):
                value = rows[:, :high, :wide, c, None]
                if one.node.op == "depthwise_conv2d":
                    value = rows[:, :high, :wide]
                total = total + value * w[None, None, None, :, ky, kx, c]
    low, most = attrs["clamp"]
    total = total if low is None else np.maximum(total, np.float32(low))
    total = total if most is None else np.minimum(total, np.float32(most))
    return total.reshape(shape)


def _vectors(one: Case, target: str) -> list[Candidate]:
    offers = candidates(one.node, one.graph, TARGETS[target])
    key = f"_f32_{(WIDE if target == 'host' else MVE).key}_"
    return [o for o in offers if o.func and key in o.func.name]


def _jobs(
    seeds: range, layer: Callable[[int], Case] = _layer, target: str = "host"
) -> list[Job]:
    jobs = []
    for seed in seeds:
        one = layer(seed)
        found = _vectors(one, target)
        assert found, seed
        jobs += [Job(offer, one.arrays, {"y": _in_order(one)}) for offer in found]
    return jobs


def _check(jobs: list[Job], results: list[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        assert job.candidate.func is not None
        same = result["y"].tobytes() == job.outputs["y"].tobytes()
        assert same, job.candidate.func.name


def test_llvm_sums_in_order() -> None:
    jobs = _jobs(range(40))
    _check(jobs, run_llvm(jobs, frozenset({FEATURE})))
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    used = {name.removeprefix("conv2d_f32_wide_").split("_every")[0] for name in names}
    assert len(used) > len(WIDE.shapes) // 2


def test_depthwise_sums_in_order_by_llvm() -> None:
    jobs = _jobs(range(40), _depthwise)
    _check(jobs, run_llvm(jobs, frozenset({FEATURE})))
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    words = ("3x3", "5x5", "1x7", "padded", "dilated", "odd")
    assert all(any(word in name for name in names) for word in words)


@SOME
def test_depthwise_sums_in_order_by_c(some: Some, tmp_path: Path) -> None:
    jobs = some(_jobs(range(60, 68), _depthwise))
    _check(jobs, run_c(jobs, tmp_path))


def test_c_sums_in_order(tmp_path: Path) -> None:
    jobs = _jobs(range(60, 66))
    _check(jobs, run_c(jobs, tmp_path))


def test_few_channels_are_left_to_others() -> None:
    given = (tensor((1, 5, 5, 3), FLOAT32), tensor((15, 3, 3, 3), FLOAT32))
    few = _case("conv2d", given, 15, (None, None), pads=(1, 1, 1, 1))
    assert not _vectors(few, "host")


@pytest.mark.sweep
def test_many_more_layers() -> None:
    jobs = _jobs(range(1000, 1300))
    _check(jobs, run_llvm(jobs, frozenset({FEATURE})))
    jobs = _jobs(range(1000, 1300), _depthwise)
    _check(jobs, run_llvm(jobs, frozenset({FEATURE})))


@pytest.mark.parametrize("layer", [_layer, _depthwise])
def test_helium_sums_in_order_by_llvm(layer: Callable[[int], Case]) -> None:
    """By the meaning of its operations; an emulated one: the suites of operators."""
    jobs = _jobs(range(100, 130), layer, "cortex-m55")
    _check(jobs, run_llvm(jobs))
    names = {job.candidate.func.name for job in jobs if job.candidate.func}
    assert all(any(word in name for name in names) for word in ("odd", "low", "high"))


@SOME
def test_helium_sums_in_order_by_c(some: Some, tmp_path: Path) -> None:
    jobs = _jobs(range(130, 136), target="cortex-m55")
    jobs = some(jobs + _jobs(range(136, 140), _depthwise, "cortex-m55"))
    _check(jobs, run_c(jobs, tmp_path))
