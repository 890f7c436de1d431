"""Loop IR: the one language kernels are written in, printed as C99 and LLVM IR.

Six statements over the expressions of expr.py, which this file hands on, and the
machine instructions among those.
Knows nothing of operators, graphs or targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from operator import attrgetter
from typing import Any

from pybuild.dtype import DType
from pybuild.ir.expr import (
    BOOL,
    COMPARISONS,
    FLOAT32,
    FLOAT64,
    FOLDED,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Binary,
    Bitcast,
    Cast,
    Const,
    Expr,
    Load,
    Offset,
    Operand,
    PointerType,
    Row,
    Select,
    Type,
    Var,
    VectorType,
    WideLoad,
    binary,
    cast,
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
    typed,
    wide,
)
from pybuild.records import dataclass

__all__ = [
    "BOOL",
    "COMPARISONS",
    "FLOAT32",
    "FLOAT64",
    "FOLDED",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
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
    "Lane",
    "Lanes",
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
    "VectorType",
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
class Intrin:
    """A small named function: its meaning, and its spelling where a machine has one.

    meaning  the result, over `params` and the names in `lets`, in order
    c        expression with {0}, {1}, ...; None: an inline function is printed
    feature  of the target that has an instruction for it; "": all have
    llvm     LLVM intrinsic of that instruction: its parameters are `lead`, these,
             `trail`; rotate: the last is first rotated right by so many bits;
             stages: it stores the result, by so many calls: address, these, a number
    ordered  calls stay in the order in which they are written, on targets with
             `feature`; in C the function of crt/intrin.h sees to it
    doc      what it is, for readers of the C; of no meaning
    header   that C needs for it; "": that of all kernels, or of a list of names
    define   LLVM's declarations and the function `llvm`, where that is no intrinsic
             of LLVM's own
    takes    instructions on a machine with `feature`; 0: what the cost model knows
    """

    name: str
    params: tuple[Var, ...]
    result: Expr
    lets: tuple[tuple[Var, Expr], ...] = ()
    c: str | None = None
    feature: str = ""
    llvm: str = ""
    rotate: int = 0
    lead: tuple[int, ...] = ()
    trail: tuple[int, ...] = ()
    stages: int = 0
    ordered: bool = False
    doc: str = field(default="", compare=False)
    header: str = field(default="", compare=False)
    define: str = field(default="", compare=False)
    takes: float = field(default=0, compare=False)

    def __call__(self, *args: Operand) -> Call:
        given = zip(args, self.params, strict=True)
        return Call(self, tuple(typed(a, p) for a, p in given))


@dataclass(frozen=True)
class Call(Expr):
    """An Intrin applied to arguments."""

    intrin: Intrin
    args: tuple[Expr, ...]

    @property
    def type(self) -> Type:  # type: ignore[override]
        return self.intrin.result.type


@dataclass(frozen=True)
class Lane(Expr):
    """One lane of a vector; only in the meaning of an Intrin."""

    vector: Expr
    index: int

    @property
    def type(self) -> DType:  # type: ignore[override]
        assert isinstance(self.vector.type, VectorType)
        return self.vector.type.elem


@dataclass(frozen=True)
class Lanes(Expr):
    """A vector of these values; only in the meaning of an Intrin."""

    values: tuple[Expr, ...]

    @property
    def type(self) -> VectorType:  # type: ignore[override]
        return VectorType(scalar_type(self.values[0]), len(self.values))


_INSIDE: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Load: attrgetter("pointer", "index"),
    WideLoad: attrgetter("pointer", "index"),
    Offset: attrgetter("pointer", "index"),
    Row: lambda expr: (expr.index,),
    Binary: attrgetter("a", "b"),
    Select: attrgetter("condition", "a", "b"),
    Cast: lambda expr: (expr.value,),
    Bitcast: lambda expr: (expr.value,),
    Call: attrgetter("args"),
    Lane: lambda expr: (expr.vector,),
    Lanes: attrgetter("values"),
}


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one."""
    inside = _INSIDE.get(type(expr))
    return inside(expr) if inside else ()


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
    """pointer[index] = value

    index  a vector of int16: each lane of the value is stored in a place of its own
    wide   an int32 into four bytes, at any address: WideLoad's counterpart
    count  lanes of the value that are stored, the first ones; None: all
    """

    pointer: Expr
    index: Expr
    value: Expr
    wide: bool = False
    count: Expr | None = None


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
    """if (condition) body else otherwise

    rare  of how many turns the body is, each layer knows (Candidate.rare)
    """

    condition: Expr
    body: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    rare: bool = False


@dataclass(frozen=True)
class Part:
    """A piece of the kernel as a function of its own: it has all registers.

    name    of the function; of several that are not the same, tables number them
    params  all that the body knows of what is outside; never assigned
    in_place  pointers, all writable, may be to the same memory
    doc     what it is, for readers of the C; of no meaning
    """

    name: str
    params: tuple[Var, ...]
    args: tuple[Expr, ...]
    body: tuple[Stmt, ...]
    in_place: bool = False
    doc: str = field(default="", compare=False)


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
    ordered   in place, and an iteration may read what one before it wrote
    doc       what `told` says of it, for readers of the C; of no meaning
    """

    name: str
    args: tuple[Var, ...]
    arrays: tuple[tuple[Var, int], ...]
    body: tuple[Stmt, ...]
    in_place: bool = False
    doc: str = field(default="", compare=False)
    ordered: bool = False

    def __hash__(self) -> int:
        """Few kernels of one name differ: their bodies need not be walked."""
        return hash((self.name, self.args))
