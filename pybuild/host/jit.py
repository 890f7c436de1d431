"""LLVM IR to machine code with llvmlite: in memory for the host, objects for MCUs."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from pybuild.emit.kernels.external import sources, symbols
from pybuild.emit.kernels.llvm_wide import wide_features
from pybuild.emit.llvm import passes as llvm_passes
from pybuild.emit.llvm.model import module
from pybuild.emit.tables.tables import Tables
from pybuild.errors import BuildError
from pybuild.host.cc import Opened, compile_shared
from pybuild.host.compiled_model import Compiled
from pybuild.install import host_compiler, host_library, temporary_folder
from pybuild.ir.loop import Func
from pybuild.records import dataclass

# what tables refer to in crt
_RUNTIME = (
    "crt_lz4_unpack",
    "crt_copy_weights",
    "crt_accelerator",
    "crt_convert_input",
    "crt_convert_advance",
    "crt_convert_lockstep",
    "crt_lockstep",
    "crt_state_forget",
)


def host_features() -> str:
    """This machine's, without the masks that LLVM 22 reads the wrong bit of.

    Source  `select` on element 7 of a compared <8 x i32>, with AVX512DQ
    """
    features: str = llvm.get_host_cpu_features().flatten()
    return f"{features},-avx512dq" if "+avx512dq" in features else features


def vector_features() -> frozenset[str]:
    """The features that kernels for this machine may use, by its processor."""
    names = [f.removeprefix("+") for f in host_features().split(",") if f[0] == "+"]
    return wide_features(frozenset(names))


@functools.cache
def _ready() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    crt = ctypes.CDLL(str(host_library()))
    for name in _RUNTIME:
        llvm.add_symbol(name, ctypes.addressof(ctypes.c_char.in_dll(crt, name)))


def _host() -> Any:
    """The processor this runs on, all its features included; an engine eats it."""
    _ready()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=host_features(),
        opt=3,
        jit=True,
    )


@dataclass(frozen=True)
class UserFunctions:
    """C functions of the user in memory; `keep` holds them there."""

    addresses: Mapping[str, int]
    keep: object = None


NO_FUNCTIONS = UserFunctions({})


def user_functions(kernels: Sequence[Func]) -> UserFunctions:
    """The user's C functions, compiled.

    Errors  BuildError without a compiler, or with its message
    """
    texts = sources(kernels, ())
    if not texts:
        return NO_FUNCTIONS
    first = symbols(kernels)[0]
    if not host_compiler():
        hint = "pip install ziglang, or give loop= in place of symbol="
        raise BuildError(f"function '{first}'", "there is no C compiler", hint)
    folder = temporary_folder()
    root = Path(folder.name)
    for file, text in texts.items():
        (root / file).write_bytes(text.encode())
    library = root / "functions.so"
    compile_shared([str(root / file) for file in texts], [root], library)
    there = Opened(f"function '{first}'", library, folder)
    found = {}
    for symbol in symbols(kernels):
        try:
            found[symbol] = there.address(symbol)
        except ValueError:
            what = f"{', '.join(texts)} does not define it"
            raise BuildError(f"function '{symbol}'", what) from None
    return UserFunctions(found, there)


def bitcode(text: Callable[[str, str, frozenset[str]], str]) -> bytes:
    """A module for this machine, not yet optimised; the same for the same models.

    text  the module for (triple, data layout, features)
    """
    machine = _host()
    data = str(machine.target_data)
    own = llvm.create_context()  # else types and constants stay for ever
    parsed = llvm.parse_assembly(text(machine.triple, data, vector_features()), own)
    parsed.verify()
    made: bytes = parsed.as_bitcode()
    return made


class Jit:
    """Models in memory.

    code   as of bitcode()
    Owner  keep the object as long as anything uses a model; Compiled does so
    """

    def __init__(self, code: bytes, functions: UserFunctions = NO_FUNCTIONS) -> None:
        machine, context = _host(), llvm.create_context()
        parsed = llvm.parse_bitcode(code, context)
        parsed.verify()
        llvm_passes.optimise(parsed, machine, host=True)
        self._engine = llvm.create_mcjit_compiler(parsed, machine)
        last = weakref.finalize(self, _close, self._engine, [context, functions])
        last.atexit = False  # at the end of the process nothing is closed
        for symbol, address in functions.addresses.items():
            self._engine.add_global_mapping(parsed.get_function(symbol), address)
        self._engine.finalize_object()

    def model(self, name: str) -> Compiled:
        address = int(self._engine.get_global_value_address(f"{name}_model"))
        return Compiled(host_library(), address, self)


def _close(engine: Any, after: list[object]) -> None:
    """Frees the code, then the objects that it needs."""
    engine.close()
    after.clear()


def jit(tables: Tables) -> Compiled:
    """A model compiled in memory for this machine."""
    functions = user_functions([func for func, _ in tables.kernels])
    return Jit(bitcode(functools.partial(module, tables)), functions).model(tables.name)
