"""A model's tables, kernels and weights as a linkable object, by LLVM alone.

The same IR as the host runs (model_llvm.py), for another processor.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Any

import llvmlite.binding as llvm

from pybuild.emit.content import Joined
from pybuild.emit.llvm import passes as llvm_passes
from pybuild.emit.llvm.contents import SECTION, large, with_contents
from pybuild.emit.llvm.model import ABI, module
from pybuild.emit.llvm.sums import with_sums
from pybuild.emit.tables.tables import Tables
from pybuild.targets.llvm import Llvm

# of every kernel; without optsize code is up to a fifth larger and no faster
_ATTRIBUTES = "nounwind optsize"
_DATA = re.compile(
    r"^@(\w+) = (?:internal )?(?:externally_initialized )?constant .*", re.MULTILINE
)
_CODE = re.compile(r"^(define .*@(\w+)\(.*\).*#0) \{", re.MULTILINE)


def object_file(tables: Tables, processor: Llvm, optimise: str) -> Joined:
    """NAME.o: an ELF file that exports NAME_model and needs crt of this ABI.

    Every kernel and every table is a section, named as gcc -ffunction-sections
    -fdata-sections name theirs; weights are in .rodata.weights.SYMBOL.
    """
    machine, later = machine_of(processor), large(tables.constants)
    parsed = _optimised(tables, processor, optimise, later)
    made = machine.emit_object(parsed)
    return with_contents(made if processor.is_linux else _without_note(made), later)


def assembly(tables: Tables, processor: Llvm, optimise: str) -> str:
    """The object as assembly text, for readers."""
    parsed = _optimised(tables, processor, optimise)
    return str(machine_of(processor).emit_assembly(parsed))


def _optimised(
    tables: Tables, processor: Llvm, optimise: str, later: Collection[str] = ()
) -> Any:
    machine = machine_of(processor)
    text = object_text(tables, processor, str(machine.target_data), optimise, later)
    own = llvm.create_context()  # else types and constants stay for ever
    parsed = llvm.parse_assembly(text, own)
    parsed.verify()
    llvm_passes.optimise(parsed, machine, host=False)
    return parsed


def _without_note(content: bytes) -> bytes:
    """The file without the section by whose absence elsewhere GNU ld concludes that
    code is on the stack, and warns: no file of a bare-metal gcc has it. Renamed, for
    then nothing moves; section names stand behind all data."""
    before, note, after = content.rpartition(b".note.GNU-stack\0")
    return before + (b".comment.kernel\0" if note else b"") + after


def object_text(
    tables: Tables,
    processor: Llvm,
    layout: str,
    optimise: str,
    later: Collection[str] = (),
) -> str:
    """The IR of the object; `layout` is LLVM's data layout of the processor.

    later  symbols of constants that are put in behind LLVM
    """
    weights = {constant.symbol for constant in tables.constants}
    # an operating system's loader writes them
    pointers = ".data.rel.ro." if processor.is_linux else ".rodata."

    def data(found: re.Match[str]) -> str:
        place = SECTION if found[1] in weights else ".rodata."
        if "ptr" in found[0]:
            place = pointers
        return f'{found[0]}, section "{place}{found[1]}"'

    made = module(tables, processor.triple, layout, processor.has, later)
    text = _DATA.sub(data, with_sums(made, tables))
    text = _CODE.sub(r'\1 section ".text.\2" {', text)
    head = f'source_filename = "{tables.name}"'
    attributes = _attributes(optimise, "mve" in processor.has)
    locked = _lock(tables.name, pointers)
    return "\n".join([head, text, *locked, *attributes])


def _lock(name: str, place: str) -> list[str]:
    """Refers to crt's symbol of this ABI: with another crt the link fails. In the
    model's own section, which no linker drops alone."""
    return [
        f"@crt_abi_{ABI} = external constant i32",
        f"@{name}_abi = internal constant ptr @crt_abi_{ABI}, "
        f'section "{place}{name}_model"',
        f"@llvm.compiler.used = appending global [1 x ptr] [ptr @{name}_abi], "
        'section "llvm.metadata"',
    ]


def _attributes(optimise: str, vectors: bool) -> list[str]:
    """vectors  loops that fill and copy stay: a function of the C library takes more
    instructions than they do, and is called for a row's padding"""
    more = " minsize" if optimise == "size" else ""
    if vectors:
        more += ' "no-builtin-memset"'
    return [f"attributes #0 = {{ {_ATTRIBUTES}{more} }}", ""]


@functools.cache
def _ready() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def _with_exact_tails() -> None:
    """LLVM 22.1 sums lanes behind the end of a row where the last turn of a loop on
    vectors is a partial one (DLSTP): such turns are masked instead."""
    llvm.set_option("crt", "-tail-predication=disabled")


def machine_of(processor: Llvm) -> Any:
    """LLVM's code generator; a pass builder eats it."""
    _ready()
    target = llvm.Target.from_triple(processor.triple)
    if "+mve" in processor.features:
        _with_exact_tails()
    return target.create_target_machine(
        cpu=processor.cpu,
        features=processor.features,
        opt=3,
        reloc="pic" if processor.is_linux else "static",
        codemodel="small",
        abiname=processor.abi,
    )
