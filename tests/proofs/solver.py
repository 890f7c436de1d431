"""The meaning of Loop IR as bits, for an SMT solver: an expression becomes a term of
as many bits as its type has, sums that leave it go round, and a product of two unknowns
is any number within its ends. What is proven of any number is proven of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import z3

from pybuild.dtype import DType
from pybuild.ir.loop import Binary, Call, Cast, Const, Expr, Select, Var

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_MADE: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,  # of signed numbers: z3's is arithmetic
    "min": lambda a, b: z3.If(a < b, a, b),
    "max": lambda a, b: z3.If(a > b, a, b),
}


def bits(dtype: object) -> int:
    assert isinstance(dtype, DType) and not dtype.is_float and not dtype.is_unsigned
    return 8 * dtype.numpy.itemsize


@dataclass
class Meaning:
    """What names stand for; the products of unknowns that were met, in the order of the
    code, each a term of its own; and that no sum, shift or cast loses a bit."""

    names: Mapping[str, Any]
    products: list[Any] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    factors: list[tuple[Any, Any]] = field(default_factory=list)  # of the products

    def of(self, expr: Expr) -> Any:
        match expr:
            case Const(value, dtype):
                return z3.BitVecVal(int(value), bits(dtype))
            case Var(name):
                return self.names[name]
            case Binary("*", a, b) if not isinstance(b, Const):
                return self._product(self.of(a), self.of(b), bits(expr.type))
            case Binary(op, a, b) if op in _COMPARED:
                return _COMPARED[op](self.of(a), self.of(b))
            case Binary(op, a, b):
                return self._made(op, self.of(a), self.of(b))
            case Select(condition, a, b):
                return z3.If(self.of(condition), self.of(a), self.of(b))
            case Cast(Cast(value, DType.UINT32), DType.INT64):
                return z3.ZeroExt(32, self.of(value))
            case Cast(value, dtype):
                whole = self.of(value)
                made = resized(whole, bits(dtype))
                self.kept.append(resized(made, 64) == resized(whole, 64))
                return made
            case Call(intrin, args):
                given = [self.of(arg) for arg in args]
                names = dict(zip((p.name for p in intrin.params), given, strict=True))
                inner = Meaning(names, self.products, self.kept, self.factors)
                for var, value in intrin.lets:
                    names[var.name] = inner.of(value)
                return inner.of(intrin.result)
        raise AssertionError(expr)

    def _made(self, op: str, a: Any, b: Any) -> Any:
        made = _MADE[op](a, b)
        if op in ("+", "-", "<<"):
            wide = resized(a, 2 * a.size()), resized(b, 2 * a.size())
            self.kept.append(_MADE[op](*wide) == resized(made, 2 * a.size()))
        return made

    def _product(self, a: Any, b: Any, size: int) -> Any:
        a, b = z3.simplify(a), z3.simplify(b)
        if z3.is_bv_value(a) or z3.is_bv_value(b):
            return a * b
        made = z3.BitVec(f"product{len(self.products)}", size)
        self.products.append(made)
        self.factors.append((a, b))
        return made


def resized(term: Any, size: int) -> Any:
    """With the sign, or without the upper bits."""
    if size <= term.size():
        return z3.Extract(size - 1, 0, term)
    return z3.SignExt(size - term.size(), term)


def counterexample(claim: Any, *given: Any) -> Any:
    """None: the claim holds for all numbers of which what is given holds."""
    solver = z3.Solver()
    solver.set("timeout", 120_000)
    solver.add(*given, z3.Not(claim))
    found = solver.check()
    assert found != z3.unknown, solver.reason_unknown()
    return solver.model() if found == z3.sat else None
