"""The build files of a tree: their own flags stay whatever flags the user has."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import pybuild
from pybuild.targets.core import CORES
from tests.conftest import made_once
from tests.toolchains import ROOT, STRICT, completed, require, require_module

DIGITS = ROOT / "examples" / "digits"
ZIG = f"{sys.executable} -m ziglang cc"
MESON = [sys.executable, "-m", "mesonbuild.mesonmain"]

FEW = {"CFLAGS": "-O0"}  # where only the making is looked at

# prints the bits of a float network's outputs; fails where flags of the tree are gone
BITS = """\
#include "net.h"

#include <stdio.h>
#include <string.h>

#if !defined(CRT_WITH_SELFTEST) || __STDC_VERSION__ != 199901L
#error "the tree's own flags are gone"
#endif

static uint8_t arena[NET_ARENA_BYTES] __attribute__((aligned(NET_ARENA_ALIGN)));
static struct net model;

int main(void)
{
    const struct net_memory memory = NET_MEMORY(arena);
    float *image;
    unsigned i;

    if (net_init(&model, &memory) != CRT_OK)
        return 1;
    image = net_image(&model);
    for (i = 0; i < NET_IMAGE_LEN; i++)
        image[i] = (float)(i * 37u % 101u) / 101.0f;
    if (net_run(&model) != CRT_OK)
        return 1;
    for (i = 0; i < NET_SCORES_LEN; i++) {
        uint32_t bits;

        memcpy(&bits, net_scores(&model) + i, sizeof bits);
        printf("%08lx ", (unsigned long)bits);
    }
    return 0;
}
"""


def _make_tree(folder: Path) -> None:
    model = pybuild.load(str(DIGITS / "digits_f32.onnx"))
    model.build(folder, name="net", target="host")
    (folder / "example/main.c").rename(folder / "ours.txt")
    (folder / "example/main.c").write_text(BITS)
    words = ["make", "-s", f"BUILD={folder}.o", "CC=gcc", "CFLAGS=-O0", "test"]
    (folder / "bits.txt").write_text(done(words, folder))


@pytest.fixture
def tree(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float network whose bits change where a product and a sum are fused."""
    made = made_once(tmp_path_factory, "float_tree", _make_tree)
    return Path(shutil.copytree(made, tmp_path / "tree"))


def done(
    words: Sequence[object],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a program said that must succeed; compilers and make complain of nothing."""
    made = completed(words, cwd, env)
    assert made.stderr == "" or words[: len(MESON)] == MESON  # which shows progress
    return made.stdout


def fuses() -> bool:
    """Whether this machine multiplies and adds in one instruction."""
    facts = Path("/proc/cpuinfo")
    return facts.exists() and " fma " in facts.read_text()


FAST = "CFLAGS=-O3 -march=native -std=gnu11 -ffp-contract=fast"
HOSTS = [
    ("gcc", ("CFLAGS=-Os",), True),
    ("gcc", (FAST,), False),
    ("gcc", (FAST, "CPPFLAGS=-DX", "LDFLAGS=-s", "LDLIBS=-lm"), True),
    ("gcc", ("CPPFLAGS=-DX", f"CFLAGS={' '.join(STRICT)}"), False),
    ("clang", (FAST, "BUILD=b"), False),
    (ZIG, ("CFLAGS=-O2 -march=native", "CPPFLAGS=-I."), False),
]


@pytest.mark.parametrize(("compiler", "words", "environment"), HOSTS)
def test_make_keeps_its_flags(
    tree: Path, compiler: str, words: tuple[str, ...], environment: bool
) -> None:
    """Bits are those of a build that is not optimised, whatever the user says."""
    require("make")
    if compiler == ZIG:
        require_module("ziglang")
    else:
        require(compiler)
    given = [f"CC={compiler}", *words]
    env = dict(word.split("=", 1) for word in given) if environment else {}
    command = ["make", "-s", "-j2", *([] if env else given), "test"]
    assert done(command, tree, env) == (tree / "bits.txt").read_text()


@pytest.mark.skipif(not fuses(), reason="no instruction for a product and a sum")
def test_bits_change_without_the_flag(tree: Path) -> None:
    """What the test above can see: the same sources without the tree's flags."""
    flags = ["-O3", "-march=native", "-DCRT_WITH_SELFTEST", "-I.", "-Icrt/include"]
    sources = sorted(tree.rglob("*.c"))
    more = ["-ffp-contract=fast", "-std=c99"]
    done([require("gcc"), *flags, *more, *sources, "-o", "x"], tree)
    assert done([tree / "x"]) != (tree / "bits.txt").read_text()


RV32 = "-O2 -march=rv32imc -mabi=ilp32 -ffreestanding -DCRT_NO_STRING_H"
CROSS = [
    ("arm-none-eabi-gcc", "-mcpu=cortex-m4 -mthumb", "ARM"),
    ("riscv64-unknown-elf-gcc", RV32, "RISC-V"),
    (ZIG, "-target thumb-freestanding-eabi -mcpu=cortex_m4 -DCRT_NO_STRING_H", "ARM"),
    ("clang", "--target=armv7em-none-eabi -ffreestanding -DCRT_NO_STRING_H", "ARM"),
]


@pytest.mark.parametrize(("compiler", "flags", "machine"), CROSS)
def test_make_compiles_for_other_cores(
    tree: Path, compiler: str, flags: str, machine: str
) -> None:
    """The library, by the archiver of that compiler, after one for this machine."""
    require("make")
    if compiler == ZIG:
        require_module("ziglang")
    else:
        require(compiler)
    done(["make", "-s", "CC=gcc"], tree, FEW)
    said = done(["make", f"CC={compiler}", f"CFLAGS={flags}"], tree)
    assert "  CC net.c\n" in said and said.endswith("  AR libnet.a\n")
    listed = done([require("readelf"), "-h", tree / "libnet.a"])
    machines = [line.split()[1] for line in listed.splitlines() if "Machine:" in line]
    assert len(machines) == 8 and set(machines) == {machine}
    assert " T net_run" in done([require("nm"), tree / "libnet.a"])


OBJECTS = ["cortex-m0", "cortex-m4", "cortex-m55", "rv32imc"]


@pytest.mark.parametrize("target", OBJECTS)
def test_make_beside_an_object(target: str, tmp_path: Path) -> None:
    """What the Makefile's first lines say links with it; this machine's compiler is
    refused before it has made a file."""
    require("make")
    model = pybuild.load(str(DIGITS / "digits_int8.tflite"))
    model.build(tmp_path, name="d", target=target, emit="obj")
    head = (tmp_path / "Makefile").read_text().splitlines()[1].removeprefix("#   ")
    words = shlex.split(head)
    compiler = require(words[1].removeprefix("CC="))
    command = f"{Path(compiler).name} {' '.join(CORES[target].gcc)}"
    assert f"| `{target}` | `{command}` |" in (ROOT / "docs" / "objects.md").read_text()
    before = sorted(tmp_path.rglob("*"))
    plain = subprocess.run(
        ["make", "CC=gcc"], cwd=tmp_path, capture_output=True, text=True
    )
    assert plain.returncode and f"d.o is for {target}, and gcc is for " in plain.stderr
    assert head in plain.stderr and sorted(tmp_path.rglob("*")) == before
    done([*words, "-s"], tmp_path)
    flags = words[2].removeprefix("CFLAGS=").split()
    whole = ["-nostdlib", "-r", "-Wl,--whole-archive", tmp_path / "libd.a"]
    done([compiler, *flags, *whole, "-o", tmp_path / "linked"])
    done(["make", "-s", "CC=gcc", "clean"], tmp_path)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "linked"])


def test_make_knows_what_has_changed(tree: Path) -> None:
    """Sources, headers and flags; nothing is made twice."""
    require("make")

    def made(*words: str) -> set[str]:
        lines = done(["make", "-j2", *words], tree, FEW).splitlines()
        return {line.split()[-1] for line in lines if line.startswith("  ")}

    library, program = "libnet.a", "example/net"
    sources = {str(p.relative_to(tree)) for p in tree.rglob("*.c")}
    assert made("example") == {*sources, library, program}
    assert made("example") == set()
    (tree / "net.h").touch()
    about = {"net.c", "net_selftest.c", "example/main.c"}
    assert made("example") == {*about, library, program}
    (tree / "crt/include/crt/intrin.h").touch()
    assert "net.c" in made() and "net_weights.c" not in made()
    assert made("CPPFLAGS=-DY") >= {"net_weights.c", library}
    assert made("CPPFLAGS=-DY") == set()
    (tree / "example/mine.h").write_text("")
    (tree / "example/main.c").write_text('#include "mine.h"\n' + BITS)
    made("CPPFLAGS=-DY", "example")
    (tree / "example/mine.h").unlink()  # and nobody includes it any more
    (tree / "example/main.c").write_text(BITS)
    assert made("CPPFLAGS=-DY", "example") >= {"example/main.c", program}


def test_make_clean_leaves_what_the_build_wrote(tree: Path) -> None:
    def there() -> set[Path]:
        return {path for path in tree.rglob("*") if path.is_file()}

    before = there()
    done(["make", "-s", "example"], tree, FEW)
    done(["make", "-s", "BUILD=elsewhere", "example"], tree, FEW)
    assert there() > before
    done(["make", "-s", "clean"], tree)
    done(["make", "-s", "BUILD=elsewhere", "clean"], tree)
    assert there() == before


def test_the_archiver_is_the_compilers_or_the_users(tree: Path) -> None:
    require("make")
    require("arm-none-eabi-gcc")
    words = ["make", "-n", "CC=arm-none-eabi-gcc"]
    own = next(x for x in done(words, tree).splitlines() if "rcs libnet.a" in x)
    program = done(["arm-none-eabi-gcc", "-print-prog-name=ar"]).strip()
    assert own.split()[0] == program
    assert "\nmine rcs libnet.a" in done([*words, "AR=mine"], tree)
    assert "\nmine rcs libnet.a" in done(words, tree, {"AR": "mine"})


def test_a_compiler_that_knows_no_contraction(tree: Path) -> None:
    """The option is left out, and nobody hears that it was tried."""
    narrow = tree / "narrow"
    narrow.write_text(
        '#!/bin/sh\ncase "$*" in *ffp*) echo "unknown option" >&2; exit 1; esac\n'
        'exec cc "$@"\n'
    )
    narrow.chmod(0o755)
    assert "  AR libnet.a" in done(["make", "CC=./narrow"], tree, FEW)
    assert "ffp-contract" not in (tree / "compiled-with").read_text()


# ---- CMake and Meson ----------------------------------------------------------

# gcc never fuses in -std=c99, clang does unless it is told not to
NATIVE = {"CC": "clang", "CFLAGS": "-O3 -march=native -std=gnu11"}


def _cmake(tree: Path, build: Path, *words: str, env: Mapping[str, str] = FEW) -> None:
    done([require("cmake"), "-S", tree, "-B", build, *words], env=env)
    done(["cmake", "--build", build], env=env)


def _meson(tree: Path, build: Path, *words: str, env: Mapping[str, str] = FEW) -> None:
    require_module("mesonbuild")
    done([*MESON, "setup", build, tree, *words], env=env)
    done([*MESON, "compile", "-C", build], env=env)


@pytest.mark.parametrize("build", [_cmake, _meson])
def test_cmake_and_meson_keep_their_flags(
    tree: Path, tmp_path: Path, build: Callable[..., None]
) -> None:
    require("clang")
    own = BITS.replace("|| __STDC_VERSION__ != 199901L", "")  # Meson's: the user's last
    (tree / "example/main.c").write_text(own)
    build(tree, tmp_path / "b", env=NATIVE)
    expected = (tree / "bits.txt").read_text()
    assert done([tmp_path / "b" / "net_example"]) == expected


def test_cmake_has_a_self_test_by_choice(tree: Path, tmp_path: Path) -> None:
    """Alone it runs by ctest; in a project it is there if that wants it."""
    (tree / "ours.txt").rename(tree / "example/main.c")
    _cmake(tree, tmp_path / "alone")
    said = done(["ctest"], cwd=tmp_path / "alone")
    assert "100% tests passed, 0 tests failed out of 1" in said
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\n"
        "add_subdirectory(tree)\nadd_executable(user user.c)\n"
        "target_link_libraries(user net)\n"
    )
    _user(tmp_path / "user.c")
    for switch, expected in (("OFF", "without"), ("ON", "with")):
        build = tmp_path / switch
        _cmake(tmp_path, build, f"-DNET_SELFTEST={switch}")
        assert done([build / "user"]) == expected
        assert not list(build.rglob("net_example"))


def test_meson_has_a_self_test_by_choice(tree: Path, tmp_path: Path) -> None:
    (tree / "ours.txt").rename(tree / "example/main.c")
    _meson(tree, tmp_path / "alone")
    assert "net self-test" in done([*MESON, "test", "-C", tmp_path / "alone"])
    project = tmp_path / "project"
    (project / "subprojects").mkdir(parents=True)
    shutil.copytree(tree, project / "subprojects" / "net")
    (project / "meson.build").write_text(
        "project('user', 'c')\n"
        "executable('user', 'user.c', dependencies: dependency('net', fallback: 'net'))"
    )
    _user(project / "user.c")
    for switch, expected in (("auto", "without"), ("enabled", "with")):
        build = tmp_path / switch
        _meson(project, build, f"-Dnet:selftest={switch}")
        assert done([build / "user"]) == expected
        assert not list(build.rglob("net_example"))


def _user(path: Path) -> None:
    path.write_text(
        '#include "net.h"\n#include <stdio.h>\n'
        "int main(void)\n{\n#ifdef CRT_WITH_SELFTEST\n"
        '    fputs(net_selftest ? "with" : "", stdout);\n'
        '#else\n    fputs("without", stdout);\n#endif\n    return 0;\n}\n'
    )


def test_cmake_for_another_core_links_no_example(tree: Path, tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    cross = tmp_path / "cross.cmake"
    cross.write_text(
        "set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_C_COMPILER arm-none-eabi-gcc)\n"
        "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n"
    )
    words = ["-S", tree, "-B", tmp_path / "b", f"-DCMAKE_TOOLCHAIN_FILE={cross}"]
    done([require("cmake"), *words])
    done(["cmake", "--build", tmp_path / "b"])
    assert (tmp_path / "b" / "libnet.a").is_file()


def test_meson_for_another_core_links_no_example(tree: Path, tmp_path: Path) -> None:
    require("arm-none-eabi-gcc")
    cross = tmp_path / "cross.ini"
    cross.write_text(
        "[binaries]\nc = 'arm-none-eabi-gcc'\nar = 'arm-none-eabi-ar'\n"
        "[properties]\nskip_sanity_check = true\n[host_machine]\nsystem = 'none'\n"
        "cpu_family = 'arm'\ncpu = 'cortex-m4'\nendian = 'little'\n"
    )
    build = tmp_path / "b"
    done([*MESON, "setup", f"--cross-file={cross}", build, tree])
    done([*MESON, "compile", "-C", build])
    assert (build / "libnet.a").is_file()


def test_every_file_beside_a_main_of_the_users(tree: Path, tmp_path: Path) -> None:
    """As IDEs do: all C of the folder, with include paths and nothing else."""
    (tree / "app").mkdir()
    _user(tree / "app" / "user.c")
    (tree / "ours.txt").rename(tree / "example/main.c")
    sources = sorted(tree.rglob("*.c"))
    strict = [*STRICT, f"-I{tree}", f"-I{tree}/crt/include"]
    done([require("gcc"), *strict, *sources, "-o", tmp_path / "all"])
    assert done([tmp_path / "all"]) == "without"
