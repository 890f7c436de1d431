"""Objects linked with crt by GNU ld and by lld, run on simulated cores: every
output equals the host's bit for bit."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import pybuild
from pybuild.emit.llvm import contents
from pybuild.emit.llvm.model import ABI
from pybuild.targets.llvm import LLVM
from pybuild.verify.samples import samples
from tests.boards.programs import chain, compiler
from tests.conftest import model_path
from tests.graphs.networks import classifier
from tests.objects.images import CORES, LINKERS, linked, written
from tests.objects.models import Known, content, expected, library
from tests.ops.cases import cases
from tests.ops.suite import c_name
from tests.ops.suite import model as case_model
from tests.toolchains import ROOT, require_module, run

KINDS = ("int8", "float32")
# Unicorn has no Cortex-M55: see test_boards.py
SIMULATED = [name for name in CORES if name != "cortex-m55"]
# no core of these loads a word from an odd address
ALIGNED = ("cortex-m0", "rv32imc")
NETWORKS = ("kws", "vww", "ic", "ad")
ROUNDED = ("litert", "onnx")


def equal(image: Path, target: str, runs: list[Known], watch: bool = False) -> None:
    """Fails unless the core gives what is known."""
    require_module("unicorn")
    from tests.objects.simulated import Machine

    machine = Machine(target, image, watch)
    for known in runs:
        sizes = [len(data) for data in known.outputs]
        found = machine.infer(known.name, known.inputs, sizes)
        assert tuple(found) == known.outputs, known.name
    assert not machine.misaligned


# a core with an FPU and one without have a half of what there is each time; each core
# has both in sweeps
ALWAYS = (("cortex-m4", 0), ("rv32imc", 1))
HALVES = [
    pytest.param(*way, marks=() if way in ALWAYS else pytest.mark.sweep)
    for way in itertools.product(SIMULATED, (0, 1))
]


def test_every_target_is_tried() -> None:
    vectors = {"rv32imcv", "rv32imc_zve32x", "rv64gcv"}  # tests/kernels/rvv
    assert set(CORES) == set(LLVM) - vectors


def test_the_page_has_the_flags_that_are_tried() -> None:
    text = (ROOT / "docs" / "objects.md").read_text()
    for core in CORES.values():
        flags = " ".join((chain(core).name, *core.gcc))
        assert f"| `{core.name}` | `{flags}` |" in text


def _rarely_by_both(target: str, linker: str) -> object:
    """Each core by one linker, and by both in sweeps; one core always by both. lld's is
    zig, which builds its run-time library for each core."""
    first = "lld" if target == "rv32imc" else "gnu"
    marks = () if target == "cortex-m4" or linker == first else (pytest.mark.sweep,)
    return pytest.param(target, linker, marks=marks)


# by which of them a network is linked is tested below
@pytest.mark.parametrize(
    "linker",
    [
        name if n == 0 else pytest.param(name, marks=pytest.mark.sweep)
        for n, name in enumerate(LINKERS)
    ],
)
def test_constants_that_llvm_has_not_seen(
    linker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them are put in behind LLVM, not large ones alone."""
    monkeypatch.setattr(contents, "LEAST", 1)
    made = library(classifier("int8", "int8").model(), "int8", "cortex-m4")
    image = linked(tmp_path, "cortex-m4", linker, {made.name: content(made)})
    equal(image, "cortex-m4", expected(made, _inputs(made, 6)))


@pytest.mark.parametrize(
    ("target", "linker"), [_rarely_by_both(t, n) for t in SIMULATED for n in LINKERS]
)
def test_networks(target: str, linker: str, tmp_path: Path) -> None:
    made = [library(classifier(kind, kind).model(), kind, target) for kind in KINDS]
    objects = {one.name: content(one) for one in made}
    image = linked(tmp_path, target, linker, objects)
    runs = [k for one in made for k in expected(one, _inputs(one, 6))]
    equal(image, target, runs, target in ALIGNED)


def _inputs(made: pybuild.Library, count: int) -> Iterator[dict[str, pybuild.Array]]:
    return (dict(s.inputs) for s in samples(made.plan.graph, count))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "half"), HALVES)
def test_operators(target: str, half: int, tmp_path: Path) -> None:
    """Every case of tests/ops, the integers with two rules of rounding."""
    objects, runs = {}, []
    for case in [*cases()][half::2]:
        for rounding in ROUNDED:
            if case.is_changed_by(rounding, ROUNDED):
                name = c_name(case, rounding)
                made = library(case_model(case, rounding), name, target, rounding)
                objects[name] = content(made)
                runs += expected(made, [case.inputs(seed) for seed in (0, 3, 4)])
    linker = list(LINKERS)[SIMULATED.index(target) % 2]
    image = linked(tmp_path, target, linker, objects)
    equal(image, target, runs, target in ALIGNED)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "half"), HALVES)
def test_real_networks(target: str, half: int, tmp_path: Path) -> None:
    objects, runs = {}, []
    for name in NETWORKS[half::2]:
        path = model_path(f"{name}_int8.tflite")
        made = library(pybuild.load(path), name, target)
        objects[name] = content(made)
        runs += expected(made, _inputs(made, 2))
    linker = list(LINKERS)[(SIMULATED.index(target) + 1) % 2]
    equal(linked(tmp_path, target, linker, objects), target, runs)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("target", ["cortex-m4", "rv32imc"])
def test_another_crt_does_not_link(target: str, linker: str, tmp_path: Path) -> None:
    objects = {"int8": content(library(classifier().model(), "int8", target))}
    other = f"-Dcrt_abi_{ABI}=crt_abi_of_another"
    with pytest.raises(AssertionError, match=f"undefined.*crt_abi_{ABI}"):
        linked(tmp_path, target, linker, objects, other)


USER = """
#include "first.h"
static uint8_t arena[FIRST_ARENA_BYTES] __attribute__((aligned(16)));
struct first m;
void start(void);
void start(void)
{
    const struct first_memory memory = FIRST_MEMORY(arena);

    if (first_init(&m, &memory) == CRT_OK && first_image(&m) != NULL)
        (void)first_run(&m);
}
"""


@pytest.mark.parametrize("linker", LINKERS)
def test_what_nobody_uses_is_left_out(linker: str, tmp_path: Path) -> None:
    core = CORES["cortex-m4"]
    made = [library(classifier(n).model(), n, core.name) for n in ("first", "second")]
    for one in made:
        for file, data in one.compiled().items():
            if not file.endswith(".o"):
                (tmp_path / file).write_text(str(data))
    (tmp_path / "user.c").write_text(USER)
    objects = written(tmp_path, {one.name: content(one) for one in made})
    folders = [f"-I{tmp_path}", f"-I{pybuild.install.crt_include()}"]
    image, script = tmp_path / "user.elf", tmp_path / "user.ld"
    script.write_text(
        "SECTIONS { .text : { KEEP(*(.text.start)) *(.text*) *(.rodata*) } }"
    )
    tools = chain(core, LINKERS[linker])
    run([*compiler(core, LINKERS[linker]), "-O2", "-DCRT_NO_STRING_H", *folders,
         *pybuild.install.crt_sources(), *tmp_path.glob("*.c"), *objects,
         *tools.link_flags(core, str(script)),
         *(["-lc"] if linker == "gnu" else []), *tools.libraries(core),
         "-o", image])  # fmt: skip
    said = subprocess.run(["nm", image], capture_output=True, text=True).stdout
    assert "first_model" in said and "first_run" in said
    assert "second" not in said
