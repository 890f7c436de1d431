"""However a compiler optimises, over all files at once too, networks and crt give the
bits of numpy: on this machine and on an emulated Cortex-M4."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include
from pybuild.targets.core import CORES
from tests.boards.programs import compiler, emulated, link_flags
from tests.conftest import made_once
from tests.graphs.networks import classifier
from tests.toolchains import ROOT, SOURCES, require, require_module, run

ZIG = (sys.executable, "-m", "ziglang", "cc")
FLAT = "-ffp-contract=off"  # as the build files of a tree have it
GRU = ROOT / "examples" / "streams" / "gru.onnx"
NETS = ("whole", "real", "gru")
RARELY = pytest.mark.sweep

PROGRAM = """\
#include "crt/error.h"
@includes
#include <stdio.h>

static int8_t arena[65536] __attribute__((aligned(16)));

int main(void)
{
    int error = 0;
@runs    printf("self-test: %s\\n", error == 0 ? "no error" : "an error");
    return error != 0;
}
"""
RUN = """\
    {{
        static struct {name} m;
        struct {name}_memory memory = {upper}_MEMORY(arena);

        memory.arena.bytes = sizeof arena;
        if ({name}_init(&m, &memory) != CRT_OK || {name}_selftest(&m) != CRT_OK)
            error = 1;
    }}
"""


def _make(folder: Path) -> None:
    """Self-tests of an int8 network and of two float ones, one with a state."""
    for target in ("host", "cortex-m4"):
        place = folder / target
        for name, kind in zip(NETS, ("int8", "float32"), strict=False):
            classifier(name, kind).model().build(place / name, name=name, target=target)
        gru = pybuild.load(GRU, state={"h": "h_next"})
        gru.build(place / "gru", name="gru", target=target)
    heads = "".join(f'#include "{name}.h"\n' for name in NETS)
    runs = "".join(RUN.format(name=name, upper=name.upper()) for name in NETS)
    text = PROGRAM.replace("@includes", heads).replace("@runs", runs)
    (folder / "main.c").write_text(text)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "same_bits", _make)


def files(trees: Path, target: str) -> list[object]:
    """Sources and flags of all of them."""
    folders = [trees / target / name for name in NETS]
    sources = [path for folder in folders for path in sorted(folder.glob("*.c"))]
    places = [f"-I{folder}" for folder in (*folders, crt_include())]
    flags = ["-std=gnu11", FLAT, "-DCRT_WITH_SELFTEST", *places]
    return [*flags, trees / "main.c", *sources, *SOURCES]


@pytest.mark.parametrize(
    ("tool", "how"),
    [
        ("gcc", "-O3 -march=native -flto"),
        ("clang", "-Oz -flto"),
        pytest.param("gcc", "-O0", marks=RARELY),
        pytest.param("gcc", "-Os", marks=RARELY),
        pytest.param("gcc", "-Oz", marks=RARELY),
        pytest.param("gcc", "-O2 -flto -fwhole-program", marks=RARELY),
        pytest.param("clang", "-Os", marks=RARELY),
        pytest.param("clang", "-O3 -march=native -flto", marks=RARELY),
        pytest.param("zig", "-Os", marks=RARELY),
        pytest.param("zig", "-O3 -march=native", marks=RARELY),
    ],
)
def test_on_this_machine(trees: Path, tool: str, how: str, tmp_path: Path) -> None:
    if tool == "zig":
        require_module("ziglang")
    command = [*ZIG] if tool == "zig" else [require(tool)]
    by_lld = tool == "clang" and "-flto" in how
    linker = [f"-fuse-ld={require('ld.lld')}"] if by_lld else []
    program = tmp_path / "program"
    run([*command, *how.split(), *linker, *files(trees, "host"), "-o", program])
    assert run([program]) == "self-test: no error\n"


@pytest.mark.parametrize(
    "how",
    [
        "-O3 -flto",
        pytest.param("-Os", marks=RARELY),
        pytest.param("-Oz", marks=RARELY),
        pytest.param("-O0", marks=RARELY),
    ],
)
def test_on_an_emulated_core(trees: Path, how: str, tmp_path: Path) -> None:
    program, flags = tmp_path / "program", how.split()
    core = [*compiler(CORES["cortex-m4"]), *flags, *files(trees, "cortex-m4")]
    run([*core, *link_flags("cortex-m4", tmp_path), "-o", program])
    assert "self-test: no error" in emulated("cortex-m4", program)


def test_an_answer_that_differs_is_seen(trees: Path, tmp_path: Path) -> None:
    """The same program with other weights of one network."""
    words = files(trees, "host")
    weights = trees / "host" / "whole" / "whole_weights.c"
    text = weights.read_text()
    other = re.sub(r"-?\b\d\d(?=,)", "17", text)
    assert other != text
    changed = tmp_path / "whole_weights.c"
    changed.write_text(other)
    words = [changed if word == weights else word for word in words]
    run([require("gcc"), "-O1", *words, "-o", tmp_path / "program"])
    with pytest.raises(AssertionError, match="an error"):
        run([tmp_path / "program"])
