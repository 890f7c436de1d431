"""Copies, concats, slices, transposes and pads by words and vectors, of elements of
one, two and four bytes and of each length of a row: as numpy has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.loop import FLOAT32, INT8, INT16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.moves.blocks import ways
from pybuild.kernels.table import candidates
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import Case, case, tensor

# a Cortex-M3's words are those of all cores that load them at any address
CORES = ("cortex-m3", "cortex-m55")
COPIES = (3, 17, 131)
# shapes, and what is before and after each axis
PADS = (
    ((1, 3, 4, 5), ((0, 0), (1, 1), (1, 1), (0, 0))),
    ((1, 3, 4, 35), ((0, 0), (2, 0), (1, 3), (0, 0))),
    ((1, 2, 3, 40), ((0, 0), (0, 1), (0, 2), (5, 70))),
    ((2, 3, 5, 1), ((0, 1), (1, 0), (2, 0), (0, 0))),
    ((1, 2, 3, 2), ((0, 0), (1, 1), (0, 0), (0, 1))),
    ((4, 20), ((1, 2), (0, 0))), ((9,), ((0, 40),)), ((2,), ((1, 0),)),
    ((3, 50), ((0, 0), (17, 18))), ((1, 1, 90, 1), ((0, 0), (0, 0), (3, 0), (0, 0))),
)  # fmt: skip
JOINED = ((24, 12), (3, 1), (5, 70), (18, 33), (2, 2))


def _cases(dtype: DType) -> Iterator[Case]:
    for size in COPIES:
        yield case("copy", (tensor((size,), dtype),))
    for shape, pads in PADS if dtype is INT8 else PADS[dtype is FLOAT32 :: 4]:
        yield case("pad", (tensor(shape, dtype, 0.05, 3 * (dtype is INT8)),),
                   pads=pads, value=0.4)  # fmt: skip
    for sizes in JOINED:
        inputs = [tensor((2, 3, size), dtype) for size in sizes]
        yield case("concat", inputs, axis=2)
    yield case("slice", (tensor((3, 40), dtype),), begin=(1, 2), end=(3, 39),
               strides=(1, 1))  # fmt: skip
    yield case("transpose", (tensor((3, 4, 21), dtype),), perm=(1, 0, 2))


def _offers(one: Case, core: str) -> list[Candidate]:
    return candidates(one.node, one.graph, TARGETS[core])


def test_as_numpy_by_llvm_and_in_c(tmp_path: Path) -> None:
    jobs = []
    for dtype in (INT8, INT16, FLOAT32):
        for one in _cases(dtype):
            made = {"y": one.expected()}
            for core in CORES if dtype is not FLOAT32 else CORES[1:]:
                jobs += [Job(o, one.arrays, made) for o in _offers(one, core)]
    names = " ".join({job.candidate.func.name for job in jobs if job.candidate.func})
    forms = "bytes_row words_row words64_rest words16_rest vectors16 vectors64_rest"
    forms += " vectors_row halves_row ends border_3d"
    for word in forms.split():
        assert word in names, word
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("core", CORES)
def test_a_border_alone_is_less_than_all(core: str) -> None:
    one = case("pad", (tensor((1, 16, 16, 32)),),
               pads=((0, 0), (1, 1), (1, 1), (0, 0)), value=0.0)  # fmt: skip
    prices = {o.func.name: price(o, TARGETS[core]).instructions
              for o in _offers(one, core) if o.func}  # fmt: skip
    border = [n for n in prices if n.startswith("pad_border")]
    filled = [n for n in prices if not n.startswith("pad_border")]
    assert len(filled) == 1 and len(border) == 4
    assert min(prices[n] for n in border) <= 0.6 * prices[filled[0]]


@pytest.mark.parametrize("core", CORES)
def test_every_byte_of_a_row_is_done(core: str) -> None:
    """Once or twice, none of another row."""
    for size in range(1, 300):
        for by in ways(TARGETS[core], size):
            step = by.bytes
            begins = [0] if by.whole else range(0, size - step + 1, step)
            at = [b + u * by.unit for b in begins for u in range(by.turn)]
            at += [size - step + u * by.unit for u in range(by.turn)] * by.rest
            at = [min(place, size - by.unit) for place in at] if by.whole else at
            done = {place + i for place in at for i in range(by.unit)}
            assert done == set(range(size)), (size, by)


def test_other_cores_move_elements() -> None:
    assert ways(TARGETS["cortex-m0"], 64) == ways(TARGETS["rv32imc"], 64) == []
