"""Firmware written against microTVM's C names, over crt/compat_tvm.h: strict, under
sanitizers, in C++, and on an emulated core. Results are those of the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.library import Library
from pybuild.targets.core import CORES
from tests.boards.programs import compiler as cross
from tests.boards.programs import emulated, link_flags
from tests.emit.test_generated_c import SANITIZE
from tests.graphs.networks import classifier
from tests.toolchains import INCLUDE, ROOT, STRICT, require, run

HERE = Path(__file__).resolve().parent
PICTURES = np.random.default_rng(7).integers(-128, 128, (2, 192)).astype(np.int8)

# the files that docs/from-tvm.md shows, for the model of these tests
_PAGE = (ROOT / "docs" / "from-tvm.md").read_text().split("```c\n")[1:]
SHIM, AOT, GRAPH = (
    part.partition("```")[0].replace("digits", "tiny").replace("DIGITS", "TINY")
    for part in _PAGE
)
KINDS = ["aot", "graph", "params"]


def numbers(values: Array | bytes) -> str:
    return ", ".join(map(str, values))


def firmware(kind: str, folder: Path, target: str) -> Library:
    """The tree of a model and the files of a firmware around it."""
    options = {"params": "replaceable"} if kind == "params" else {}
    model = classifier("tiny").model()
    made = model.build(folder, name="tiny", target=target, **options)
    rows = ",\n".join(f"    {{{numbers(row.tolist())}}}" for row in PICTURES)
    image = made.image() if kind == "params" else b"\0"
    (folder / "pictures.h").write_text(
        "#include <stdint.h>\n"
        f"static const int8_t pictures[2][192] = {{\n{rows}}};\n"
        "static const uint32_t params_size = "
        f"{len(image) if kind == 'params' else 0};\n"
        "static const uint8_t params[] __attribute__((aligned(16), unused)) = "
        f"{{{numbers(image)}}};\n"
    )
    if kind == "aot":
        (folder / "tvmgen_default.h").write_text(SHIM)
        (folder / "ours.c").write_text(AOT)
    else:
        macro = f"CRT_TVM_MODEL{'_WITH_PARAMS' if kind == 'params' else ''}"
        (folder / "ours.c").write_text(GRAPH.replace("CRT_TVM_MODEL", macro))
    main = HERE / f"firmware_{'aot' if kind == 'aot' else 'graph'}.c"
    (folder / "firmware.c").write_text(main.read_text())
    return made


def sources(folder: Path) -> list[Path]:
    """All of the tree but its example."""
    return [p for p in sorted(folder.rglob("*.c")) if p.parent.name != "example"]


def wanted(made: Library) -> list[list[int]]:
    net = made.host()
    shaped = PICTURES.reshape(2, 1, 8, 8, 3)
    return [net.run(image=x)["scores"].ravel().tolist() for x in shaped]


def check(made: Library, kind: str, said: str) -> None:
    lines = said.splitlines()
    if kind == "aot":
        bytes_ = f"workspace: {made.report.ram.arena}"
        assert lines.pop(0) == bytes_
    found = [list(map(int, line.split())) for line in lines]
    assert found == wanted(made) * (1 if kind == "aot" else 3)
    assert found[0] != found[1]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("kind", KINDS)
def test_firmware_links_and_runs(kind: str, compiler: str, tmp_path: Path) -> None:
    require(compiler)
    made = firmware(kind, tmp_path, "host")
    flags = [*STRICT, "-Wmissing-prototypes", "-O1", *SANITIZE[compiler]]
    flags.append(f"-I{tmp_path}")
    run([compiler, *flags, f"-I{INCLUDE}", *sources(tmp_path), "-o", tmp_path / "a"])
    check(made, kind, run([tmp_path / "a"]))


@pytest.mark.parametrize("kind", KINDS)
def test_firmware_runs_on_a_core(kind: str, tmp_path: Path) -> None:
    target = "cortex-m4"
    made = firmware(kind, tmp_path, target)
    flags = [*STRICT, "-Os", f"-I{tmp_path}", f"-I{INCLUDE}"]
    program = tmp_path / "program"
    run([*cross(CORES[target]), *flags, *sources(tmp_path),
         *link_flags(target, tmp_path), "-o", program])  # fmt: skip
    check(made, kind, emulated(target, program))


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_firmware_in_cpp(compiler: str, tmp_path: Path) -> None:
    """The executor's names in C++, with every warning that its users may have."""
    require(compiler)
    made = firmware("graph", tmp_path, "host")
    main = tmp_path / "firmware.cpp"
    (tmp_path / "firmware.c").rename(main)
    objects = []
    for source in sources(tmp_path):
        objects.append(source.with_suffix(".o"))
        run(["gcc", *STRICT, f"-I{tmp_path}", f"-I{INCLUDE}", "-c", source,
             "-o", objects[-1]])  # fmt: skip
    flags = ["-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    run([compiler, *flags, f"-I{tmp_path}", f"-I{INCLUDE}", main, *objects,
         "-o", tmp_path / "a"])  # fmt: skip
    check(made, "graph", run([tmp_path / "a"]))


def test_a_dlpack_header_that_is_there_stays(tmp_path: Path) -> None:
    """Its types are not declared twice."""
    ours = (INCLUDE / "crt" / "dlpack.h").read_text()
    types = ours[ours.index("typedef enum") : ours.index("#endif\n\nCRT_C_BODIES")]
    text = f"#include <stdint.h>\n#define DLPACK_VERSION 80\n{types}"
    (tmp_path / "dlpack.h").write_text(text)
    source = tmp_path / "both.c"
    source.write_text('#include "dlpack.h"\n#include "crt/compat_tvm.h"\nint both;\n')
    run([require("gcc"), *STRICT, f"-I{INCLUDE}", "-fsyntax-only", source])


def test_tvm_s_sizes_are_ours(tmp_path: Path) -> None:
    """A DLTensor is laid out as DLPack 0.8 says: 64-bit pointers, eight fields."""
    source = tmp_path / "sizes.c"
    source.write_text(
        '#include "crt/compat_tvm.h"\n'
        "char whole[sizeof(DLTensor) == 48 ? 1 : -1];\n"
        "char type[sizeof(DLDataType) == 4 ? 1 : -1];\n"
        "char shape[offsetof(DLTensor, shape) == 24 ? 1 : -1];\n"
    )
    run([require("gcc"), *STRICT, f"-I{INCLUDE}", "-fsyntax-only", source])


def test_models_that_have_no_single_arena_do_not_compile(tmp_path: Path) -> None:
    regions = ["fast=512:fast", "slow=64K"]
    classifier("tiny").model().build(tmp_path, name="tiny", regions=regions)
    (tmp_path / "ours.c").write_text(GRAPH)
    command = f"gcc -I{tmp_path} -I{INCLUDE} -fsyntax-only {tmp_path}/ours.c 2>&1"
    require("gcc")
    assert "TINY_ARENA_BYTES" in run(["sh", "-c", f"{command} || true"])
