"""float32 to int16 on cores where operations on floats are calls."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, Case, case, tensor
from tests.kernels.math.test_convert import SPECIAL, check

INT16 = DType.INT16
# scales of int16: where the exponent of one step is near both ends, of any mantissa
HALVES = (
    (1 / 32768, 0), (0.37, 5), (6.1e-5, -40), (1.9999999, 0), (1.0000001, 0),
    (3e-27, 0), (4e27, 11), (1e-36, 0), (1e37, 0), (1e-41, 0),
)  # fmt: skip


def _floats(numbers: Any) -> Array:
    """Some are beyond the greatest."""
    with np.errstate(over="ignore"):
        return np.asarray(numbers).astype(np.float32)


@cache
def _halves(rule: str) -> tuple[Job, ...]:
    """Every threshold of some scales, the numbers beside them, and seeded ones."""
    jobs, chance = [], np.random.default_rng(3)
    for scale, zero in HALVES:
        ties = _floats((np.arange(0, 33_000, 7) + 0.5) * scale)
        around = [np.nextafter(ties, np.float32(0)), ties, np.nextafter(ties, np.inf)]
        bits = chance.integers(-(2**31), 2**31, 20_000).astype(np.int32)
        spread = _floats(scale * 20_000 * chance.standard_normal(20_000))
        special = np.asarray(SPECIAL, np.float32)
        values = np.concatenate([special, *around, bits.view(np.float32), spread])
        values = np.concatenate([values, -values])
        y = tensor((), INT16, scale, zero)
        one = case("quantize", (tensor(values.shape, FLOAT32),), y, rounding=rule)
        one = Case(one.node, one.graph, {"x0": values})
        (offer,) = candidates(one.node, one.graph, TARGETS["cortex-m3"])
        assert offer.func is not None
        assert ("steps" in offer.func.name) == (1e-30 < scale < 1e30)
        jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
    return tuple(jobs)


@pytest.mark.parametrize("rule", ["double", "even"])
def test_int16_without_a_division(rule: str, tmp_path: Path) -> None:
    """By the integers of a float32: the same as by dividing it, at all ties."""
    check(_halves(rule), run_llvm(_halves(rule)))
    check(_halves(rule), run_c(_halves(rule), tmp_path, "gcc"))
