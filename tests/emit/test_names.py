"""Names in the generated C: whatever tensors, layers and files are called, it compiles
and the names stay recognisable."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.emit.llvm.model import module
from pybuild.emit.tables.names import (
    NUMBERED,
    RESERVED,
    Names,
    accessors,
    identifier,
    is_keyword,
    is_prefix,
)
from pybuild.errors import BuildError
from pybuild.library import Library
from tests.emit.test_generated_c import CLEAN, shell
from tests.frontends.onnx.models import expected, model
from tests.toolchains import ROOT, require

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
X = np.array([-1.5, 0.25, 2.0], np.float32)


def chain(folder: Path, names: list[str], file: str = "chain") -> Library:
    """Relu, tanh, relu, tanh ...: the first name is the input, all others outputs."""
    nodes = [
        (("Relu", "Tanh")[i % 2], [names[i]], [names[i + 1]], {})
        for i in range(len(names) - 1)
    ]
    path = folder / f"{file}.onnx"
    path.write_bytes(model(nodes, {names[0]: X}, names[1:]))
    return pybuild.load(path).build(folder / file)


def symbols(library: Library) -> list[str]:
    return [r.symbol for r in (*library.tables.inputs, *library.tables.outputs)]


def assert_clean(library: Library, folder: Path) -> None:
    """Compiles as C and, the header, as C++."""
    require("g++")
    tree = folder / library.name
    includes = [f"-I{tree}", f"-I{tree / 'crt' / 'include'}"]
    shell("gcc", *CLEAN, "-fsyntax-only", *includes, *sorted(tree.glob("*.c")))
    header = tree / f"{library.name}.h"
    shell("g++", "-std=c++11", "-Werror", "-fsyntax-only", *includes, header)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["x.a", "x/a", "x a", "X_A"], ["x_a", "x_a_2", "x_a_3", "x_a_4"]),
        (["int", "class", "while"], ["int_in", "class_out", "while_out"]),
        (["init", "run", "memory"], ["init_2", "run_2", "memory_2"]),
        (["x", "set_x", "bind_x", "x_2"], ["x", "set_x_2", "bind_x_2", "x_2_2"]),
        (["für", "Ω", "日本", "1st"], ["f_r", "t", "t_2", "t_1st"]),
        (["input_0", "output_0", "dims_0"], ["input_0", "output_0", "dims_0_2"]),
        (["check_int", "selftest_input_0"], ["check_int_2", "selftest_input_0_2"]),
        (["name", "rows", "tensor_0"], ["name_2", "rows_2", "tensor_0_2"]),
    ],
    ids=lambda found: "-".join(found[:2]),
)
def test_tensors(names: list[str], wanted: list[str], tmp_path: Path) -> None:
    library = chain(tmp_path, names)
    assert symbols(library) == wanted
    assert_clean(library, tmp_path)
    data = (tmp_path / "chain.onnx").read_bytes()
    net = library.host()
    net.run(**{names[0]: X})
    for name, value in expected(data, {names[0]: X}).items():
        np.testing.assert_allclose(net.get_output(name), value, rtol=1e-5)


def words_of(library: Library) -> set[str]:
    """What follows NAME_ in its C and LLVM, but in what tensors' names are part of."""
    texts = [module(library.tables)]
    texts += [str(t) for n, t in library.files().items() if re.search("[.][ch]$", n)]
    found = set(re.findall(rf"\b{library.name}_([a-z]\w*)(?![.\w])", "".join(texts)))
    for row in (*library.tables.inputs, *library.tables.outputs):
        found -= set(accessors(row.symbol))
    return found - {c.symbol[len(library.name) + 1 :] for c in library.tables.constants}


def test_tensors_get_no_name_that_generated_files_define() -> None:
    digits = pybuild.load(ROOT / "examples" / "digits" / "digits_int8.tflite")
    stream = pybuild.load(ROOT / "examples" / "streams" / "tcn.onnx")
    found = {
        re.sub(r"_\d+$", "", word)
        for library in (
            digits.build(name="d", push=["image"], params="replaceable"),
            digits.build(name="d", regions=["fast=4K:fast", "slow=64K"]),
            stream.build(name="d", stream=["frames=2:2"]),
        )
        for word in words_of(library)
    }
    assert found >= {"rows", "links", "stages", "name", "tensor", "kept", "rows_left"}
    assert found - set(NUMBERED) <= set(RESERVED)


def test_a_very_long_name(tmp_path: Path) -> None:
    name = "StatefulPartitionedCall/" * 20
    library = chain(tmp_path, ["x", name + "a", name + "b"])
    assert len(set(symbols(library))) == 3
    assert_clean(library, tmp_path)


@pytest.mark.parametrize(
    ("file", "prefix"),
    [
        ("string", "string_net"),
        ("crt", "my_crt"),
        ("crt_graph", "my_crt_graph"),
        ("int", "int_net"),
        ("graph", "graph"),
        ("2nd try-out", "t_2nd_try_out"),
    ],
)
def test_files(file: str, prefix: str, tmp_path: Path) -> None:
    """A header string.h would hide that of C; crt_graph is a type of crt."""
    library = chain(tmp_path, ["x", "of"], file)
    assert library.name == prefix
    (tmp_path / file).rename(tmp_path / prefix)
    assert_clean(library, tmp_path)


@pytest.mark.parametrize("name", ["string", "crt", "while", "a-b", "Kws", ""])
def test_a_given_name_that_cannot_be(name: str, tmp_path: Path) -> None:
    chain(tmp_path, ["x", "y"])
    with pytest.raises(BuildError) as error:
        pybuild.load(tmp_path / "chain.onnx").build(tmp_path / "out", name=name)
    hint = error.value.problems[0].hint
    assert is_prefix(hint.split("'")[1])
    assert not (tmp_path / "out").exists()


def test_of_gives_the_same_and_fresh_another() -> None:
    names = Names(["a"])
    assert [names.of("a"), names.of("a"), names.fresh("a")] == ["a_2", "a_2", "a_3"]
    assert identifier("__Add-1__") == "add_1"


TAKEN = ("linux", "unix", "i386", "main", "printf", "stdin", "errno", "stat", "test")


@pytest.mark.parametrize("name", TAKEN)
def test_a_word_of_someone_else_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of compilers (macros of gnu11), the C library, build systems."""
    out = tmp_path / "out"
    assert main(["build", str(DIGITS), "-o", str(out), "--name", name]) == 64
    assert capsys.readouterr().err == (
        f"--name: '{name}' is reserved by C, its library, a compiler or a build "
        f"system. Hint: for example '{name}_net'\n"
    )
    assert not out.exists()


# of C and of POSIX, as firmware and programs of a machine include them
HEADERS = """assert complex ctype dirent errno fcntl fenv float getopt inttypes iso646
    libgen limits locale malloc math poll pthread pwd sched semaphore setjmp signal
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string
    strings sys/select sys/socket sys/stat sys/time sys/times sys/types sys/wait
    syslog termios tgmath time uchar unistd utime wchar wctype arpa/inet net/if
    netdb netinet/in"""


def _macros(compiler: str, headers: Sequence[str]) -> set[str]:
    """Lower-case macros without arguments. Headers that a system lacks, or that lack
    others, are left out; what ends with an #error gives those it had until then."""
    program, *flags = compiler.split()
    text = "".join(
        f"#if __has_include(<{header}.h>)\n#include <{header}.h>\n#endif\n"
        for header in headers
    )
    words = [require(program), *flags, "-dM", "-E", "-"]
    said = subprocess.run(words, input=text, capture_output=True, text=True)
    place = re.findall(r"<stdin>:(\d+)[:,](?:(?!<stdin>).)*fatal", said.stderr, re.S)
    if place:
        broken = (int(place[-1]) - 2) // 3
        return _macros(compiler, [*headers[:broken], *headers[broken + 1 :]])
    assert len(said.stdout) > 1000, said.stderr
    return set(re.findall(r"^#define ([a-z]\w*) ", said.stdout, re.M))


def _all_headers(program: str) -> list[str]:
    """Of the C library that a cross compiler comes with."""
    said = shell(require(program), "-print-sysroot").strip()
    folder = Path(said or f"/usr/lib/{program.removesuffix('-gcc')}") / "include"
    if not folder.is_dir():
        return []
    every = [*folder.glob("*.h"), *folder.glob("sys/*.h")]
    return sorted(str(path.relative_to(folder).with_suffix("")) for path in every)


def _not_avoided(found: set[str]) -> set[str]:
    assert {name for name in found if is_prefix(name)} == set()
    return {name for name in found if not is_keyword(name)}


@pytest.mark.parametrize(
    "compiler",
    [
        "gcc -std=gnu11", "gcc -std=gnu11 -m32 -ffreestanding",
        "g++ -std=gnu++17 -xc++",
        "clang -std=gnu11", "arm-none-eabi-gcc -std=gnu11",
        "riscv64-unknown-elf-gcc -std=gnu11 -ffreestanding", "avr-gcc -std=gnu11",
    ],
)  # fmt: skip
def test_no_macro_can_be_a_name(compiler: str) -> None:
    """Neither of a model nor of a tensor: a member of a struct is replaced, too."""
    headers = [] if "-ffreestanding" in compiler else HEADERS.split()
    assert _not_avoided(_macros(compiler, headers)) == set()


def test_no_macro_of_any_header_of_newlib_can_be_a_name() -> None:
    headers = _all_headers("arm-none-eabi-gcc")
    assert len(headers) > 80
    found = _macros("arm-none-eabi-gcc -std=gnu11 -D_GNU_SOURCE", headers)
    assert "stdin" in found
    assert _not_avoided(found) == set()


# of libraries that are not here: newlib 4.5, picolibc 1.8.12, glibc 2.41, musl 1.2.5
ELSEWHERE = ("fds_bits", "direct", "st_atime", "sa_handler", "si_value", "h_addr")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_no_macro_of_another_library_can_be_a_name(name: str) -> None:
    assert is_keyword(name)
    assert not is_prefix(name)


def test_no_header_of_the_machine_is_hidden() -> None:
    """NAME.h lies in the include path of the user."""
    said = shell(require("arm-none-eabi-gcc"), "-print-sysroot").strip()
    folder = Path(said or "/usr/lib/arm-none-eabi") / "include"
    names = {path.stem for path in folder.glob("*.h") if path.stem[0] != "_"}
    assert len(names) > 40
    names &= {identifier(name) for name in names}
    assert {name for name in names if is_prefix(name)} == set()


def test_tensors_and_regions_get_no_macro(tmp_path: Path) -> None:
    require("gcc")
    library = chain(tmp_path, ["linux", "unix", "errno"])
    assert symbols(library) == ["linux_in", "unix_out", "errno_out"]
    flags = [*CLEAN, "-std=gnu11", "-fsyntax-only"]
    includes = [f"-I{tmp_path / 'chain'}", f"-I{tmp_path / 'chain/crt/include'}"]
    shell("gcc", *flags, *includes, *sorted((tmp_path / "chain").glob("*.c")))
    with pytest.raises(BuildError, match="'linux' cannot be the name of a region"):
        pybuild.load(DIGITS).build(regions=["linux=1K:fast", "sram=64K"])
