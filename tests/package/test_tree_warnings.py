"""Trees of every kind are silent in what people compile: each C since C99, and C++."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import pybuild
from tests.conftest import made_once
from tests.toolchains import INCLUDE, ROOT, require, require_module, run

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
FLOATS = ROOT / "examples" / "digits" / "digits_f32.onnx"
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "regions": {"regions": ["dtcm=1K:fast+weights", "sram=96K", "psram=4M:slow"]},
    "params": {"params": "replaceable", "compress": "lz4"},
    "lazy": {"names": "ids", "lazy": ["image"], "compress": "lz4-layer"},
    "push": {"push": ["image"]},
    "devices": {"target": {0: "generic", 1: "cortex-m4"}, "place": {"conv2d": 1}},
}
TREES = (*KINDS, "floats", "state", "vectors", "image")
_FLAGS = """-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wcast-qual
-pedantic -Werror -DCRT_WITH_SELFTEST"""
_C = """-Wundef -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
-Wcast-align -Wwrite-strings -Wpointer-arith -Wredundant-decls -Wvla
-Wdouble-promotion"""
C = (*_FLAGS.split(), *_C.split())
CPP = (*_FLAGS.split(), "-Wold-style-cast", "-Wzero-as-null-pointer-constant")


def _make(folder: Path) -> None:
    digits = pybuild.load(str(DIGITS))
    for kind, options in KINDS.items():
        digits.build(folder / kind, name="net", **options)
    digits.build(folder / "vectors", name="net", target="cortex-m55")
    pybuild.load(str(FLOATS)).build(folder / "floats", name="net")
    gru = pybuild.load(str(ROOT / "examples/streams/gru.onnx"), state={"h": "h_next"})
    gru.build(folder / "state", name="net")
    two = {"one": digits, "two": pybuild.load(str(FLOATS))}
    pybuild.build_image(two, folder / "image", name="net")


@pytest.fixture
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "trees_of_every_kind", _make)


def silent_c(compiler: str, tree: Path) -> None:
    """crt is the same in each tree: it is read in one."""
    program, *words = [*compiler.split(), "-fsyntax-only"]
    own = sorted(path for path in tree.rglob("*.c") if "crt" not in path.parts)
    files = sorted(tree.rglob("*.c")) if tree.name == "plain" else own
    assert own
    include = [f"-I{tree}", f"-I{tree / 'crt/include'}"]
    assert run([require(program), *words, *C, *include, *files]) == ""


@pytest.mark.parametrize("compiler", ["gcc -std=c99", "clang -std=gnu2x"])
@pytest.mark.parametrize("kind", TREES)
def test_c(kind: str, compiler: str, trees: Path) -> None:
    silent_c(compiler, trees / kind)


@pytest.mark.parametrize("standard", ["gnu11", "c11", "c17", "gnu2x"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_c(compiler: str, standard: str, trees: Path) -> None:
    silent_c(f"{compiler} -std={standard}", trees / "plain")


def test_the_newest_c(trees: Path, tmp_path: Path) -> None:
    """By zig's clang, which is years younger than those of distributions."""
    require_module("ziglang")
    tree = trees / "plain"
    include = [f"-I{tree}", f"-I{tree / 'crt/include'}"]
    zig = [sys.executable, "-m", "ziglang", "cc", "-std=c23", "-c", *C, *include]
    assert run([*zig, *sorted(tree.rglob("*.c"))], tmp_path) == ""


def user_of(tree: Path) -> str:
    """C++ that uses the header as far as one can: all its macros, and all of crt."""
    header = (tree / "net.h").read_text()
    found = re.search(r"#define NET_MEMORY\(([^)]*)\)", header)
    assert found
    regions = [word.strip(" \\\n") for word in found[1].split(",")]
    lines = [f'#include "{p.relative_to(INCLUDE)}"' for p in INCLUDE.rglob("*.h")]
    lines += ['#include "net.h"', "int use();", "int use()", "{"]
    lines += [f"    static unsigned char my_{name}[4096];" for name in regions]
    given = ", ".join(f"my_{name}" for name in regions)
    lines += [
        f"    const net_memory memory = NET_MEMORY({given});",
        "    static net m;",
    ]
    for name, value in re.findall(r"#define (\w+) +([^\s{].*)", header):
        if "," not in value and value != "\\":
            lines.append(f"    static_cast<void>({name});")
    lines += ["    return net_init(&m, &memory);", "}\n"]
    return "\n".join(lines)


COMPILERS = ("g++ -Wuseless-cast", "clang++")


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", TREES)
def test_a_user_in_cpp(kind: str, compiler: str, trees: Path, tmp_path: Path) -> None:
    source = tmp_path / "user.cpp"
    source.write_text(user_of(trees / kind))
    program, *words = compiler.split()
    # of the plain tree each C++, of others the oldest by one and the newest by another
    turn = TREES.index(kind) + COMPILERS.index(compiler)
    standards = (11, 14, 17, 20) if kind == "plain" else ((11, 20)[turn % 2],)
    for standard in standards:
        flags = [*words, f"-std=c++{standard}", *CPP, "-fsyntax-only"]
        include = [f"-I{trees / kind}", f"-I{trees / kind}/crt/include", f"-I{INCLUDE}"]
        assert run([require(program), *flags, *include, source]) == ""
