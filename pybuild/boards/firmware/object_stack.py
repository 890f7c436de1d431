"""Stack of the kernels in an object that LLVM has made, before anything is linked:
what each pushes, read off its code, along the calls that its relocations name.
"""

from __future__ import annotations

from dataclasses import field

from pybuild.boards.firmware.machine_code import flows
from pybuild.boards.firmware.vector_frames import vector_bytes
from pybuild.bounds.stack import KernelStack, deepest
from pybuild.emit.llvm.contents import Sections, sections_of
from pybuild.errors import BuildError
from pybuild.records import dataclass

_CODE = ".text."
_FUNCTION, _SECTION = 2, 3  # types of a symbol
_RELA, _REL = 4, 9  # types of a section of relocations


@dataclass
class _Function:
    frame: int = 0
    indirect: bool = False
    calls: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)


def object_stack(content: bytes, arch: str) -> KernelStack:
    """content  ELF, little-endian: each function is a section (emit/llvm/object.py)

    Errors  BuildError for recursion
    """
    sections = sections_of(content)
    functions = {
        number: _function(content, sections, number, arch)
        for number, name in enumerate(sections.names)
        if name.startswith(_CODE)
    }
    by_name = {_named(sections, number): one for number, one in functions.items()}
    for number, kind in enumerate(sections.table["type"]):
        of = int(sections.table[number]["info"])
        if kind in (_REL, _RELA) and of in functions:
            _add_calls(functions[of], sections, number)
    for name, one in by_name.items():
        if one.indirect:
            return KernelStack(reason=f"unknown: {name} calls through a register")
    found = deepest(
        by_name,
        lambda name: by_name[name].frame,
        lambda name: by_name[name].calls & by_name.keys() - {name},
    )
    outside = sorted(set[str]().union(*(one.outside for one in functions.values())))
    return KernelStack(found.bytes, found.frames, tuple(outside), "")


def _named(sections: Sections, number: int) -> str:
    return sections.names[number].removeprefix(_CODE)


def _function(content: bytes, sections: Sections, number: int, arch: str) -> _Function:
    """The code of one function, without the data in it."""
    row = sections.table[number]
    code = content[int(row["at"]) :][: int(row["bytes"])]
    mine = sections.symbols[sections.symbols["section"] == number]
    marks = sorted(
        (int(symbol["value"]) & ~1, sections.symbol_name(symbol).startswith("$d"))
        for symbol in mine
        if sections.symbol_name(symbol)[:2] in ("$t", "$d", "$x")
    )
    ends = [at for at, _ in marks[1:]] + [len(code)]
    pieces = zip(marks, ends, strict=True) if marks else (((0, False), len(code)),)
    seen = [
        flow
        for (at, is_data), end in pieces
        if not is_data
        for flow in flows(arch, code[at:end], at)
    ]
    vectors = vector_bytes(code) if arch == "riscv" else 0
    if vectors is None:
        raise BuildError(_named(sections, number), "its stack frame has no fixed size")
    return _Function(
        vectors + sum(flow.value for flow in seen if flow.kind == "push"),
        any(flow.kind == "indirect" for flow in seen),
    )


def _add_calls(function: _Function, sections: Sections, number: int) -> None:
    """Whatever code refers to, unless it is data, is called."""
    words = 3 if sections.table[number]["type"] == _RELA else 2
    for symbol in sections.relocated(number, words):
        where, kind = int(symbol["section"]), int(symbol["info"]) & 15
        if not where and symbol["name"]:
            function.outside.add(sections.symbol_name(symbol))
        elif kind in (_FUNCTION, _SECTION) and sections.names[where].startswith(_CODE):
            function.calls.add(_named(sections, where))
