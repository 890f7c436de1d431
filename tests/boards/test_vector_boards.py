"""Layers with kernels on vectors on the Cortex-M55 of mps3-an547: the same bits as
numpy's, by C of every compiler and as an object of LLVM."""

from __future__ import annotations

import functools

import pytest

import pybuild
from tests.boards.devices import device
from tests.boards.side_by_side import built, must_equal_numpy
from tests.kernels.kernel_cases import Case
from tests.kernels.vector_layers import OPERATORS, OTHERS, layer

WAYS = [
    ("gcc", "c"),
    ("gcc", "obj"),
    pytest.param("clang", "c", marks=pytest.mark.sweep),
    pytest.param("zig", "c", marks=pytest.mark.sweep),
    pytest.param("zig", "obj", marks=pytest.mark.sweep),
]
# between them: every epilogue, edge, remainder and form of copying
SEEDS = range(9)


@functools.cache
def _cases(emit: str) -> dict[str, Case]:
    """LLVM makes every second of them; tests/perf/test_any_layer.py has more."""
    seeds = dict.fromkeys(OPERATORS, SEEDS) | dict.fromkeys(OTHERS, SEEDS[:5])
    turn = 2 if emit == "obj" else 1
    return {f"{op}{n}_": layer(op, n) for op in seeds for n in seeds[op][::turn]}


@functools.cache
def _library(emit: str) -> pybuild.Library:
    return built(_cases(emit), "cortex-m55", emit)


@pytest.mark.parametrize(("chain", "emit"), WAYS)
def test_random_layers(chain: str, emit: str) -> None:
    board, library = device("mps3-an547", chain), _library(emit)
    kernels = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("mve" in name for name in kernels) > len(kernels) * 2 // 3
    must_equal_numpy(board, library, _cases(emit))
