"""What can be seen of systems that are not here: code made for them, not run."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

import pybuild
from pybuild.emit.llvm import passes as llvm_passes
from pybuild.emit.llvm.model import module
from tests.systems.trees import DIGITS, compile_tree
from tests.toolchains import require_module

# as llvmlite names the machine there, and the format of its objects
HOSTS = {
    "x86_64-pc-windows-msvc": "COFF",
    "x86_64-apple-darwin20.0.0": "MachO",
    "arm64-apple-darwin20.0.0": "MachO",
    "aarch64-unknown-linux-gnu": "ELF",
}
# of the C library; `_fltused` of Windows says only that there are floats
KNOWN = {"memcpy", "memmove", "memset", "bzero", "fltused"}


@functools.cache
def _tables(file: str) -> Any:
    return pybuild.load(DIGITS / file).build(name="digits", target="host").tables


def _missing(found: Any, kind: str) -> set[str]:
    """What the object needs of others, without the system's underscores."""
    match kind:
        case "COFF":
            symbols = [s for s in found.symbols if s.is_undefined]
        case "MachO":
            symbols = list(found.imported_symbols)
        case _:
            symbols = [s for s in found.symbols if s.shndx == 0 and s.name]
    return {str(symbol.name).lstrip("_") for symbol in symbols}


# floats in each run where the C library's names differ, on Windows and one other
FILES = [("digits_int8.tflite", triple) for triple in HOSTS] + [
    pytest.param(
        "digits_f32.onnx", triple, marks=pytest.mark.sweep if "apple" in triple else ()
    )
    for triple in HOSTS
]


@pytest.mark.parametrize(("file", "triple"), FILES)
def test_llvm_makes_code_for_the_system(triple: str, file: str) -> None:
    """What the JIT does with a model, as an object: it needs nothing but crt."""
    require_module("lief")
    import lief

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(opt=3, jit=True, codemodel="jitdefault")
    text = module(_tables(file), triple, str(machine.target_data))
    parsed = llvm.parse_assembly(text)
    llvm_passes.optimise(parsed, machine, host=True)
    found = lief.parse(machine.emit_object(parsed))
    kind = HOSTS[triple]
    assert type(found).__module__ == f"lief._lief.{kind}"
    assert any(str(s.name).lstrip("_") == "digits_model" for s in found.symbols)
    missing = _missing(found, kind)
    # digits in int8 needs nothing
    assert missing or kind != "COFF" or file == "digits_int8.tflite"
    assert {name for name in missing if not name.startswith("crt_")} <= KNOWN


@pytest.mark.sweep
@pytest.mark.parametrize("system", ["macos-arm64", "macos-x86_64"])
def test_a_tree_is_compiled_and_linked_for_macos(system: str, tmp_path: Path) -> None:
    require_module("lief")
    import lief

    found = lief.parse(compile_tree(system, tmp_path).read_bytes())
    assert found is not None and found.format.name == "MACHO"
    assert {str(lib.name) for lib in found.libraries} == {"/usr/lib/libSystem.B.dylib"}
