"""Every operator case x back end: numpy against LLVM, C (gcc with sanitizers,
clang with traps) and a Cortex-M4 in QEMU, integers exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.host.trace import recorded
from pybuild.install import crt_include, crt_sources
from pybuild.ops.interpret import interpret
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.conftest import made_once
from tests.ops.cases import Case, cases
from tests.ops.suite import Suite, model, write_all_suites, write_suites
from tests.toolchains import SANITIZE, STRICT, require, run

SEEDS = (0, 1, 2, 3, 4)
BY_LLVM = ("litert", "onnx")  # of the rules of rounding


@pytest.fixture
def suite(which: str, tmp_path_factory: pytest.TempPathFactory) -> Suite:
    """By its name, or "all NAME": that of all roundings."""
    every, _, kind = which.rpartition(" ")
    write = write_all_suites if every else write_suites
    return Suite(made_once(tmp_path_factory, f"{every}suites", write) / kind)


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
@pytest.mark.parametrize("rounding", BY_LLVM)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_llvm(case: Case, rounding: str, target: str) -> None:
    if not case.is_changed_by(rounding, BY_LLVM):
        return
    # kernels that take arguments for one target, that hold them for the other; in C
    # it is the other way round
    options = {"rounding": rounding, "alone": target != "generic", **case.options}
    library = model(case, rounding).build(name="layer", target=target, **options)
    if target != "generic":
        known = model(case, rounding).build(name="layer", **options)
        if library.sources() == known.sources():
            return
    net = library.host("llvm")
    for seed in SEEDS:
        inputs = case.inputs(seed)
        expected = interpret(library.plan.graph, inputs)
        net.arena[:] = 0x55 + seed
        for name, value in recorded(net, inputs).items():
            if value.dtype == np.float32:
                most = 1e-5 * max(1e-3, float(np.abs(expected[name]).max()))
                np.testing.assert_allclose(value, expected[name], rtol=0, atol=most)
            else:
                np.testing.assert_array_equal(value, expected[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "compiler"),
    [
        ("generic", "gcc"),
        ("dsp", "gcc"),
        *(
            pytest.param(f"all {kind}", compiler, marks=pytest.mark.sweep)
            for kind in ("generic", "dsp")
            for compiler in ("gcc", "clang")
        ),
    ],
)
def test_c_with_sanitizers(suite: Suite, compiler: str, tmp_path: Path) -> None:
    require(compiler)
    flags = {
        "gcc": SANITIZE["gcc"],
        "clang": ["-fsanitize=undefined", "-fsanitize-trap=all"],
    }[compiler]
    common = [*STRICT, "-O0", "-ffp-contract=off", "-DCRT_WITH_SELFTEST"]
    program = tmp_path / "suite"
    include = [f"-I{crt_include()}", f"-I{suite.folder}"]
    run([compiler, *common, *flags, *include, *suite.sources, *crt_sources(),
         "-o", program])  # fmt: skip
    assert run([program]).split() == [str(suite.cases), "passed,", "0", "failed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "which",
    [
        "spelled",
        pytest.param("all generic", marks=pytest.mark.sweep),
        pytest.param("all dsp", marks=pytest.mark.sweep),
    ],
)
def test_cortex_m4(suite: Suite, tmp_path: Path) -> None:
    target, image = "cortex-m4", tmp_path / "suite.elf"
    flags = [*STRICT, "-O2", "-DCRT_WITH_SELFTEST"]
    include = [f"-I{crt_include()}", f"-I{suite.folder}"]
    run([*compiler(CORES[target]), *flags, *include, *suite.sources, *crt_sources(),
         *link_flags(target, tmp_path), "-o", image])  # fmt: skip
    said = emulated(target, image)
    assert said.split() == [str(suite.cases), "passed,", "0", "failed"]
