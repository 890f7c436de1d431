"""The programs of docs/two-cores.md: for POSIX threads, FreeRTOS and Zephyr, run with
threads as cores, and the Pico's, compiled; and what the page says of a build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pybuild
from pybuild.emit.content import pieces
from tests.toolchains import require, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "two-cores.md").read_text()
PROGRAMS = re.findall(r"test_page.py -->\n```c\n(.*?)```", PAGE, re.DOTALL)
FLAGS = ("-std=c99", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread")
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of the page, and its object files."""
    folder = tmp_path_factory.mktemp("page")
    library = _digits()
    for file, content in library.files().items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(b"".join(pieces(content)))
    files = [folder / "digits.c", folder / "digits_weights.c"]
    files += (folder / "crt/src").glob("*.c")
    for file in files:
        run([require("gcc"), *FLAGS, *_include(folder), "-c", file,
             "-o", folder / f"{file.stem}.o"])  # fmt: skip
    return folder


def _digits() -> pybuild.Library:
    model = pybuild.load(ROOT / "examples/digits/digits_int8.tflite")
    return model.build(name="digits", target="cortex-m33", cores=2)


def _include(folder: Path) -> list[str]:
    return [f"-I{folder}", f"-I{folder / 'crt/include'}", f"-I{HERE / 'stand_ins'}"]


def _printed(word: str, tree: Path, folder: Path, *switches: str) -> str:
    """What the program with this word prints."""
    (program,) = [text for text in PROGRAMS if word in text]
    source, out = folder / "program.c", folder / "program"
    source.write_text(program)
    run([require("gcc"), *FLAGS, *switches, *_include(tree), source,
         *tree.glob("*.o"), "-o", out])  # fmt: skip
    return run([out])


def test_the_program_with_threads(tree: Path, tmp_path: Path) -> None:
    assert _printed("pthread_create", tree, tmp_path) == "0\n"


@pytest.mark.parametrize("word", ["FreeRTOS.h", "zephyr/kernel.h"])
def test_programs_of_systems(word: str, tree: Path, tmp_path: Path) -> None:
    """Both cores compute; a second that never comes is an error after a second."""
    assert _printed(word, tree, tmp_path) == "no error\n"
    late = "another core did not come, or did not finish"
    assert _printed(word, tree, tmp_path, "-DNO_SECOND") == f"{late}\n"
    assert f"`{late}`" in PAGE.replace("\n", " ")


def test_the_program_of_a_pico(tree: Path, tmp_path: Path) -> None:
    (program,) = [text for text in PROGRAMS if "pico/multicore.h" in text]
    (tmp_path / "pico").mkdir()
    head = "void multicore_launch_core1(void (*entry)(void));\n"
    (tmp_path / "pico" / "multicore.h").write_text(head)  # in the SDK's place
    (tmp_path / "pico.c").write_text(program)
    include = [*_include(tree), f"-I{tmp_path}"]
    run([require("gcc"), *FLAGS, *include, "-fsyntax-only", tmp_path / "pico.c"])


def test_what_the_page_says_of_the_build() -> None:
    library = _digits()
    use = library.report.cores
    assert use is not None and (use.cores, use.sliced) == (2, 4)
    arena = f"arena {library.tables.arena_bytes:,} instead of {use.arena:,} bytes"
    line = f"cores  2: {use.share:.2f} of one core's instructions by estimate, 4 of"
    assert line in PAGE and arena in PAGE
