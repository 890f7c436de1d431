"""Kernels that are C functions of the user: what calls them, as C99 and as LLVM IR."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pybuild.emit.kernels.c import block_comment, field_comment
from pybuild.emit.tables.comments import kernel_fields
from pybuild.emit.tables.tables import User
from pybuild.errors import BuildError
from pybuild.ir.loop import Func
from pybuild.kernels.base.external import External


def c_function(kernel: External, users: Sequence[User], linkage: str) -> str:
    """The prototype of the symbol, and the kernel that calls it."""
    symbol, count = kernel.symbol, len(kernel.pointers)
    lines = [
        *block_comment(f"Defined in {kernel.file or 'a file of yours'}."),
        f"void {symbol}(void *const *p, const int32_t *a);",
        "",
        *field_comment(kernel_fields(kernel, users)),
        f"{linkage}void {kernel.name}(void *const *p, const int32_t *a)",
        "{",
    ]
    if kernel.pointers == tuple(range(count)):
        return "\n".join([*lines, f"    {symbol}(p, a);", "}", ""])
    lines += [f"    void *q[{count}];", ""]
    lines += [f"    q[{i}] = p[{from_}];" for i, from_ in enumerate(kernel.pointers)]
    return "\n".join([*lines, f"    {symbol}(q, a);", "}", ""])


def llvm_function(kernel: External, linkage: str = "") -> str:
    """The kernel that calls the symbol; declare it once with llvm_declarations."""
    lines = [f"define {linkage}void @{kernel.name}(ptr %p, ptr %a) #0 {{"]
    pointers = "%p"
    if kernel.pointers != tuple(range(len(kernel.pointers))):
        pointers = "%q"
        lines.append(f"  %q = alloca [{len(kernel.pointers)} x ptr]")
        for i, from_ in enumerate(kernel.pointers):
            lines += [
                f"  %f{i} = getelementptr inbounds ptr, ptr %p, i32 {from_}",
                f"  %v{i} = load ptr, ptr %f{i}",
                f"  %t{i} = getelementptr inbounds ptr, ptr %q, i32 {i}",
                f"  store ptr %v{i}, ptr %t{i}",
            ]
    call = f"  call void @{kernel.symbol}(ptr {pointers}, ptr %a)"
    return "\n".join([*lines, call, "  ret void", "}", ""])


def symbols(kernels: Iterable[Func]) -> list[str]:
    """The C functions that kernels call, each once."""
    found = [k.symbol for k in kernels if isinstance(k, External)]
    return list(dict.fromkeys(found))


def llvm_declarations(kernels: Iterable[Func]) -> list[str]:
    return [f"declare void @{symbol}(ptr, ptr)" for symbol in symbols(kernels)]


def sources(kernels: Iterable[Func], taken: Iterable[str]) -> dict[str, str]:
    """The users' C files: name -> text.

    taken   names that the model's own files have
    Errors  BuildError where two files have one name
    """
    found: dict[str, str] = {}
    for kernel in kernels:
        if not isinstance(kernel, External) or not kernel.file:
            continue
        clash = found.get(kernel.file, kernel.source) != kernel.source
        if clash or kernel.file in taken:
            what = f"another file is named '{kernel.file}' too"
            raise BuildError(f"function '{kernel.symbol}'", what, "rename it")
        found[kernel.file] = kernel.source
    return found


def must_have_sources(kernels: Iterable[Func]) -> None:
    """Checks that the sources of all C functions are known.

    Errors  BuildError where a C function is somewhere else: it cannot run here
    """
    for kernel in kernels:
        if isinstance(kernel, External) and not kernel.file:
            what = "is linked from elsewhere, so it cannot run on this machine"
            where = f"function '{kernel.symbol}'"
            raise BuildError(where, what, "give source=, or reference= for a self-test")


def must_be_ours(kernels: Iterable[Func]) -> None:
    """Checks that the generated code contains all functions.

    Errors  BuildError where the code alone does not hold all functions
    """
    for symbol in symbols(kernels):
        what = "is C, which LLVM's code does not hold"
        raise BuildError(f"function '{symbol}'", what, 'build with target="c"')
