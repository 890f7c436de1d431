"""Loop IR: the one language kernels are written in, printed as C99 and LLVM IR.

Five statements over the expressions of expr.py, which this file hands on.
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
    "PointerType",
    "Row",
    "Select",
    "Stmt",
    "Store",
    "Type",
    "Var",
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
    """for (var = start; var < stop; var += step), step > 0"""

    var: Var
    start: Expr
    stop: Expr
    step: int
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class If:
    """if (condition) body else otherwise"""

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


Stmt = Let | Assign | Store | For | If


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
