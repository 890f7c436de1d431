"""Every kernel of every operator's case stays inside of its tensors, for any input;
what is not proven is named here and in docs/bounds.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.bounds.layers import bounds, pointers
from pybuild.bounds.values import Memory
from pybuild.bounds.walk import accesses
from pybuild.cli import main
from pybuild.kernels.base.candidate import Candidate
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from tests.kernels.kernel_bench import Job, run_c
from tests.ops.cases import cases
from tests.ops.suite import model
from tests.perf.layers import layer
from tests.perf.measure import model as perf_model
from tests.toolchains import ROOT

# operators whose kernels read a table at a place that follows from the values' order or
# from bits of their sum, and the tables
BY_ARITHMETIC = {
    "softmax": {"exponentials", "reciprocals"},
    "logistic": {"points"},
    "tanh": {"points"},
}
CORES = ("generic", "cortex-m4", "cortex-m55", "cortex-m0", "rv32imc", "cortex-m3")
# cases of which a proof of some core finds no end of an access, though each is inside:
# these run with sanitizers instead
UNPROVEN = {
    "conv-dilated-int8": ("cortex-m3",),
    "conv-odd_row_of_24_outputs-int8": ("cortex-m3", "rv32imc"),
    "conv-winograd_odd_sides_and_outputs-int8": ("cortex-m3",),
}
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.parametrize("core", CORES)
def test_cases_stay_inside(core: str) -> None:
    """A core's share of the cases, each of which some core has, and two have."""
    all_cases, own = list(cases()), CORES.index(core)
    taken = [c for n, c in enumerate(all_cases) if {own, own + 3} & {n % 6, n % 6 + 6}]
    assert len(taken) >= len(all_cases) // 4
    for case in taken:
        if core in UNPROVEN.get(case.name, ()):
            continue
        library = model(case, "litert").build(target=core, **case.options)
        told = library.report.bounds
        for found, limits in zip(bounds(library.plan), told, strict=True):
            assert found.accesses
            # what the report of each build says: nothing is open but where data leads
            assert limits.data_places or not found.open
            named = BY_ARITHMETIC.get(found.op, ())
            tables = {f"load from constant {name}" for name in named}
            assert {what.partition(":")[0] for what in found.open} <= tables, found


def test_what_is_not_proven_stays_inside_with_sanitizers(tmp_path: Path) -> None:
    jobs, chance = [], np.random.default_rng(1)
    for case in (c for c in cases() if c.name in UNPROVEN):
        for core in UNPROVEN[case.name]:
            library = model(case, "litert").build(target=core, **case.options)
            (found,), graph = bounds(library.plan), library.plan.graph
            assert found.open  # else the case leaves the table
            given = {
                n: chance.integers(-128, 128, graph.tensor(n).shape).astype(np.int8)
                for n in graph.inputs
            }
            wanted = interpret(graph, given)
            outputs = {n: wanted[n] for n in graph.outputs}
            (step,) = library.plan.steps
            jobs.append(Job(step.candidate, given, outputs))
    assert len(jobs) == sum(map(len, UNPROVEN.values()))
    for job, result in zip(jobs, run_c(jobs, tmp_path), strict=True):
        for name, value in job.outputs.items():
            np.testing.assert_array_equal(result[name], value)


def layers(library: Library) -> list[Candidate]:
    steps = [step.candidate for step in library.plan.steps]
    return [one for one in steps if one.func is not None]


@pytest.mark.parametrize("core", ["generic", "cortex-m4", "cortex-m55", "cortex-m0"])
def test_a_byte_less_is_noticed(core: str) -> None:
    """Of each output and of each constant, whose last byte is used."""
    library = pybuild.load(DIGITS).build(target=core, name="digits")
    for candidate in layers(library):
        given = pointers(candidate)
        for number, memory in enumerate(given):
            if not memory.name.startswith(("output", "constant")):
                continue
            less = Memory(memory.name, memory.bytes - 1)
            tried = [less if i == number else one for i, one in enumerate(given)]
            assert candidate.func is not None
            found = accesses(candidate.func, candidate.args, tried)
            assert any(not x.is_inside for x in found), (candidate.func.name, memory)


def test_a_byte_stored_in_a_place_of_its_own_is_noticed() -> None:
    """Eight pixels of a channel: of 12 pixels of 42 channels the first eight."""
    made = layer(75)
    library = perf_model(made).build(target="cortex-m55", rounding=made.rounding)
    (candidate,) = layers(library)
    given = pointers(candidate)
    assert candidate.func is not None and "_eights_" in candidate.func.name
    found = accesses(candidate.func, candidate.args, given)
    assert found and all(one.is_inside for one in found)
    stored = [(x.least, x.end) for x in found if x.memory is given[0]]
    assert stored[0] == (0, 8 * 42) and stored[-1][1] == given[0].bytes == 12 * 42


def test_what_may_be_replaced_is_not_known() -> None:
    library = pybuild.load(DIGITS).build(target="cortex-m4", name="digits")
    (first, *_) = [one for one in layers(library) if one.constants]
    kept = [memory.array is not None for memory in pointers(first)]
    packed = [replace(one, parameters=("weights",)) for one in first.constants]
    replaced = pointers(replace(first, constants=tuple(packed)))
    assert any(kept)
    assert not any(memory.array is not None for memory in replaced)


def test_the_verb_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", str(DIGITS), "--target", "cortex-m4", "--stage", "bounds"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "proven" in out
    assert "not proven" not in out
    assert main([*words, "pointwise"]) == 0
    assert len(capsys.readouterr().out.splitlines()) < len(out.splitlines())
