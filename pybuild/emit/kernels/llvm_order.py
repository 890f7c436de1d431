"""Code in the order in which kernels are written, by empty pieces of assembly.

LLVM loads further ahead than a core has registers, and spills. C says where by
assembly, for which llvmlite has no assembler; an empty string needs none.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import (
    INT32,
    Assign,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    For,
    Func,
    Intrin,
    Let,
    Load,
    PointerType,
    Select,
    Stmt,
    Store,
    Var,
    pointer_type,
)
from pybuild.ir.loop_verify import operands, statements, walked

# where sums of Thumb code stay: what else a loop holds has the six below and above
_SUMS = tuple(f"{{r{number}}}" for number in range(4, 12))

_VECTOR = 16  # bytes, of MVE

# the place of a sum of products: behind what is written before it
_BEHIND = "behind"


def is_ordered(intrin: Intrin, features: frozenset[str]) -> bool:
    """True if it keeps its place on the target."""
    return intrin.ordered and intrin.feature in features


def are_two_words(two: tuple[Stmt, Stmt], features: frozenset[str]) -> bool:
    """True if both are loads of words beside each other, on a core that has an
    instruction for these (LDRD); of loads that are apart by then LLVM makes none."""
    if "dsp" not in features or "mve" in features:
        return False
    match two:
        case Let(_, Load(Var(name) as at, Const(int() as low))), Let(
            _, Load(Var(again), Const(int() as high))
        ):
            words = isinstance(at.type, PointerType) and at.type.elem is INT32
            return words and name == again and high == low + 1
    return False


def in_order(kind: str, value: str) -> str:
    """The value, made before whatever is ordered after it."""
    register = "w" if kind.startswith("<") else "r"
    asm = f'asm sideeffect "", "={register},0,~{{memory}}"'
    return f"call {kind} {asm}({kind} {value})"


def placed(kind: str, value: str, place: str) -> str:
    """The value, in that register; of a pointer, LLVM forgets what it was."""
    if place == _BEHIND:
        return in_order(kind, value)
    return f'call {kind} asm "", "={place},0"({kind} {value})'


def definitions(func: Func) -> dict[str, Expr]:
    """The value of each variable that has one."""
    found = {s.var.name: s.value for s in statements(func.body) if isinstance(s, Let)}
    for stmt in statements(func.body):
        if isinstance(stmt, Assign):
            found.pop(stmt.var.name, None)
    return found


def is_short(loop: For, known: Mapping[str, Expr]) -> bool:
    """True if LLVM may know that a loop fits one vector, and not how many turns it has:
    its end has a bound, or it begins where whole vectors end.
    """
    most = None if isinstance(loop.stop, Const) else _most(loop.stop, known)
    short = most is not None and most <= _lanes(loop)
    return short or _is_a_rest(loop.start, known)


def _lanes(loop: For) -> int:
    """The number of lanes in a vector of the smallest elements that the loop reads or
    writes."""
    pointers = [s.pointer for s in statements(loop.body) if isinstance(s, Store)]
    for stmt in statements(loop.body):
        for expr in (part for one in operands(stmt) for part in walked(one)):
            if isinstance(expr, Load):
                pointers.append(expr.pointer)
    sizes = [pointer_type(one).elem.bytes for one in pointers]
    return _VECTOR // min(sizes, default=1)


def _most(expr: Expr, known: Mapping[str, Expr]) -> int | None:
    """The greatest value that an operation leaves; None: it leaves any."""
    match expr:
        case Const(int() as value):
            return value
        case Var(name) if name in known:
            return _most(known[name], known)
        case Cast(value):
            return _most(value, known)
        case Select(_, a, b):
            ends = _most(a, known), _most(b, known)
            return None if None in ends else max(e for e in ends if e is not None)
        case Binary("min" | "&", a, b):
            ends = _most(a, known), _most(b, known)
            return min((e for e in ends if e is not None and e >= 0), default=None)
        case Binary("%", _, Const(int() as by)):
            return by - 1
    return None


def _is_a_rest(expr: Expr, known: Mapping[str, Expr]) -> bool:
    match expr:
        case Var(name) if name in known:
            return _is_a_rest(known[name], known)
        case Binary(op, a, b):
            both = _is_a_rest(a, known) or _is_a_rest(b, known)
            return op in ("%", "&") or both
    return False


def places(loop: For, features: frozenset[str]) -> dict[str, str]:
    """Where variables of a loop that is unrolled already stay: the name, a constraint.

    Of a chain of instructions LLVM places each result anew: short lives, which it
    rates above that of the pointer by which all of them load; then it spills that one.
    So a sum has one register, or is made where it is written: of products that are
    added later each value lives longer. A pointer steps as it is written: of steps that
    LLVM can follow it makes sums of a base and the loop's counter, which take one more.
    """
    if any(isinstance(stmt, For) for stmt in statements(loop.body)):
        return {}
    sums, others = {}, {}
    for stmt in statements(loop.body):
        match stmt:
            case Assign(Var(name, PointerType())) if "steps" in features:
                others[name] = "r"
            case Assign(Var(name, kind), Binary("+", Var(last), Binary("*"))) if (
                last == name and kind is INT32 and "order" in features
            ):
                others[name] = _BEHIND
            case Assign(Var(name), Call(intrin, (*_, Var(last)))) if last == name:
                if is_ordered(intrin, features):
                    sums[name] = ""
            case _:
                pass
    if len(sums) <= len(_SUMS):
        others |= zip(sums, _SUMS, strict=False)
    return others
