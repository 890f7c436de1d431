"""What LLVM compiled for a test is taken again for the same module, and no other."""

from __future__ import annotations

import ctypes
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
