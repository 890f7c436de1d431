"""Kernels of cores that multiply one by one: every layer, target and way to call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.kernels.scalar.conv import fits_pairs
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, int8_cases, weighted_case
from tests.ops.cases import cases

SCALAR = ("cortex-m0", "cortex-m3", "rv32imc")
LOWEST, RANDOM = 0, 4


def _layers() -> Iterator[Case]:
    """Layers with weights, under the rules of rounding that have a proven form."""
    tables = (one for family in ("conv", "dense") for one in cases(family))
    for index, one in enumerate(one for one in tables if not one.dtype.is_float):
        graph = one.graph(("litert", "single")[index % 2])
        (node,) = graph.nodes
        seed = (RANDOM, RANDOM, LOWEST)[index % 3]
        yield Case(node, graph, {**graph.constants, **one.inputs(seed)})
    for made in int8_cases():
        if made.node.op in ("depthwise_conv2d", "mul"):
            yield made


def _few() -> Iterator[Case]:
    """Few taps, few channels, numbers of them that blocks do not divide."""
    for inputs, outputs, side in (
        (1, 8, 1), (2, 3, 1), (3, 1, 1), (3, 5, 1), (5, 7, 1), (7, 9, 1), (9, 2, 1),
        (1, 6, 3), (13, 13, 1),
    ):  # fmt: skip
        x, w = (1, 5, 7, inputs), (outputs, side, side, inputs)
        yield weighted_case("conv2d", x, w)
    for channels in (1, 2, 3):
        yield weighted_case("depthwise_conv2d", (1, 6, 7, channels), (3, 3, channels))
    # rows that are one block of pixels, with padding beside them and without
    for width, window, strides in (
        (5, (3, 3), (1, 1)), (10, (3, 3), (2, 2)), (1, (5, 1), (1, 1)),
        (3, (5, 5), (1, 1)), (2, (3, 2), (1, 1)), (4, (2, 2), (1, 2)),
        (1, (3, 3), (1, 1)),  # of which no pixel has the taps beside it
    ):  # fmt: skip
        x, w = (1, 7, width, 5), (*window, 5)
        yield weighted_case("depthwise_conv2d", x, w, strides=strides)
    yield from _on_padding()


def _on_padding() -> Iterator[Case]:
    """Images so small that a good part of each window stands beside them."""
    for x, w, stride in (
        ((2, 2, 2, 8), (8, 3, 3, 8), 1), ((1, 3, 3, 16), (10, 3, 3, 16), 2),
        ((1, 5, 3, 7), (9, 5, 5, 7), 1), ((1, 3, 6, 12), (4, 7, 3, 12), 1),
        ((1, 4, 4, 11), (8, 5, 5, 11), 2), ((1, 6, 9, 6), (12, 7, 7, 6), 1),
    ):  # fmt: skip
        pads = (w[1] // 2, w[2] // 2) * 2
        yield weighted_case("conv2d", x, w, strides=(stride, stride), pads=pads)


@cache
def _jobs() -> list[tuple[str, Job]]:
    """One of each kernel."""
    jobs: dict[str, tuple[str, Job]] = {}
    layers = [(one, SCALAR) for one in _layers()]
    layers += [(one, (*SCALAR, "cortex-m4", "cortex-m55")) for one in _few()]
    for one, targets in layers:
        for target in targets:
            for offer in candidates(one.node, one.graph, TARGETS[target]):
                if offer.finish is not None:  # a step of two: test_rows
                    continue
                assert offer.func is not None
                name = offer.func.name
                ours = any(word in name for word in ("block", "_rows_", "_proven"))
                if ours and name not in jobs:
                    (y,) = one.graph.outputs
                    made = {y: one.expected()}
                    jobs[name] = (y, Job(offer, one.arrays, made))
    assert len(jobs) > 100
    assert sum(name.startswith("depthwise_rows_") for name in jobs) > 8
    small = [n for n in jobs if n.startswith("conv2d_block") and "_image" in n]
    assert {"block8x1_" in name for name in small} == {True, False}
    return list(jobs.values())


def _small(w: Array) -> Array:
    """Weights whose sums of products just fit int16; of some channels by one sign."""
    flat = w.reshape(len(w), -1).astype(np.int64)
    flat[::3] = np.abs(flat[::3])
    most = np.maximum(np.abs(flat).sum(1, keepdims=True), 1)
    made = np.trunc(flat * (127 / most)).astype(np.int8)
    return made.reshape(w.shape)


@cache
def _paired(every: int) -> list[tuple[str, Job]]:
    """Kernels whose sums are two in a word; inputs at both ends, and any."""
    jobs: dict[str, tuple[str, Job]] = {}
    tables = (one for family in ("conv", "dense") for one in cases(family))
    for one in [one for one in tables if one.dtype is DType.INT8][::every]:
        graph = one.graph("litert")
        (node,) = graph.nodes
        w = node.inputs[1]
        constants = {n: v // 40 for n, v in graph.constants.items() if n != w}
        constants[w] = _small(graph.constants[w])
        # a sum that is one off must show
        quant = graph.tensor(w).quant
        assert quant is not None
        quant = replace(quant, scale=tuple(40 * s for s in quant.scale))
        tensors = {**graph.tensors, w: replace(graph.tensor(w), quant=quant)}
        graph = replace(graph, constants=constants, tensors=tensors)
        for target in SCALAR:
            seed = (LOWEST, LOWEST + 1, RANDOM)[len(jobs) % 3]
            arrays = {**constants, **one.inputs(seed)}
            for offer in candidates(node, graph, TARGETS[target], "speed"):
                name = offer.func.name if offer.func is not None else ""
                if "paired" in name and name not in jobs and offer.finish is None:
                    (y,) = graph.outputs
                    made = Case(node, graph, arrays).expected()
                    jobs[name] = (y, Job(offer, arrays, {y: made}))
    # M0 stores pixels as uint8
    assert {"unsigned" in name for name in jobs} == {True, False}
    return list(jobs.values())


@pytest.mark.parametrize(
    ("target", "layer", "kernel"),
    [
        ("cortex-m4", ((1, 9, 9, 3), (8, 1, 1, 3)), "block4x2_pointwise_shift9_by3"),
        ("cortex-m4", ((1, 9, 9, 4), (8, 1, 1, 4)), "conv2d_dsp"),
        ("cortex-m0", ((1, 9, 9, 5), (5, 1, 1, 5)), "block1x2_unsigned"),
        ("cortex-m0", ((1, 9, 9, 8), (8, 1, 1, 8)), "block4x1_unsigned"),
        ("cortex-m0", ((1, 9, 9, 1), (8, 1, 1, 1)), "block4x1_unsigned"),
        ("cortex-m3", ((1, 9, 9, 7), (8, 1, 1, 7)), "block4x2_pointwise_shift9_by7"),
        ("rv32imc", ((1, 9, 9, 9), (9, 3, 3, 9)), "block3x3"),
        ("cortex-m4", ((1, 9, 9, 3), (3, 3, 3)), "depthwise_block_image"),
        ("cortex-m55", ((1, 9, 9, 2), (3, 3, 2)), "depthwise_block_image"),
    ],
)
def test_small_layers_have_kernels_of_blocks(
    target: str, layer: tuple[tuple[int, ...], tuple[int, ...]], kernel: str
) -> None:
    x, w = layer
    one = weighted_case("conv2d" if len(w) == 4 else "depthwise_conv2d", x, w)
    offers = candidates(one.node, one.graph, TARGETS[target])
    best = min(offers, key=lambda offer: offer.cost)
    assert best.func is not None
    assert kernel in best.func.name
    # for less a plan would rather save its scratch; depthwise layers have none
    plain = [o.cost for o in offers if o.func and "tensor_double" in o.func.name]
    assert all(cost > 1.05 * best.cost for cost in plain)


@pytest.mark.parametrize("target", ["cortex-m3", "rv32imc"])
def test_taps_on_padding_are_no_products(target: str) -> None:
    """Nor is their price."""
    x, w = (1, 5, 5, 80), (80, 3, 3, 80)
    one = weighted_case("conv2d", x, w, strides=(2, 2))
    offers = candidates(one.node, one.graph, TARGETS[target])
    spent = {
        o.func.name: price(o, TARGETS[target]).instructions for o in offers if o.func
    }
    rows = min(n for name, n in spent.items() if "_image" not in name)
    (image,) = (n for name, n in spent.items() if "_image" in name)
    assert image < 0.8 * rows


def _check(jobs: list[tuple[str, Job]], results: list[dict[str, np.ndarray]]) -> None:
    wrong = [
        job.candidate.func.name
        for (name, job), result in zip(jobs, results, strict=True)
        if not np.array_equal(result[name], job.outputs[name])
    ]
    assert not wrong, f"{len(wrong)} of {len(jobs)} differ: {sorted(set(wrong))}"


def test_two_sums_in_a_word_are_two_sums() -> None:
    jobs = _paired(4)
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.sweep
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_two_sums_in_c(compiler: str, tmp_path: Path) -> None:
    jobs = _paired(1)
    _check(jobs, run_c([job for _, job in jobs], tmp_path, compiler))


@pytest.mark.parametrize(
    ("row", "fits"),
    [
        ([127, 1], True), ([127, 2], False), ([-127, -1], True), ([-128, -1], False),
        ([127, -127, 1], True), ([127, -127, 2], False), ([64, 64, -127], True),
        ([64, 64, -128], False),
    ],
)  # fmt: skip
def test_what_fits_half_a_word(row: list[int], fits: bool) -> None:
    """255 * 128 and 128 * 255 are below 2^15, the next are not."""
    assert fits_pairs(np.array([[0] * len(row), row])) == fits


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.sweep)])
def test_llvm_equals_numpy(every: int) -> None:
    jobs = _jobs()[1::every] + _jobs()[:1]
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.parametrize(
    ("compiler", "every"),
    [
        ("gcc", 2),
        pytest.param("gcc", 1, marks=pytest.mark.sweep),
        pytest.param("clang", 1, marks=pytest.mark.sweep),
    ],
)
@SOME
def test_c_equals_numpy(some: Some, compiler: str, every: int, tmp_path: Path) -> None:
    jobs = some(_jobs()[::every])
    _check(jobs, run_c([job for _, job in jobs], tmp_path, compiler))
