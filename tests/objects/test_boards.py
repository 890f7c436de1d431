"""Trees with an object: make, CMake and Meson build them for a board, and their
self-tests pass there; on a Cortex-M55 every operator equals the host."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.firmware.export import board_files
from pybuild.install import boards
from pybuild.package.folder import write_beside
from pybuild.targets.board import load_board
from tests.boards.programs import HEADERS, chain, compiler, emulated, link_flags
from tests.conftest import model_path
from tests.emit.test_c_functions import by_symbol
from tests.frontends.graphjson.tvm_graphs import duplex
from tests.graphs.networks import classifier
from tests.objects.images import CORES, HERE, written
from tests.objects.models import Known, content, expected, library
from tests.ops.cases import cases
from tests.ops.suite import c_name
from tests.ops.suite import model as case_model
from tests.toolchains import INCLUDE, SOURCES, STRICT, require, run

PASSED = "self-test: no error"


BOARDS = tuple(CORES)


def made_by_make(target: str, tree: Path) -> str:
    """What the example prints on the target's board."""
    core = CORES[target]
    (gcc,) = chain(core).command
    link = " ".join([*link_flags(target, tree.parent), "-Wl,--fatal-warnings"])
    flags = " ".join(["-O2", *chain(core).compile_flags(core), *HEADERS])
    words = [f"CFLAGS={flags}", f"LDFLAGS={link}"]
    make = [require("make"), "-s", "-C", tree, f"CC={gcc}", "example"]
    run(["env", *words, *make])
    return emulated(target, tree / "example" / "tiny")


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


# each core with one of the two in each run
SPOTTING = [
    pytest.param(kind, target, marks=pytest.mark.sweep if (n + m) % 2 else ())
    for n, kind in enumerate(("int8", "f32"))
    for m, target in enumerate(BOARDS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "target"), SPOTTING)
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
set(CMAKE_C_STANDARD_LIBRARIES -lgcc)
"""


def test_cmake(tmp_path: Path) -> None:
    cmake, target = require("cmake"), "cortex-m4"
    tree, build, cross = tmp_path / "tree", tmp_path / "build", tmp_path / "cross.cmake"
    classifier("tiny").model().build(tree, name="tiny", target=target, emit="obj")
    cross.write_text(CROSS)
    link = " ".join(link_flags(target, tmp_path))
    flags = " ".join([*CORES[target].gcc, "-ffreestanding", *HEADERS])
    run([cmake, "-S", tree, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={cross}",
         "-DTINY_EXAMPLE=ON", f"-DCMAKE_C_FLAGS={flags}",
         f"-DCMAKE_EXE_LINKER_FLAGS={link}"])  # fmt: skip
    run([cmake, "--build", build])
    (program,) = (p for p in build.glob("tiny_example*") if p.is_file())
    assert PASSED in emulated(target, program)


def test_meson(tmp_path: Path) -> None:
    """With the cross file of the board; test_new_board.py has trees of C."""
    target = "cortex-m4"
    tree, build, out = tmp_path / "tree", tmp_path / "build", tmp_path / "board"
    classifier("tiny").model().build(tree, name="tiny", target=target, emit="obj")
    board = load_board("mps2-an386")
    write_beside(out, board_files(board, chain(CORES[target])))
    cross = f"--cross-file={out / 'mps2-an386.ini'}"
    meson = [sys.executable, "-m", "mesonbuild.mesonmain"]
    run([*meson, "setup", cross, build, tree])
    run([*meson, "compile", "-C", build])
    assert PASSED in emulated(target, next(build.glob("tiny_example*")))


@pytest.mark.sweep
def test_operators_on_a_cortex_m55(tmp_path: Path) -> None:
    """Unicorn has none: QEMU, inputs and outputs through files."""
    target = "cortex-m55"
    objects: dict[str, bytes] = {}
    runs: list[Known] = []
    for case in cases():
        name = c_name(case, "litert")
        made = library(case_model(case, "litert"), name, target, "litert")
        objects[name] = content(made)
        runs += expected(made, [case.inputs(3)])
    models = tmp_path / "models.c"
    models.write_text(_list(list(objects)))
    (tmp_path / "inputs.bin").write_bytes(b"".join(d for k in runs for d in k.inputs))
    program = tmp_path / "program.elf"
    common = ["-O2", f"-I{INCLUDE}", f"-I{boards() / 'common'}"]
    run([*compiler(CORES[target]), *STRICT, *common, *SOURCES, models,
         HERE / "files_main.c", *written(tmp_path, objects),
         *link_flags(target, tmp_path), "-o", program])  # fmt: skip
    emulated(target, program)
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
