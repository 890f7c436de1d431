"""Between float32 and integers: on cores where operations on floats are calls, and by
instructions of an FPU or of vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import program_of, run_program
from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Quant, Tensor, verify
from pybuild.ir.loop import INT16
from pybuild.kernels.portable.convert import thresholds
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.fixed_point.quant import quantized, rounded_away
from pybuild.targets.target import TARGETS
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.kernels.kernel_cases import (
    FLOAT32,
    INT8,
    UINT8,
    Case,
    case,
    tensor,
)
from tests.perf.measure import EMITS, device

# scale, zero point, type, rule: of one level less than a power of two, of one, of more
QUANTS = (
    (0.1, 3, INT8, "double"), (1 / 255, -128, INT8, "double"), (0.25, 0, INT8, "even"),
    (0.0078125, 127, INT8, "even"), (3e-41, 0, INT8, "double"),
    (0.3, 130, UINT8, "even"), (3e38, -1, INT8, "double"),
    (1e-60, 5, INT8, "even"),
)  # fmt: skip
SPECIAL = (0.0, -0.0, 1e-45, -1e-45, 1e-39, np.inf, -np.inf, np.nan, -np.nan, 3.4e38)


def _edges(scale: float, rule: str) -> Array:
    """Numbers around all thresholds, of both signs, and what is not a number."""
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


# with an FPU, or vectors: those, and int16, with and without a zero point
UNITS = ("cortex-m4", "cortex-m55")
MORE = (
    *QUANTS, (0.1, 0, INT16, "double"), (0.0002, 77, INT16, "double"),
    (0.003, 0, INT16, "even"), (0.003, -9, INT16, "even"),
    (0.003, -32768, INT16, "even"), (0.02, 32767, INT16, "even"),
    (0.3, 0, UINT8, "double"), (0.02, 255, UINT8, "double"),
)  # fmt: skip


def _real_cases() -> list[Case]:
    """Of lengths that eights and fours divide, or not."""
    chance, cases = np.random.default_rng(5), []
    for number, (scale, zero, dtype, rule) in enumerate(MORE):
        with np.errstate(over="ignore"):
            far = chance.normal(0, 30000, 600).astype(np.float32) * np.float32(scale)
        values = np.concatenate([_edges(scale, rule), far])
        values = values[: len(values) // 8 * 8 - number % 8]
        y = tensor((), dtype, scale, zero)
        one = case("quantize", (tensor(values.shape, FLOAT32),), y, rounding=rule)
        cases.append(Case(one.node, one.graph, {"x0": values}))
    for dtype in (INT8, UINT8, INT16):
        numbers = np.arange(dtype.low, min(dtype.high, 300)).astype(dtype.numpy)
        x = tensor(numbers.shape, dtype, 0.37, 5)
        one = case("dequantize", (x,), tensor((), FLOAT32))
        cases.append(Case(one.node, one.graph, {"x0": numbers}))
    return cases


@cache
def _real_jobs() -> tuple[Job, ...]:
    jobs, names = [], set()
    for one in _real_cases():
        for core in UNITS:
            (offer,) = candidates(one.node, one.graph, TARGETS[core])
            assert offer.func is not None
            names.add(offer.func.name)
            jobs.append(Job(offer, one.arrays, {"y": one.expected()}))
    for key in (
        "s8_away_fpu", "s8_even_fpu_rest", "u8_away_fpu", "s16_away_fpu",
        "s8_away_mve", "s8_even_mve", "u8_away_mve", "s16_even_mve",
        "s16_even_fpu_zero",
    ):  # fmt: skip
        assert any(f"quantize_{key}" in name for name in names), (key, names)
    return tuple(jobs)


def test_units_by_llvm() -> None:
    check(_real_jobs(), run_llvm(_real_jobs()))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_units_by_c(compiler: str, tmp_path: Path) -> None:
    check(_real_jobs(), run_c(_real_jobs(), tmp_path, compiler))


@pytest.mark.parametrize("core", UNITS)
@pytest.mark.parametrize("emit", EMITS)
def test_units_on_a_core(core: str, emit: str) -> None:
    on, by_rule = device(core), defaultdict[str, list[Case]](list)
    for one in _real_cases():
        even = one.node.attrs.get("rounding") == "even"
        by_rule["onnx" if even else "litert"].append(one)
    assert len(by_rule) == 2
    for rounding, cases in by_rule.items():
        model = Model("units", _together(cases), rounding, "0" * 64)
        library = model.build(name="units", target=core, emit=emit, input="keep")
        given = {f"x{n}": one.arrays["x0"] for n, one in enumerate(cases)}
        (found,) = run_program(on, program_of(on, library), [given])
        for n, one in enumerate(cases):
            np.testing.assert_array_equal(found[f"y{n}"], one.expected(), str(one.node))


def _together(cases: Sequence[Case]) -> Graph:
    """One graph of layers without a connection: one program of a core."""
    nodes, tensors = [], {}
    for n, one in enumerate(cases):
        names = {"x0": f"x{n}", "y": f"y{n}"}
        for old, new in names.items():
            tensors[new] = replace(one.graph.tensor(old), name=new)
        made = replace(one.node, name=f"n{n}", inputs=(f"x{n}",), outputs=(f"y{n}",))
        nodes.append(made)
    x, y = (tuple(f"{end}{n}" for n in range(len(cases))) for end in "xy")
    graph = Graph("units", "units", tuple(nodes), tensors, x, y)
    verify(graph)
    return graph


def test_a_high_half_rounds_ties_away() -> None:
    """Of all steps in 1/256 that int16 may hold."""
    for start in range(-(1 << 24), 1 << 24, 1 << 22):
        steps = np.arange(start, start + (1 << 22), dtype=np.int64)
        made = (steps * ((1 << 24) + 1) + (1 << 31)) >> 32
        assert np.array_equal(made, rounded_away(steps / 256)), start


def test_what_no_unit_can_do_stays_plain() -> None:
    few = tensor((3,), FLOAT32)
    for scale, zero, dtype, rule, x in (
        (1e-37, 0, INT8, "double", tensor((64,), FLOAT32)),
        (0.1, 3, INT8, "even", few),
    ):
        one = case("quantize", (x,), tensor((), dtype, scale, zero), rounding=rule)
        (offer,) = candidates(one.node, one.graph, TARGETS["cortex-m4"])
        assert offer.func is not None and "fpu" not in offer.func.name
