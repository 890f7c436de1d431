"""The values of LLVM IR text: types, arithmetic, and what a function has so far.

Knows no statement and no expression of the loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.dtype import DType
from pybuild.emit.kernels.llvm_declared import (
    BELOW,
    FLOAT,
    INTEGER,
    ORDERED,
    SIGNED,
    UNSIGNED,
    width,
)
from pybuild.ir.loop import (
    COMPARISONS,
    Expr,
    Intrin,
    PointerType,
    Type,
    Var,
    VectorType,
)

_BITS = {
    DType.INT8: "i8", DType.UINT8: "i8", DType.INT16: "i16", DType.INT32: "i32",
    DType.INT64: "i64", DType.FLOAT32: "float", DType.BOOL: "i1",
    DType.UINT16: "i16", DType.UINT32: "i32", DType.UINT64: "i64",
    DType.FLOAT64: "double",
}  # fmt: skip


def llvm_type(kind: Type) -> str:
    """The LLVM spelling of a type."""
    if isinstance(kind, VectorType) and kind.grows:
        return f"%crt.{kind.elem.value}v{kind.lanes}"
    if isinstance(kind, VectorType):
        return f"<{kind.lanes} x {_BITS[kind.elem]}>"
    return "ptr" if isinstance(kind, PointerType) else _BITS[kind]


class Printer:
    """The state of printing one function."""

    # alias metadata of loads and stores: what is written is not what is read
    reads = ", !alias.scope !4, !noalias !5"
    writes = ", !alias.scope !5, !noalias !4"
    innermost = ""  # metadata of loops without a loop inside

    def __init__(self, mutable: frozenset[str], features: frozenset[str]) -> None:
        self.mutable, self.features = mutable, features
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.places: dict[str, str] = {}  # of variables: llvm_order.py
        self.known: Mapping[str, Expr] = {}  # values of variables: llvm_order.py
        self.counter = 0

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def emit(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self) -> str:
        self.counter += 1
        return f"b{self.counter}"

    def slot(self, var: Var) -> str:
        self.counter += 1
        name = f"%{var.name}.{self.counter}"
        self.allocas.append(f"  {name} = alloca {llvm_type(var.type)}")
        return name


def memory_type(dtype: DType) -> str:
    return "i8" if dtype is DType.BOOL else _BITS[dtype]


def instruction(printer: Printer, intrin: Intrin, values: list[str]) -> str:
    if intrin.rotate:
        last = f"i32 {values[-1]}"
        turned = f"call i32 @llvm.fshr.i32({last}, {last}, i32 {intrin.rotate})"
        values = [*values[:-1], printer.emit(turned)]
    types = [llvm_type(param.type) for param in intrin.params]
    args = [f"{kind} {value}" for kind, value in zip(types, values, strict=True)]
    args = [*(f"i32 {n}" for n in intrin.lead), *args]
    args += [f"i32 {n}" for n in intrin.trail]
    result = llvm_type(intrin.result.type)
    return printer.emit(f"call {result} @{intrin.llvm}({', '.join(args)})")


def lanes(printer: Printer, kind: VectorType, values: list[str]) -> str:
    """A vector of scalars."""
    elem, made = _BITS[kind.elem], "poison"
    for index, value in enumerate(values):
        text = f"insertelement {llvm_type(kind)} {made}, {elem} {value}, i32 {index}"
        made = printer.emit(text)
    return made


def resized(printer: Printer, text: str, a: VectorType, b: VectorType) -> str:
    """A vector with lanes of another width."""
    if a.elem is b.elem:
        return text
    how = "sext" if a.elem.bytes < b.elem.bytes else "trunc"
    return printer.emit(f"{how} {llvm_type(a)} {text} to {llvm_type(b)}")


def operation(printer: Printer, op: str, kind: Type, left: str, right: str) -> str:
    name = llvm_type(kind)
    is_float = isinstance(kind, DType) and kind.is_float
    unsigned = isinstance(kind, DType) and kind.is_unsigned
    if op in COMPARISONS:
        integers = BELOW if unsigned else SIGNED
        test = f"fcmp {ORDERED[op]}" if is_float else f"icmp {integers[op]}"
        return printer.emit(f"{test} {name} {left}, {right}")
    if op in ("min", "max"):
        if is_float:
            order = (right, left) if op == "min" else (left, right)
            test = printer.emit(f"fcmp olt {name} {order[0]}, {order[1]}")
            return printer.emit(f"select i1 {test}, {name} {right}, {name} {left}")
        short = name.replace("<", "v").replace(" x ", "").strip(">")
        call = f"call {name} @llvm.s{op}.{short}({name} {left}, {name} {right})"
        return printer.emit(call)
    table = FLOAT if is_float else UNSIGNED if unsigned else INTEGER
    return printer.emit(f"{table[op]} {name} {left}, {right}")


def converted(printer: Printer, text: str, source: DType, target: DType) -> str:
    a, b = llvm_type(source), llvm_type(target)
    unsigned = source.is_unsigned or source is DType.BOOL
    if source.is_float and target.is_float:
        how = "fpext" if target is DType.FLOAT64 else "fptrunc"
        return printer.emit(f"{how} {a} {text} to {b}")
    if source.is_float:
        how = "fptoui" if target.is_unsigned else "fptosi"
        return printer.emit(f"{how} {a} {text} to {b}")
    if target.is_float:
        how = "uitofp" if unsigned else "sitofp"
        return printer.emit(f"{how} {a} {text} to {b}")
    if width(source) == width(target):
        return text
    if width(source) > width(target):
        return printer.emit(f"trunc {a} {text} to {b}")
    return printer.emit(f"{'zext' if unsigned else 'sext'} {a} {text} to {b}")
