"""Expressions of the Loop IR, and the constructors that fold constants.

Explicit integer widths; signed arithmetic never overflows: the kernel's author
proves it, UBSan checks it. Unsigned arithmetic of 32 and 64 bits wraps.
Knows nothing of operators, graphs or targets.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Union

from pybuild.dtype import DType
from pybuild.records import dataclass

INT8, INT16, INT32, INT64 = DType.INT8, DType.INT16, DType.INT32, DType.INT64
UINT8, UINT16, UINT32, UINT64 = DType.UINT8, DType.UINT16, DType.UINT32, DType.UINT64
FLOAT32, FLOAT64, BOOL = DType.FLOAT32, DType.FLOAT64, DType.BOOL

COMPARISONS = ("<", "<=", "==", "!=")


@dataclass(frozen=True)
class PointerType:
    """A pointer to elements of one type; kernels store only through writable ones."""

    elem: DType
    writable: bool = False


@dataclass(frozen=True)
class VectorType:
    """Several integers that one instruction works on, lane by lane.

    grows  it has so many lanes where registers have 128 bits, and more where they are
           longer: each operation is told how many it works on
    """

    elem: DType
    lanes: int
    grows: bool = False


Type = DType | PointerType | VectorType
Operand = Union["Expr", int, float]


class Expr:
    """An expression; Python's operators build larger ones, folding constants."""

    type: Type

    def __add__(self, other: Operand) -> Expr:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary("+", self, other)

    def __sub__(self, other: Operand) -> Expr:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary("-", typed(other, self), self)

    def __mul__(self, other: Operand) -> Expr:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary("*", self, other)

    def __truediv__(self, other: Operand) -> Expr:
        return binary("/", self, other)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary("/", self, other)

    def __mod__(self, other: Operand) -> Expr:
        return binary("%", self, other)

    def __and__(self, other: Operand) -> Expr:
        return binary("&", self, other)

    def __or__(self, other: Operand) -> Expr:
        return binary("|", self, other)

    def __xor__(self, other: Operand) -> Expr:
        return binary("^", self, other)

    def __lshift__(self, other: Operand) -> Expr:
        return binary("<<", self, other)

    def __rshift__(self, other: Operand) -> Expr:
        return binary(">>", self, other)

    def __lt__(self, other: Operand) -> Expr:
        return binary("<", self, other)

    def __le__(self, other: Operand) -> Expr:
        return binary("<=", self, other)

    def __gt__(self, other: Operand) -> Expr:
        return binary("<", typed(other, self), self)

    def __ge__(self, other: Operand) -> Expr:
        return binary("<=", typed(other, self), self)


@dataclass(frozen=True)
class Const(Expr):
    """A literal."""

    value: int | float
    type: DType


@dataclass(frozen=True)
class Var(Expr):
    """A named value, introduced by Let or For, or a local array (as a pointer)."""

    name: str
    type: Type


@dataclass(frozen=True)
class Load(Expr):
    """pointer[index]"""

    pointer: Expr
    index: Expr

    @property
    def type(self) -> DType:  # type: ignore[override]
        return pointer_type(self.pointer).elem


@dataclass(frozen=True)
class WideLoad(Expr):
    """Several elements at pointer[index] as one little-endian integer, or as the
    lanes of a vector, each widened to what a lane holds.

    align  bytes that the address is proven to be a multiple of
    """

    pointer: Expr
    index: Expr
    type: DType | VectorType
    align: int = 1


@dataclass(frozen=True)
class Row(Expr):
    """The kernel's pointer number `index`, seen as elements of one type."""

    index: Expr
    type: PointerType


@dataclass(frozen=True)
class Offset(Expr):
    """pointer + index elements"""

    pointer: Expr
    index: Expr

    @property
    def type(self) -> PointerType:  # type: ignore[override]
        return pointer_type(self.pointer)


@dataclass(frozen=True)
class Binary(Expr):
    """a op b, both of one type; / and % truncate; >> keeps the sign of signed types.

    min, max: a, unless b is beyond it: a NaN in `a` stays, one in b does not count.
    Vectors only in the meaning of an Intrin.
    """

    op: str
    a: Expr
    b: Expr

    @property
    def type(self) -> Type:  # type: ignore[override]
        return BOOL if self.op in COMPARISONS else self.a.type


@dataclass(frozen=True)
class Select(Expr):
    """condition ? a : b"""

    condition: Expr
    a: Expr
    b: Expr

    @property
    def type(self) -> Type:  # type: ignore[override]
        return self.a.type


@dataclass(frozen=True)
class Cast(Expr):
    """The value in another type; float to integer truncates and must be in range.

    Vectors, lane by lane, only in the meaning of an Intrin.
    """

    value: Expr
    type: DType | VectorType


@dataclass(frozen=True)
class Bitcast(Expr):
    """The same bits in another type of the same size."""

    value: Expr
    type: DType | VectorType


def pointer_type(expr: Expr) -> PointerType:
    """The type of an expression that must be a pointer."""
    assert isinstance(expr.type, PointerType), expr
    return expr.type


def scalar_type(expr: Expr) -> DType:
    """The type of an expression that must not be a pointer."""
    assert isinstance(expr.type, DType), expr
    return expr.type


def const(value: int | float, dtype: DType = INT32) -> Const:
    return Const(float(value) if dtype.is_float else int(value), dtype)


def typed(value: Operand, like: Expr) -> Expr:
    if isinstance(value, Expr):
        return value
    return const(value, scalar_type(like))


def binary(op: str, left: Operand, right: Operand) -> Expr:
    """a op b; integer constants are folded, neutral elements dropped."""
    a = left if isinstance(left, Expr) else typed(left, _expr(right))
    b = typed(right, a)
    if a.type != b.type and not (op in COMPARISONS and _both_pointers(a, b)):
        raise TypeError(f"{a.type} {op} {b.type}")
    if op in ("min", "max") and isinstance(a.type, DType) and a.type.is_unsigned:
        raise TypeError(f"{op} of {a.type}: the printers have it of signed types")
    if isinstance(a, Const) and isinstance(b, Const) and isinstance(a.value, int):
        return _fold(op, a, b)
    if isinstance(b, Const) and isinstance(b.value, int):
        if b.value == 0 and op in ("+", "-", "<<", ">>", "|", "^"):
            return a
        if b.value == 1 and op in ("*", "/"):
            return a
        if b.value == 0 and op == "*":
            return b
    if isinstance(a, Const) and isinstance(a.value, int):
        if (a.value == 0 and op == "+") or (a.value == 1 and op == "*"):
            return b
        if a.value == 0 and op == "*":
            return a
        if op in ("+", "*"):
            a, b = b, a
    return _gather(op, a, b) or Binary(op, a, b)


def _gather(op: str, a: Expr, b: Expr) -> Expr | None:
    """(x + 1) + 2 as x + 3, for integers."""
    if not (isinstance(a, Binary) and isinstance(a.b, Const) and isinstance(b, Const)):
        return None
    signs = {"+": 1, "-": -1}
    if op not in signs or a.op not in signs or not isinstance(b.value, int):
        return None
    total = signs[a.op] * int(a.b.value) + signs[op] * b.value
    return binary("+", a.a, total) if total >= 0 else binary("-", a.a, -total)


def _expr(value: Operand) -> Expr:
    if not isinstance(value, Expr):
        raise TypeError("one operand must be an expression")
    return value


def _both_pointers(a: Expr, b: Expr) -> bool:
    return isinstance(a.type, PointerType) and isinstance(b.type, PointerType)


# what each operator makes of integers
FOLDED: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "%": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "min": min,
    "max": max,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def _fold(op: str, a: Const, b: Const) -> Const:
    folded = int(FOLDED[op](int(a.value), int(b.value)))
    if op in COMPARISONS:
        return Const(folded, BOOL)
    if a.type.is_unsigned:
        folded &= a.type.high
    return Const(folded, a.type)


def cast(value: Operand, dtype: DType) -> Expr:
    """`value` in another type; a constant or a value of that type costs nothing."""
    if not isinstance(value, Expr):
        return const(value, dtype)
    if value.type == dtype:
        return value
    if isinstance(value, Const) and not dtype.is_float:
        return const(value.value, dtype)
    return Cast(value, dtype)


def i32(value: Operand) -> Expr:
    return cast(value, INT32)


def i64(value: Operand) -> Expr:
    return cast(value, INT64)


def load(pointer: Expr, index: Operand = 0) -> Expr:
    return Load(pointer, index if isinstance(index, Expr) else const(index))


def wide(pointer: Expr, index: Operand = 0, dtype: DType | VectorType = INT32) -> Expr:
    """The bytes from pointer[index] on as one value, at any address."""
    return WideLoad(pointer, index if isinstance(index, Expr) else const(index), dtype)


def offset(pointer: Expr, index: Operand) -> Expr:
    where = index if isinstance(index, Expr) else const(index)
    if isinstance(where, Const) and where.value == 0:
        return pointer
    return Offset(pointer, where)


def select(condition: Expr, a: Operand, b: Operand) -> Expr:
    if isinstance(condition, Const):
        chosen, other = (a, b) if condition.value else (b, a)
        return chosen if isinstance(chosen, Expr) else typed(chosen, _expr(other))
    left = a if isinstance(a, Expr) else typed(a, _expr(b))
    return Select(condition, left, typed(b, left))


def minimum(a: Operand, b: Operand) -> Expr:
    return binary("min", a, b)


def maximum(a: Operand, b: Operand) -> Expr:
    return binary("max", a, b)


def equal(a: Expr, b: Operand) -> Expr:
    return binary("==", a, b)
