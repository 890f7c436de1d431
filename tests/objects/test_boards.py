"""Trees with an object: make, CMake and Meson build them for a board, and their
self-tests pass there; on a Cortex-M55 every operator equals the host."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import pybuild
from tests.conftest import model_path
from tests.frontends.tvm_graphs import duplex
from tests.networks import classifier
from tests.objects.boards import BOARDS, emulated, link_flags
from tests.objects.images import CORES, HERE, written
from tests.objects.models import Known, content, expected, library
from tests.ops.cases import cases
from tests.ops.suite import c_name
from tests.ops.suite import model as case_model
from tests.toolchains import INCLUDE, SOURCES, STRICT, require, run
from tests.unit.test_c_functions import by_symbol

PASSED = "self-test: no error"


def made_by_make(target: str, tree: Path) -> str:
    """What the example prints on the target's board."""
    core, board = CORES[target], BOARDS[target]
    link = " ".join(link_flags(board, tree.parent))
    flags = " ".join(["-O2", "-ffunction-sections", "-fdata-sections", *core.gcc[1:]])
    archiver = core.gcc[0].replace("gcc", "ar")
    env = {**os.environ, "CFLAGS": flags, "LDFLAGS": link}
    make = [require("make"), "-s", "-C", tree, f"CC={core.gcc[0]}", f"AR={archiver}"]
    env_words = [f"{key}={env[key]}" for key in ("CFLAGS", "LDFLAGS")]
    run(["env", *env_words, *make])
    return emulated(board, tree / "example" / "tiny")


@pytest.mark.parametrize("target", BOARDS)
def test_a_tree_runs_on_its_board(target: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    classifier("tiny").model().build(tree, name="tiny", target=target, emit="obj")
    assert PASSED in made_by_make(target, tree)


@pytest.mark.parametrize(
    "options",
    [
        {"params": "replaceable"},
        {"params": "replaceable", "compress": "lz4"},
        {"compress": "lz4-layer"},
        {"names": "ids"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_a_tree_with_other_tables(options: dict[str, str], tmp_path: Path) -> None:
    """Parameters bound at run time, weights unpacked by crt, tensors without names."""
    tree, target = tmp_path / "tree", "cortex-m4"
    model = classifier("tiny").model()
    model.build(tree, name="tiny", target=target, emit="obj", **options)
    assert PASSED in made_by_make(target, tree)


def test_a_tree_with_functions_of_the_user(tmp_path: Path) -> None:
    """Their C is compiled with the tree; the object calls it."""
    tree, target = tmp_path / "tree", "cortex-m4"
    own = [by_symbol("elemwise_add", "+"), by_symbol("elemwise_sub", "-")]
    text = json.dumps(duplex(devices=False))
    pybuild.build(text, tree, functions=own, name="tiny", target=target, emit="obj")
    assert PASSED in made_by_make(target, tree)


@pytest.mark.slow
@pytest.mark.parametrize("target", BOARDS)
@pytest.mark.parametrize("kind", ["int8", "f32"])
def test_keyword_spotting_runs_on_its_board(
    target: str, kind: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    model = pybuild.load(model_path(f"kws_{kind}.tflite"))
    model.build(tree, name="tiny", target=target, emit="obj")
    assert PASSED in made_by_make(target, tree)


CROSS = """
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""


def test_cmake(tmp_path: Path) -> None:
    cmake, board = require("cmake"), BOARDS["cortex-m4"]
    tree, build, cross = tmp_path / "tree", tmp_path / "build", tmp_path / "cross.cmake"
    classifier("tiny").model().build(tree, name="tiny", target=board.target, emit="obj")
    cross.write_text(CROSS)
    link = " ".join(link_flags(board, tmp_path))
    flags = " ".join(CORES[board.target].gcc[1:])
    run([cmake, "-S", tree, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={cross}",
         f"-DCMAKE_C_FLAGS={flags}", f"-DCMAKE_EXE_LINKER_FLAGS={link}"])  # fmt: skip
    run([cmake, "--build", build])
    (program,) = (p for p in build.glob("tiny_example*") if p.is_file())
    assert PASSED in emulated(board, program)


def test_meson(tmp_path: Path) -> None:
    board = BOARDS["cortex-m4"]
    tree, build, cross = tmp_path / "tree", tmp_path / "build", tmp_path / "cross.ini"
    classifier("tiny").model().build(tree, name="tiny", target=board.target, emit="obj")
    link, (gcc, *flags) = link_flags(board, tmp_path), CORES[board.target].gcc
    cross.write_text(f"""
[binaries]
c = '{gcc}'
ar = 'arm-none-eabi-ar'
[built-in options]
c_args = {flags}
c_link_args = {[*flags, *link]}
b_staticpic = false
[host_machine]
system = 'none'
cpu_family = 'arm'
cpu = 'cortex-m4'
endian = 'little'
[properties]
skip_sanity_check = true
""")
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    run([*meson, "setup", f"--cross-file={cross}", build, tree])
    run([*meson, "compile", "-C", build])
    assert PASSED in emulated(board, next(build.glob("tiny_example*")))


@pytest.mark.slow
def test_operators_on_a_cortex_m55(tmp_path: Path) -> None:
    """Unicorn has none: QEMU, inputs and outputs through files."""
    board, core = BOARDS["cortex-m55"], CORES["cortex-m55"]
    objects: dict[str, bytes] = {}
    runs: list[Known] = []
    for case in cases():
        name = c_name(case, "litert")
        made = library(case_model(case, "litert"), name, core.name, "litert")
        objects[name] = content(made)
        runs += expected(made, [case.inputs(3)])
    models = tmp_path / "models.c"
    models.write_text(_list(list(objects)))
    (tmp_path / "inputs.bin").write_bytes(b"".join(d for k in runs for d in k.inputs))
    program = tmp_path / "program.elf"
    flags = [*STRICT, "-O2", "-ffunction-sections", "-fdata-sections"]
    run([*core.gcc, *flags, f"-I{INCLUDE}", *SOURCES, models,
         HERE / "files_main.c", *written(tmp_path, objects),
         *link_flags(board, tmp_path), "-o", program])  # fmt: skip
    emulated(board, program)
    known = b"".join(data for run_ in runs for data in run_.outputs)
    assert (tmp_path / "outputs.bin").read_bytes() == known


def _list(names: list[str]) -> str:
    """C: all models of the image."""
    return "\n".join([
        '#include "crt/graph.h"',
        "extern const struct crt_model *const models[];",
        "extern const uint32_t model_count;",
        *(f"extern const struct crt_model {name}_model;" for name in names),
        "const struct crt_model *const models[] = {",
        *(f"    &{name}_model," for name in names),
        "};",
        f"const uint32_t model_count = {len(names)};",
        "",
    ])  # fmt: skip
