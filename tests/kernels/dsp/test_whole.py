"""Depthwise layers of which all rows of four channels are widened at once, two columns
a word: every form of window equals numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.ir.graph import Quant
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import (
    Job,
    must_be_equal,
    named_jobs,
    run_c,
    run_llvm,
)
from tests.kernels.kernel_cases import Case, weighted_case

M4 = TARGETS["cortex-m4"]
# x, weights, stride
LAYERS = (
    ((1, 7, 5, 8), (3, 3, 8), 2),
    ((2, 5, 9, 6), (3, 3, 6), 1),
    ((1, 8, 8, 16), (1, 1, 16), 1),
    ((1, 6, 3, 16), (3, 3, 16), 1),
    ((1, 9, 6, 5), (5, 5, 5), 2),
    ((1, 4, 4, 4), (7, 7, 4), 1),
    ((1, 1, 8, 12), (1, 5, 12), 1),
    ((1, 11, 2, 8), (3, 3, 16), 1),
    ((1, 8, 14, 64), (3, 3, 64), 1),
)


def _cases() -> Iterator[Case]:
    for rounding in ("double", "single"):
        for x, w, stride in LAYERS:
            yield _case(x, w, stride, rounding)


def _case(
    x: tuple[int, ...], w: tuple[int, ...], stride: int, rounding: str = "double"
) -> Case:
    one = weighted_case("depthwise_conv2d", x, w, strides=(stride, stride))
    node = replace(one.node, attrs={**one.node.attrs, "rounding": rounding})
    # scales for which no cheaper end is proven
    scales = tuple(np.float32(np.linspace(0.002, 0.02, w[2])).tolist())
    weights = replace(one.graph.tensor("x1"), quant=Quant(scales, (0,) * w[2], 2))
    tensors = {**one.graph.tensors, "x1": weights}
    return replace(
        one, node=node, graph=replace(one.graph, nodes=(node,), tensors=tensors)
    )


@cache
def _jobs() -> list[tuple[str, Job]]:
    return named_jobs(_cases(), ("cortex-m4",), ("dsp_whole", "dsp_image"))


def test_forms() -> None:
    """Each form is among what the next tests run; others are rings."""
    names = [name for name, _ in _jobs() if "dsp_whole" in name]
    for form in ("_padded", "_stride2", "_tail", "_once", "_rounded", "_multiplied"):
        assert {form in name for name in names} == {True, False}, form


def test_by_llvm() -> None:
    must_be_equal(_jobs(), run_llvm)


@pytest.mark.slow
@SOME
def test_by_c_with_sanitizers(some: Some, tmp_path: Path) -> None:
    must_be_equal(some(_jobs()), lambda jobs: run_c(jobs, tmp_path))


def _ways(x: tuple[int, ...]) -> set[str]:
    one = _case(x, (3, 3, x[3]), 1)
    names = [c.func.name for c in candidates(one.node, one.graph, M4) if c.func]
    return {way for way in ("image", "whole") for n in names if f"dsp_{way}_" in n}


def test_which_images() -> None:
    """A ring is for what is large, and where its scratch counts beside the tensors."""
    assert _ways((1, 8, 8, 512)) == {"whole"}
    assert _ways((1, 8, 8, 16)) == {"image", "whole"}
    assert _ways((1, 30, 26, 8)) == {"image"}
