"""What LLVM compiled for a test is taken again for the same module, and no other."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from pybuild.host.jit import Jit
from tests import compiled

TEXT = """
define i32 @answer() {{
    ret i32 {number}
}}
"""


def _answer(number: int) -> int:
    module = llvm.parse_assembly(TEXT.format(number=number))
    jit = Jit(module.as_bitcode())
    address = jit._engine.get_function_address("answer")
    return int(ctypes.CFUNCTYPE(ctypes.c_int32)(address)())


def test_another_module_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRT_COMPILED", str(tmp_path))
    compiled.keep_compiled()
    assert _answer(3) == _answer(3) == 3
    (first,) = tmp_path.iterdir()
    assert _answer(4) == 4
    (other,) = set(tmp_path.iterdir()) - {first}
    # it is what is kept that runs
    first.write_bytes(other.read_bytes())
    assert _answer(3) == 4


def test_nothing_is_kept_where_none_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRT_COMPILED", "")
    assert compiled.folder() is None and _answer(5) == 5


def test_objects_of_equal_c_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled.WRAPPERS.is_dir():
        pytest.skip("there is no ccache: everything is compiled, nothing is untried")
    monkeypatch.setenv("CRT_COMPILED", str(tmp_path / "kept"))
    _keep_objects(monkeypatch)
    made = [_object(tmp_path / name, answer) for name, answer in _SOURCES]
    assert made[0] == made[1] != made[2]
    assert _counted() == (2, 1)


def test_objects_of_a_program_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is compiled and linked at once, wherever its tree lies."""
    if not compiled.WRAPPERS.is_dir():
        pytest.skip("there is no ccache: everything is compiled, nothing is untried")
    monkeypatch.setenv("CRT_COMPILED", str(tmp_path / "kept"))
    _keep_objects(monkeypatch)
    assert [_program(tmp_path / name, answer) for name, answer in _SOURCES] == [3, 3, 4]
    # of the first two both objects, of the third what prints
    assert _counted() == (3, 3)
    (tmp_path / "first" / "src" / "b.c").write_text("no C")
    words = ("gcc", "src/a.c", "src/b.c", "-o", "again")
    done = subprocess.run(words, cwd=tmp_path / "first", capture_output=True, text=True)
    assert done.returncode and "src/b.c:1" in done.stderr
    assert not (tmp_path / "first" / "again").exists()


def _keep_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("DIR", "NOHASHDIR", "MAXSIZE", "BASEDIR", "PATH")
    for name in ("PATH", *(f"CCACHE_{name}" for name in names)):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    compiled.keep_objects()


def _counted() -> tuple[int, int]:
    """How often nothing was kept, and how often something."""
    said = subprocess.check_output(["ccache", "--print-stats"], text=True)
    seen = {(words := line.split("\t"))[0]: int(words[1]) for line in said.splitlines()}
    kept = seen["direct_cache_hit"] + seen["preprocessed_cache_hit"]
    return seen["cache_miss"], kept


def _program(folder: Path, answer: int) -> int:
    """What a program of two sources and a header in another folder answers."""
    for name in ("src", "include"):
        (folder / name).mkdir(parents=True)
    (folder / "include" / "a.h").write_text(f"int answer(void);\n/* {answer} */\n")
    text = f'#include "a.h"\nint answer(void) {{ return {answer}; }}\n'
    (folder / "src" / "a.c").write_text(text)
    text = '#include "a.h"\nint main(void) { return answer(); }\n'
    (folder / "src" / "b.c").write_text(text)
    sources = [folder / "src" / "a.c", folder / "src" / "b.c"]
    words = ["gcc", "-Wall", f"-I{folder / 'include'}", *sources, "-lm", "-o"]
    subprocess.run([*words, folder / "program"], check=True)
    return subprocess.run([folder / "program"]).returncode


_SOURCES = (("first", 3), ("again", 3), ("other", 4))


def _object(folder: Path, answer: int) -> bytes:
    folder.mkdir()
    (folder / "a.h").write_text(f"#define ANSWER {answer}\n")
    text = '#include "a.h"\nint answer(void) { return ANSWER; }\n'
    (folder / "a.c").write_text(text)
    subprocess.run(["gcc", "-c", "a.c", "-o", "a.o"], cwd=folder, check=True)
    return (folder / "a.o").read_bytes()


def test_no_compiler_appears_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compiled.keep_objects()
    assert os.environ["PATH"] == str(tmp_path)
