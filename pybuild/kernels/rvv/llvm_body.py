"""How operations of vectors.py are written as functions of LLVM IR: types, and the
lines of one function.
"""

from __future__ import annotations

from collections.abc import Sequence

XLEN = "iXLEN"  # integers of a register, of 32 or 64 bits: emit/kernels/llvm_grows.py
UP, TO_EVEN, DOWN = 0, 1, 2  # vxrm: ties up, ties to even, downwards
BITS = {"b": "i8", "h": "i16"}
KEEP = 3  # policy: what lanes behind the last hold does not matter


class Kinds:
    """The types of vectors of so many lanes: in LLVM, and in names of intrinsics.

    registers  LMUL of words, as vsetvli has it
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        half = lanes // 2
        self.words, self.w = f"%crt.int32v{lanes}", f"nxv{half}i32"
        self.halves, self.h = f"%crt.int16v{lanes}", f"nxv{half}i16"
        self.bytes, self.b = f"%crt.int8v{lanes}", f"nxv{half}i8"
        self.registers = {16: 2, 32: 3}[lanes]
        self.mask, self.m = f"<vscale x {half} x i1>", f"nxv{half}i1"

    def named(self, elem: str) -> tuple[str, str]:
        """The type of a letter, and its name in intrinsics."""
        return {"b": (self.bytes, self.b), "h": (self.halves, self.h),
                "w": (self.words, self.w)}[elem]  # fmt: skip


class Body:
    """The lines of one function, and the intrinsics that they call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declared: list[str] = []
        self.count = 0

    def call(self, result: str, name: str, *args: tuple[str, str]) -> str:
        """A call; its value's name."""
        self.count += 1
        made = f"%r{self.count}"
        kinds = ", ".join(kind for kind, _ in args)
        given = ", ".join(f"{kind} {value}" for kind, value in args)
        self.declared.append(f"declare {result} @llvm.riscv.{name}({kinds})")
        self.lines.append(f"  {made} = call {result} @llvm.riscv.{name}({given})")
        return made

    def plain(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %r{self.count} = {text}")
        return f"%r{self.count}"

    def text(self, name: str, result: str, given: str, value: str) -> str:
        """The declarations and the function."""
        head = f"define internal {result} @{name}({given}) alwaysinline nounwind {{"
        length = f"  %vl = call {XLEN} @crt_wide(i32 %n)"
        return "\n".join([*self.declared, head, length, *self.lines,
                          f"  ret {result} {value}", "}"])  # fmt: skip

    def wide(self, number: str) -> str:
        """A number of 32 bits as a register has it."""
        return self.plain(f"call {XLEN} @crt_wide(i32 {number})")


def length() -> tuple[str, str]:
    return XLEN, "%vl"


def both(t: Kinds, f: Body, name: str, a: str, b: str, more: Sequence[str] = ()) -> str:
    """An instruction on two vectors of words."""
    last = ((XLEN, one) for one in more)
    args = ((t.words, "poison"), (t.words, a), (t.words, b), *last, length())
    return f.call(t.words, f"{name}.{t.w}.{t.w}.{XLEN}", *args)


def one(t: Kinds, f: Body, name: str, a: str, x: str, kind: str = "") -> str:
    """An instruction on a vector of words and a number."""
    kind = kind or "i32"
    args = ((t.words, "poison"), (t.words, a), (kind, x), length())
    return f.call(t.words, f"{name}.{t.w}.{kind}.{XLEN}", *args)
