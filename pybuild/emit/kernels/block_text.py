"""A block of c_blocks.py as C: the assembly, and beside it the C of its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.emit.kernels.c_blocks import SUMS, Block, Written, given_in
from pybuild.ir.loop import Const, Expr, For, Let, PointerType, Var
from pybuild.records import dataclass

GUARD = "CRT_MVE_BLOCKS"  # of crt/vector.h


@dataclass(frozen=True)
class _Operand:
    """A variable that the assembly names.

    kind  gcc's constraint, with what is done to it; what is written is so before all
          is read: &, or a pointer that begins where another does would share with it
    type  the variable's, in C
    own   it is declared in the block, and read nowhere else
    """

    name: str
    kind: str
    type: str
    own: bool = False

    @property
    def is_read(self) -> bool:
        return self.kind[0] != "="

    @property
    def is_written(self) -> bool:
        return self.kind[0] in "=+"

    def text(self, variable: str) -> str:
        return f'[{self.name}] "{self.kind}"({variable})'


def block_lines(
    block: Block,
    depth: int,
    plain: Sequence[str],
    expression: Callable[[Expr], str],
) -> list[str]:
    """A block in C; `plain`: the lines of its statements."""
    made = block.written
    operands = [*_sums(block, made), *_vectors(block, made), *_pointers(made)]
    fixed, inside = dict[str, str](), list[str]()
    lines, clobbers = [*made.lines], [*made.vectors.clobbered, "memory"]
    if block.loop is not None:
        inside.append(f"int32_t left = {_turns(block.loop, expression)};")
        operands.append(_Operand("turns", "+&r", "int32_t ", True))
        if len(made.sums) < SUMS:
            fixed["turns"] = "lr"
            lines = ["wls lr, %[turns], 2f\n1:", *lines, "le lr, 1b\n2:"]
        else:
            first = ["cmp %[turns], #0", "beq 2f\n1:"]
            lines = [*first, *lines, "subs %[turns], #1", "bne 1b\n2:"]
            clobbers.append("cc")
    fixed |= made.registers or {}
    declared = {s.var.name for s in block.body if isinstance(s, Let)}
    before = [f"{one.type}{one.name};" for one in operands
              if one.name in declared and not (one.own and one.name in fixed)
              and one.is_written]  # fmt: skip
    names, after = dict[str, str](), list[str]()
    for one in operands:
        names[one.name] = one.name
        if one.name in fixed:
            names[one.name] = f"{one.name}_{fixed[one.name]}"
            given = "left" if one.name == "turns" else one.name
            value = f" = {given}" if one.is_read else ""
            where = f'{names[one.name]} __asm__("{fixed[one.name]}")'
            inside.append(f"register {one.type}{where}{value};")
            if one.is_written and not one.own:
                after.append(f"{one.name} = {names[one.name]};")
    ways = [[o.text(names[o.name]) for o in operands if o.is_written == out]
            for out in (True, False)]  # fmt: skip
    ways.append([f'"{name}"' for name in clobbers])
    body = _assembly(lines, ways)
    if inside:
        scope = [*inside, *body, *after]
        body = ["{", *(f"    {line}" for line in scope), "}"]
    pad = "    " * depth
    text = [pad + line for line in (*before, *body)]
    return [f"#if defined({GUARD})", *text, "#else", *plain, "#endif"]


def _sums(block: Block, made: Written) -> list[_Operand]:
    own = {s.var for s in block.body if isinstance(s, Let)} - block.after
    names = {var.name for var in own}
    return [
        _Operand(name, ("=&" if fresh else "+&") + "Te", "int32_t ", name in names)
        for name, fresh in made.sums.items()
    ]


def _vectors(block: Block, made: Written) -> list[_Operand]:
    words = "crt_int32x4 "
    return [
        *(_Operand(v.name, "=&w", words) for v in made.vectors.made),
        *(_Operand(v.name, "+&w", words) for v in made.changed),
        *(_Operand(v.name, "w", "") for v in given_in(block)),
    ]


def _pointers(made: Written) -> list[_Operand]:
    return [
        _Operand(x.name, "+&" * moved + ("l" if x in made.low else "r"), _type_of(x))
        for x, moved in made.pointers.items()
    ]


def _type_of(pointer: Var) -> str:
    kind = pointer.type
    assert isinstance(kind, PointerType)
    return f"{'' if kind.writable else 'const '}{kind.elem.c} *"


def _turns(loop: For, expression: Callable[[Expr], str]) -> str:
    count = expression(loop.stop)
    if loop.start != Const(0, loop.var.type):  # type: ignore[arg-type]
        count = f"({count}) - ({expression(loop.start)})"
    return f"crt_turns({count}, {loop.step})"


def _assembly(lines: Sequence[str], operands: Sequence[Sequence[str]]) -> list[str]:
    text = ["__asm__ volatile("]
    for line in lines:
        shown = line.replace("\n", "\\n")
        text.append(f'    "{shown}\\n\\t"')
    for part in operands:
        text += _filled(part)
    return [*text[:-1], text[-1] + ");"]


def _filled(parts: Sequence[str]) -> list[str]:
    """`: a, b, c`, broken where lines are long."""
    lines, line = list[str](), "    :"
    for number, part in enumerate(parts):
        piece = f" {part}" + ("," if number < len(parts) - 1 else "")
        if len(line) + len(piece) > 64 and line.strip() != ":":
            lines.append(line)
            line = "     "
        line += piece
    return [*lines, line]
