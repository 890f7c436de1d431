"""Layers that slide a window, of seeds: any window, stride, gap and padding, images
smaller than them, all numbers of channels and groups. Each kernel that a core could
take for one equals numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, must_be_equal, run_c, run_llvm
from tests.kernels.kernel_cases import INT8, INT32, ROUNDINGS, Case, case, tensor

CORES = ("generic", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 20, 24, 31, 32, 33, 48)
SIDES = (1, 1, 2, 3, 3, 4, 5, 6, 7, 9)
CLAMPS = ((None, None), (0.0, None), (0.0, 6.0), (-1.0, 1.0))


@dataclass(frozen=True)
class _Chance:
    """Draws of one layer."""

    random: np.random.Generator

    def one(self, values: Sequence[Any]) -> Any:
        return values[int(self.random.integers(len(values)))]

    def sometimes(self, share: float) -> bool:
        return bool(self.random.random() < share)


def layer_of(seed: int, column: bool = False) -> Case:
    """The layer of a seed; column: its image and its window have one column."""
    chance = _Chance(np.random.default_rng((977, seed)))
    op = chance.one(("conv2d", "depthwise_conv2d", "max_pool2d", "avg_pool2d"))
    channels, wide = int(chance.one(CHANNELS)), chance.sometimes(0.25)
    window, attrs, sides = _window(chance, op)
    if column:
        window, sides[1] = (window[0], 1), 1
        attrs["pads"] = (attrs["pads"][0], 0, attrs["pads"][2], 0)
        sides[0] += int(chance.one((3, 7, 11, 20)))
    x = (int(chance.one((1, 1, 2))), *sides, channels)
    elem = DType.INT16 if wide else INT8
    zeros = (0, 0) if wide else chance.random.integers(-128, 128, 2)
    given = tensor(x, elem, 0.05, int(zeros[0]))
    attrs["clamp"] = chance.one(CLAMPS)
    if op == "max_pool2d":
        return case(op, (given,), kernel=window, **attrs)
    attrs["rounding"] = chance.one(ROUNDINGS)
    if op == "avg_pool2d":
        attrs["count_include_pad"] = chance.sometimes(0.5)
        return case(op, (given,), kernel=window, **attrs)
    groups, outs = _outputs(chance, op, channels)
    shape, axis = (*window, outs), 2
    if op == "conv2d":
        shape, axis, attrs["groups"] = (outs, *window, channels // groups), 0, groups
    weights = chance.random.integers(chance.one((-127, -128)), 128, shape)
    scales = np.float32(chance.random.uniform(0.004, 0.02, outs))
    step = 0.01 * np.sqrt(weights.size / outs) * (1.5 if wide else 4)
    long = DType.INT64 if wide else INT32
    bias = chance.random.integers(-3000, 3000, outs).astype(long.numpy)
    if wide:
        attrs["rounding"] = "wide"
    inputs = (
        given,
        (shape, INT8, Quant(tuple(scales.tolist()), (0,) * outs, axis)),
        ((outs,), long, None),
    )
    made = tensor((), elem, float(step), int(zeros[1]))
    values = {1: weights.astype(np.int8), 2: bias}
    return case(op, inputs, made, values, dilations=attrs.pop("gaps"), **attrs)


def _window(
    chance: _Chance, op: str
) -> tuple[tuple[int, int], dict[str, Any], list[int]]:
    """Rows and columns, strides and padding, of gaps too where there are weights; an
    image on which it stands at least once."""
    window = tuple(int(chance.one(SIDES)) for _ in range(2))
    strides = tuple(int(chance.one((1, 1, 2, 2, 3, 4, 5))) for _ in range(2))
    gaps = (1, 1)
    if "conv" in op and chance.sometimes(0.3):
        gaps = tuple(int(chance.one((1, 2, 3))) for _ in range(2))
    reach = [(k - 1) * d for k, d in zip(window, gaps, strict=True)]
    pads = [int(chance.random.integers(n + 1)) for n in (*reach, *reach)]
    if chance.sometimes(0.5):
        pads = [n // 2 for n in reach] + [n - n // 2 for n in reach]
    least = [max(1, n + 1 - pads[i] - pads[i + 2]) for i, n in enumerate(reach)]
    sides = [n + int(chance.one((0, 0, 1, 2, 3, 4, 6, 9, 13))) for n in least]
    attrs: dict[str, Any] = {"strides": strides, "pads": tuple(pads)}
    if "conv" in op:
        attrs["gaps"] = gaps
    return (window[0], window[1]), attrs, sides


def _outputs(chance: _Chance, op: str, channels: int) -> tuple[int, int]:
    """Groups, and output channels of all of them."""
    if op == "depthwise_conv2d":
        return channels, channels * int(chance.one((1, 1, 1, 2, 3)))
    divisors = [n for n in range(1, channels + 1) if channels % n == 0]
    groups = int(chance.one(divisors)) if chance.sometimes(0.3) else 1
    return groups, groups * int(chance.one((1, 2, 3, 4, 5, 8, 17)))


def _jobs(seeds: range) -> list[tuple[str, Job]]:
    return [one for seed in seeds for one in kernels_of(layer_of(seed))]


def kernels_of(layer: Case) -> Iterator[tuple[str, Job]]:
    """Of a layer, on any core: each once, in what it is given, too."""
    expected, seen = layer.expected(), set()
    for core in CORES:
        for choice in ("balanced", "size"):
            for offer in candidates(layer.node, layer.graph, TARGETS[core], choice):
                assert offer.func is not None
                tables = tuple(constant.array.tobytes() for constant in offer.constants)
                key = offer.func.name, offer.args, tables
                # sums of one part of a layer are the input of another kernel
                whole = all(out.tensor == "y" for out in offer.outputs)
                if whole and key not in seen:
                    seen.add(key)
                    job = Job(offer, layer.arrays, {"y": expected})
                    yield f"{offer.func.name} on {core}: {layer.node.attrs}", job


@pytest.mark.parametrize("part", range(4))
def test_by_llvm(part: int) -> None:
    must_be_equal(_jobs(range(8 * part, 8 * part + 8)), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some([*_jobs(range(100, 108))]), lambda jobs: run_c(jobs, tmp_path))


def test_windows_are_of_all_kinds() -> None:
    """Further apart than they are high, higher than the image, with gaps, grouped."""
    far = high = apart = grouped = 0
    for layer in map(layer_of, range(32)):
        attrs, x = layer.node.attrs, layer.graph.tensor("x0").shape
        rows = _rows(layer)
        far += attrs["strides"][0] > rows
        high += rows > x[1]
        apart += max(attrs.get("dilations", (1,))) > 1
        grouped += attrs.get("groups", 1) > 1
    assert min(far, high, apart, grouped) >= 2


def _rows(layer: Case) -> int:
    """Of a window."""
    if "pool" in layer.node.op:
        return int(layer.node.attrs["kernel"][0])
    shape = layer.graph.tensor("x1").shape
    return shape[1] if layer.node.op == "conv2d" else shape[0]


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(20))
def test_many_more_layers(part: int) -> None:
    must_be_equal(_jobs(range(1000 + 40 * part, 1040 + 40 * part)), run_llvm)
