"""Code in the order in which kernels are written, by empty pieces of assembly.

LLVM loads further ahead than a core has registers, and spills. C says where by
assembly, for which llvmlite has no assembler; an empty string needs none.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

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
    Var,
)
from pybuild.ir.loop_verify import statements

# where sums of Thumb code stay: what else a loop holds has the six below and above
_SUMS = tuple(f"{{r{number}}}" for number in range(4, 12))

# operations whose result has bounds
_HOLDING = ("min", "max", "&", "%", ">>")

# the place of a sum of products: behind what is written before it
_BEHIND = "behind"


def is_ordered(intrin: Intrin, features: frozenset[str]) -> bool:
    """Whether it keeps its place on the target."""
    return intrin.ordered and intrin.feature in features


def are_two_words(two: tuple[Stmt, Stmt], features: frozenset[str]) -> bool:
    """Whether both are loads of words beside each other, on a core that has an
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


def held_names(func: Func) -> frozenset[str]:
    """Variables whose values an operation holds within bounds, which LLVM may know."""
    held = set[str]()
    for stmt in statements(func.body):
        if isinstance(stmt, Let | Assign) and _is_held(stmt.value, held):
            held.add(stmt.var.name)
    return frozenset(held)


def is_short(loop: For, held: frozenset[str]) -> bool:
    """Whether LLVM may know that a loop has few turns, and not how many."""
    return _is_held(loop.stop, held) or _is_held(loop.start, held)


def _is_held(expr: Expr, held: AbstractSet[str]) -> bool:
    match expr:
        case Var(name):
            return name in held
        case Binary(op, a, b):
            return op in _HOLDING or _is_held(a, held) or _is_held(b, held)
        case Select():
            return True
        case Cast(value):
            return _is_held(value, held)
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
