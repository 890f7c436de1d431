"""gcc's static analyser finds nothing in crt and in generated C, for this machine and
for a Cortex-M4: it follows paths through a file for null, freed and unset memory."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from tests.conftest import made_once
from tests.evidence.nets import DIGITS, STREAMS
from tests.graphs.networks import classifier
from tests.toolchains import SOURCES, require

COMPILERS = ("gcc", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb")
FLAGS = ("-std=c99", "-O1", "-fanalyzer", "-Werror", "-DCRT_WITH_SELFTEST")


def analysed(compiler: str, sources: Sequence[Path], folder: Path) -> str:
    """What is said of the files; "": nothing."""
    tool, *core = compiler.split()
    places = [f"-I{folder}", f"-I{crt_include()}"]
    words = [require(tool), *core, *FLAGS, *places, "-c", *map(str, sources)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 or "-Werror=analyzer" in done.stderr, done.stderr
    return done.stderr


def _make(folder: Path) -> None:
    for name, kind in (("whole", "int8"), ("real", "float32")):
        classifier(name, kind).model().build(folder / name, target="cortex-m4")
    digits = pybuild.load(DIGITS / "digits_int8.tflite")
    digits.build(folder / "digits", target="cortex-m4", push="image", verify=True)
    gru = pybuild.load(STREAMS / "gru.onnx", state={"h": "h_next"})
    gru.build(folder / "gru", params="replaceable")


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "analysed", _make)


@pytest.mark.parametrize(
    "compiler", [COMPILERS[0], pytest.param(COMPILERS[1], marks=pytest.mark.sweep)]
)
def test_nothing_is_found_in_crt(compiler: str, tmp_path: Path) -> None:
    assert analysed(compiler, SOURCES, tmp_path) == ""


@pytest.mark.parametrize("name", ["whole", "real", "digits", "gru"])
def test_nothing_is_found_in_generated_c(name: str, trees: Path) -> None:
    sources = sorted((trees / name).glob("*.c"))
    assert sources and analysed(COMPILERS[1], sources, trees / name) == ""


def test_a_fault_is_found(tmp_path: Path) -> None:
    """A copy to a home that a tensor may lack."""
    source = tmp_path / "fault.c"
    source.write_text(
        '#include "crt/slots.h"\n'
        "void fault(struct crt_graph *g, const struct crt_tensor *t, const void *p);\n"
        "void fault(struct crt_graph *g, const struct crt_tensor *t, const void *p)\n"
        "{\n    crt_copy(crt_home(g, t), p, t->bytes);\n}\n"
    )
    for compiler in COMPILERS:
        assert "use of NULL where non-null" in analysed(compiler, [source], tmp_path)
