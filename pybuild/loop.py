"""Loop IR: the one language kernels are written in, printed as C99 and LLVM IR.

Six statements over the expressions of expr.py, which this file hands on.
Knows nothing of operators, graphs or targets.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.expr import (
    BOOL,
    COMPARISONS,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    Binary,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Intrin,
    Load,
    Offset,
    Operand,
    PointerType,
    Row,
    Select,
    Type,
    Var,
    WideLoad,
    binary,
    cast,
    children,
    const,
    equal,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
    pointer_type,
    scalar_type,
    select,
    wide,
)

__all__ = [
    "BOOL",
    "COMPARISONS",
    "FLOAT32",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "Assign",
    "Binary",
    "Bitcast",
    "Call",
    "Cast",
    "Const",
    "Expr",
    "For",
    "Func",
    "If",
    "Intrin",
    "Let",
    "Load",
    "Offset",
    "Operand",
    "Part",
    "Piece",
    "PointerType",
    "Row",
    "Select",
    "Stmt",
    "Store",
    "Type",
    "Var",
    "WideLoad",
    "binary",
    "cast",
    "children",
    "const",
    "equal",
    "i32",
    "i64",
    "load",
    "maximum",
    "minimum",
    "offset",
    "pointer_type",
    "scalar_type",
    "select",
    "wide",
]


@dataclass(frozen=True)
class Let:
    """Declares a variable for the rest of its block."""

    var: Var
    value: Expr


@dataclass(frozen=True)
class Assign:
    """Changes a variable that Let declared."""

    var: Var
    value: Expr


@dataclass(frozen=True)
class Store:
    """pointer[index] = value"""

    pointer: Expr
    index: Expr
    value: Expr


@dataclass(frozen=True)
class For:
    """for (var = start; var < stop; var += step), step > 0

    rolled  its author has unrolled it as far as registers go: compilers must not
    """

    var: Var
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]
    rolled: bool = False


@dataclass(frozen=True)
class If:
    """if (condition) body else otherwise"""

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Part:
    """A piece of the kernel as a function of its own: it has all registers.

    name    of the function; pieces of one name are the same in all kernels
    params  all that the body knows of what is outside; never assigned
    """

    name: str
    params: tuple[Var, ...]
    args: tuple[Expr, ...]
    body: tuple[Stmt, ...]


Stmt = Let | Assign | Store | For | If | Part


@dataclass(frozen=True)
class Piece(Intrin):
    """The function that a Part calls, among the functions that a kernel needs."""

    body: tuple[Stmt, ...] = ()
    in_place: bool = False


@dataclass(frozen=True)
class Func:
    """A kernel: void name(void *const *p, const int32_t *a).

    args    names of a[0], a[1], ...
    arrays    local arrays (name, element, length), on the stack
    in_place  what it writes may be what it reads, element for element: each turn
              of an innermost loop touches only elements of its own
    """

    name: str
    args: tuple[Var, ...]
    arrays: tuple[tuple[Var, int], ...]
    body: tuple[Stmt, ...]
    in_place: bool = False
