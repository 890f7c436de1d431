"""Layers with kernels on vectors on the Cortex-M55 of mps3-an547: the same bits as
numpy's, by C of every compiler and as an object of LLVM."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import program_of, run_program
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


def test_weights_larger_than_the_memory_beside_the_core() -> None:
    """716,800 bytes: the machine has 512 KB there, and 2 MB of SRAM for programs."""
    chance, builder = np.random.default_rng(1), pybuild.GraphBuilder("large")
    x = builder.input("x", (1, 256))
    weights = chance.normal(0, 1, (700, 256)).astype(np.float32)
    builder.output(builder.op("dense", x, builder.constant("w", weights)), "y")
    library = pybuild.build(builder.build(), target="cortex-m55")
    board, given = device("mps3-an547", "gcc"), chance.normal(0, 1, (1, 256))
    x32 = given.astype(np.float32)
    (found,) = run_program(board, program_of(board, library), [{"x": x32}])
    np.testing.assert_allclose(found["y"], x32 @ weights.T, 1e-4, 1e-4)
