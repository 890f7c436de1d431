"""Between float32 and bytes on cores where operations on floats are calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Quant, Tensor
from pybuild.kernels.portable.convert import thresholds
from pybuild.kernels.table import candidates
from pybuild.ops.fixed_point.quant import quantized
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import FLOAT32, INT8, UINT8, Case, case, tensor

# scale, zero point, type, rule: of one level less than a power of two, of one, of more
QUANTS = (
    (0.1, 3, INT8, "double"), (1 / 255, -128, INT8, "double"), (0.25, 0, INT8, "even"),
    (0.0078125, 127, INT8, "even"), (3e-41, 0, INT8, "double"),
    (0.3, 130, UINT8, "even"), (3e38, -1, INT8, "double"),
    (1e-60, 5, INT8, "even"),
)  # fmt: skip
SPECIAL = (0.0, -0.0, 1e-45, -1e-45, 1e-39, np.inf, -np.inf, np.nan, -np.nan, 3.4e38)


def _edges(scale: float, rule: str) -> Array:
    """Numbers around all thresholds, of both signs, and what is no number."""
    least = thresholds(scale, rule, 255).astype(np.int64)
    bits = np.concatenate([least - 1, least, least + 1]).astype(np.int32)
    numbers = bits.view(np.float32)
    special = np.asarray(SPECIAL, np.float32)
    return np.concatenate([special, numbers, -numbers])


@cache
def _jobs() -> tuple[Job, ...]:
    jobs = []
    for scale, zero, dtype, rule in QUANTS:
        values = _edges(scale, rule)
        y = tensor((), dtype, scale, zero)
        one = case("quantize", (tensor(values.shape, FLOAT32),), y, rounding=rule)
        jobs.append(_job(Case(one.node, one.graph, {"x0": values})))
    for dtype in (INT8, UINT8):
        numbers = np.arange(dtype.low, dtype.high + 1).astype(dtype.numpy)
        x = tensor(numbers.shape, dtype, 0.37, 5)
        one = case("dequantize", (x,), tensor((), FLOAT32))
        jobs.append(_job(Case(one.node, one.graph, {"x0": numbers})))
    return tuple(jobs)


def _job(one: Case) -> Job:
    (offer,) = candidates(one.node, one.graph, TARGETS["cortex-m0"])
    assert offer.func is not None
    assert "search" in offer.func.name or "table" in offer.func.name
    return Job(offer, one.arrays, {"y": one.expected()})


def check(jobs: Sequence[Job], results: list[dict[str, Array]]) -> None:
    for job, result in zip(jobs, results, strict=True):
        np.testing.assert_array_equal(result["y"], job.outputs["y"])


def test_llvm_equals_numpy() -> None:
    check(_jobs(), run_llvm(_jobs()))


def test_c_equals_numpy(tmp_path: Path) -> None:
    check(_jobs(), run_c(_jobs(), tmp_path, "gcc"))


def test_few_numbers_have_no_tables() -> None:
    y = tensor((), INT8, 0.1, 3)
    few = (
        case("quantize", (tensor((63,), FLOAT32),), y, rounding="double"),
        case("dequantize", (tensor((255,), INT8),), tensor((), FLOAT32)),
    )
    for one in few:
        (offer,) = candidates(one.node, one.graph, TARGETS["cortex-m0"])
        assert [packed.role for packed in offer.constants] == ["scale"]


@pytest.mark.sweep
@pytest.mark.parametrize("rule", ["double", "even"])
def test_every_number_has_its_level(rule: str) -> None:
    """All bits from 0 to infinity; a number's sign is that of its steps."""
    whole = Tensor("steps", (), DType.INT16, Quant((0.0213,), (0,)))
    least = thresholds(0.0213, rule, 255)
    for start in range(0, 0x7F800001, 1 << 24):
        bits = np.arange(start, min(start + (1 << 24), 0x7F800001), dtype=np.int32)
        steps = np.minimum(quantized(bits.view(np.float32), whole, rule), 255)
        found = np.searchsorted(least, bits, side="right")
        assert np.array_equal(found, steps), hex(start)
        low = quantized(-bits.view(np.float32), whole, rule)
        assert np.array_equal(np.maximum(low, -255), -steps), hex(start)
