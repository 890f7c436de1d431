"""Kernels of cores that multiply one by one: every layer, target and way to call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.ops.cases import cases
from tests.unit.kernel_bench import Job, run_c, run_llvm
from tests.unit.kernel_cases import Case, int8_cases

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
        if made.node.op == "depthwise_conv2d":
            yield made


@cache
def _jobs() -> list[tuple[str, Job]]:
    """One of each kernel."""
    jobs: dict[str, tuple[str, Job]] = {}
    for one in _layers():
        for target in SCALAR:
            for offer in candidates(one.node, one.graph, TARGETS[target]):
                if offer.finish is not None:  # a step of two: test_rows
                    continue
                assert offer.func is not None
                name = offer.func.name
                if "block" in name and name not in jobs:
                    (y,) = one.graph.outputs
                    made = {y: one.expected()}
                    jobs[name] = (y, Job(offer, one.arrays, made))
    assert len(jobs) > 100
    return list(jobs.values())


def _check(jobs: list[tuple[str, Job]], results: list[dict[str, np.ndarray]]) -> None:
    wrong = [
        job.candidate.func.name
        for (name, job), result in zip(jobs, results, strict=True)
        if not np.array_equal(result[name], job.outputs[name])
    ]
    assert not wrong, f"{len(wrong)} of {len(jobs)} differ: {sorted(set(wrong))}"


def test_llvm_equals_numpy() -> None:
    jobs = _jobs()[::2]
    _check(jobs, run_llvm([job for _, job in jobs]))


@pytest.mark.parametrize(
    ("compiler", "every"),
    [
        ("gcc", 3),
        pytest.param("gcc", 1, marks=pytest.mark.sweep),
        pytest.param("clang", 1, marks=pytest.mark.sweep),
    ],
)
def test_c_equals_numpy(compiler: str, every: int, tmp_path: Path) -> None:
    jobs = _jobs()[::every]
    _check(jobs, run_c([job for _, job in jobs], tmp_path, compiler))
