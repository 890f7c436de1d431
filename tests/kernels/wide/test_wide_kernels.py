"""Kernels of wide vectors: random layers against the numpy meaning of their operators,
by LLVM with each instruction that a processor may have for their products, and by C."""

from __future__ import annotations

import itertools
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.emit.kernels.llvm_wide import DOTS, HALF_DOTS, PAIRS, wide_features
from pybuild.host import jit
from pybuild.ir.graph import Quant
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.wide_vectors import FEATURE
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor

HOST = TARGETS["host"]
RULES = ("double", "away", "single", "even")
CHANNELS = (1, 3, 8, 10, 15, 16, 17, 24, 32, 40, 48, 64, 70, 144)
PRODUCTS = {"avx512vnni": DOTS, "avxvnni": HALF_DOTS, "avx2": PAIRS, "none": ""}


def _layer(seed: int) -> Case:
    """A layer of that seed: windows, strides, gaps and padding of all kinds; sums to
    the ends of what the epilogues' cheap form is proven for, and beyond."""
    chance = np.random.default_rng((77, seed))
    inside, outs = (int(chance.choice(CHANNELS)) for _ in range(2))
    if seed % 5 == 0:
        x: tuple[int, ...] = (int(chance.integers(1, 20)), inside)
        w: tuple[int, ...] = (outs, inside)
        op, attrs = "dense", dict[str, object]()
    else:
        op, (x, w, attrs) = "conv2d", _window(chance, inside, outs)
    most = int(chance.choice([7, 127]))
    scales = tuple(float(s) for s in chance.uniform(0.002, 0.02, outs))
    weights = chance.integers(-most - 1, most + 1, w).astype(np.int8)
    bias = chance.integers(-3000, 3000, outs).astype(np.int32)
    rule = RULES[seed % 4]
    inputs = (
        tensor(x, INT8, 0.05, int(chance.integers(-128, 128))),
        (w, INT8, _by_channel(scales)),
        tensor((outs,), INT32),
    )
    out = tensor(
        (), INT8, float(chance.uniform(0.05, 0.6)), int(chance.integers(-9, 9))
    )
    clamp = (None, None) if seed % 3 else (0.0, 6.0)
    return case(op, inputs, out, {1: weights, 2: bias}, rounding=rule,
                clamp=clamp, **attrs)  # fmt: skip


def _window(
    chance: np.random.Generator, inside: int, outs: int
) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, object]]:
    kernel = tuple(int(n) for n in chance.integers(1, 6, 2))
    kernel = (1, 1) if chance.integers(3) == 0 else kernel
    stride = int(chance.integers(1, 4))
    gaps = (1 + int(chance.integers(3) == 0), 1 + int(chance.integers(3) == 0))
    reach = [(k - 1) * d for k, d in zip(kernel, gaps, strict=True)]
    pads = tuple(int(chance.integers(0, r + 1)) for r in (*reach, *reach))
    sides = [int(chance.integers(r + 2, r + 30)) for r in reach]
    attrs = {"strides": (stride, stride), "dilations": gaps, "pads": pads}
    return (1, *sides, inside), (outs, *kernel, inside), dict(attrs)


def _by_channel(scales: tuple[float, ...]) -> Quant:
    return Quant(scales, (0,) * len(scales), 0)


def _wide(one: Case) -> list[Candidate]:
    return [
        offer
        for offer in candidates(one.node, one.graph, HOST)
        if offer.func is not None and "wide" in offer.func.name
    ]


def _jobs(seeds: range) -> list[Job]:
    jobs = []
    for seed in seeds:
        one = _layer(seed)
        found = _wide(one)
        assert found, seed
        jobs += [Job(offer, one.arrays, {"y": one.expected()}) for offer in found]
    return jobs


def _check(jobs: list[Job], results: list[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        name = job.candidate.func.name if job.candidate.func else ""
        np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("product", PRODUCTS)
def test_llvm_equals_numpy(product: str) -> None:
    """A product that this processor does not have is left to the others."""
    if product != "none" and product not in _processor():
        pytest.skip(f"this processor has no {product}")
    features = frozenset({FEATURE, PRODUCTS[product]})
    # all ways to copy, sum and end by one; of the others what differs, the products
    jobs = _jobs(range(12 if product == "avxvnni" else 30))
    _check(jobs, run_llvm(jobs, features))


@SOME
def test_c_equals_numpy(some: Some, tmp_path: Path) -> None:
    jobs = some(_jobs(range(60, 67)))
    _check(jobs, run_c(jobs, tmp_path))


@pytest.mark.sweep
def test_many_more_layers() -> None:
    jobs = _jobs(range(1000, 1400))
    _check(jobs, run_llvm(jobs, frozenset({FEATURE, DOTS})))


def _processor() -> set[str]:
    return {f[1:] for f in jit.host_features().split(",") if f.startswith("+")}


def test_a_processor_decides() -> None:
    """The JIT takes the widest product that the processor has."""
    assert wide_features(frozenset({"avx512vnni", "avxvnni"})) == {FEATURE, DOTS}
    assert wide_features(frozenset({"avxvnni"})) == {FEATURE, HALF_DOTS}
    assert wide_features(frozenset({"avxvnni", "avx2"})) == {FEATURE, HALF_DOTS}
    assert wide_features(frozenset({"avx2"})) == {FEATURE, PAIRS}
    assert wide_features(frozenset({"neon"})) == {FEATURE}
    with mock.patch.object(jit, "host_features", lambda: "+avx2,-avx512vnni"):
        assert jit.vector_features() == {FEATURE, PAIRS}


def test_sums_to_the_end_of_a_word() -> None:
    """Without a sign inputs reach twice as far, sums do not: they begin lower."""
    jobs = []
    for sign, x in itertools.product((1, -1), (-128, 127)):
        weights = np.full((16, 131_000), 127 * sign, np.int8)
        inputs = (tensor((1, 131_000), INT8, 0.05, 0),
                  (weights.shape, INT8, _by_channel((0.01,) * 16)),
                  tensor((16,), INT32))  # fmt: skip
        out, bias = tensor((), INT8, 1e4, 0), np.full(16, x, np.int32)
        one = case("dense", inputs, out, {1: weights, 2: bias}, rounding="double",
                   clamp=(None, None))  # fmt: skip
        one.arrays["x0"][:] = x
        (offer,) = _wide(one)
        jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
    results = run_llvm(jobs, frozenset({FEATURE}))
    _check(jobs, results)
    assert len({int(result["y"][0, 0]) for result in results}) > 1
