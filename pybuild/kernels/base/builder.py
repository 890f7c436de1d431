"""Writes one kernel as Loop IR: scopes, unique names, arguments or constants.

A schedule is ordinary Python around these calls. Knows no operator.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.loop import (
    INT32,
    Assign,
    Const,
    Expr,
    For,
    Func,
    If,
    Let,
    Operand,
    Part,
    PointerType,
    Row,
    Stmt,
    Store,
    Var,
    const,
    i32,
)
from pybuild.ir.loop_verify import statements, used, verify

_FINISHING = threading.Lock()
_MOST = 2048  # kernels that are remembered
# an argument's name and value
Named = tuple[str, int]


def have_room(pairs: Iterable[tuple[Named, Named]]) -> bool:
    """Return True if these numbers fit halves of arguments: they have at most 15
    bits."""
    return all(0 <= n < 1 << 15 for pair in pairs for _, n in pair)


def told(computes: str, order: str, end: str = "") -> str:
    """Return the description of a kernel for the comment in its C: one field a line.

    computes  a formula or a sentence, with types
    order     the order of reads and writes
    end       the epilogue: how a sum becomes a stored value; "" if there are no sums
    """
    fields = (("Computes", computes), ("Order", order), ("Epilogue", end))
    return "\n".join(f"{label:8}  {text}" for label, text in fields if text)


class Builder:
    """Collects the statements of one kernel.

    doc  text from `told` for readers of the C; the same for all kernels of this name
    """

    def __init__(self, name: str, doc: str = "") -> None:
        self.name = name
        self.doc = doc
        self.values: list[int] = []
        self._args: list[Var] = []
        self._arrays: list[tuple[Var, int]] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._names: list[set[str]] = [{"p", "a"}]  # the C parameters
        self._taken = {"p", "a"}  # in all open blocks
        self._parts: dict[str, list[tuple[str, list[Var], tuple[Stmt, ...]]]] = {}
        self._finished: Func | None = None

    @classmethod
    def after(cls, func: Func, values: Iterable[int], name: str, doc: str) -> Builder:
        """Return a builder that continues where a kernel ends."""
        k = cls(name, doc)
        k.values += values
        k._args += func.args
        k._arrays += func.arrays
        k._blocks[0] += func.body
        declared = [s.var for s in statements(func.body) if isinstance(s, Let | For)]
        k._names[0] |= {var.name for var in (*func.args, *declared)}
        k._names[0] |= {var.name for var, _ in func.arrays}
        k._taken |= k._names[0]
        return k

    def arg(self, name: str, value: int) -> Expr:
        """Add an integer argument of the layer; specialise.py can make it a
        constant."""
        var = Var(self._unique(name, outermost=True), INT32)
        self._args.append(var)
        self.values.append(value)
        return var

    def halves(self, low: Named, high: Named) -> tuple[Expr, Expr]:
        """Two integers of the layer, packed in one argument if `have_room` allows
        it."""
        both = self.arg(f"{low[0]}_{high[0]}", high[1] << 16 | low[1])
        return self.let(low[0], both & 0xFFFF), self.let(high[0], both >> 16)

    def row(
        self, name: str, index: Operand, elem: DType, writable: bool = False
    ) -> Var:
        """Bind pointer number `index` of the kernel to a typed name."""
        return self.let(name, Row(i32(index), PointerType(elem, writable)))

    def array(self, name: str, elem: DType, length: int) -> Var:
        """Add a local array, which is on the stack."""
        var = Var(self._unique(name, outermost=True), PointerType(elem, True))
        self._arrays.append((var, length))
        return var

    def let(self, name: str, value: Operand, dtype: DType = INT32) -> Var:
        """Declare a variable; `assign` may change it later."""
        expr = value if isinstance(value, Expr) else const(value, dtype)
        var = Var(self._unique(name), expr.type)
        self._blocks[-1].append(Let(var, expr))
        return var

    def assign(self, var: Var, value: Operand) -> None:
        assert isinstance(var.type, DType) or isinstance(value, Expr)
        expr = value if isinstance(value, Expr) else const(value, _scalar(var))
        self._blocks[-1].append(Assign(var, expr))

    def store(
        self,
        pointer: Expr,
        index: Operand,
        value: Expr,
        wide: bool = False,
        count: Expr | None = None,
    ) -> None:
        """Add a loop.Store; `index` may be a vector."""
        at = index if isinstance(index, Expr) else i32(index)
        self._blocks[-1].append(Store(pointer, at, value, wide, count))

    @contextmanager
    def loop(
        self,
        name: str,
        stop: Operand,
        start: Operand = 0,
        step: int = 1,
        rolled: bool = False,
    ) -> Iterator[Expr]:
        """for (name = start; name < stop; name += step); a single iteration needs no
        loop.

        rolled  as in loop.For
        """
        first, last = i32(start), i32(stop)
        if isinstance(first, Const) and isinstance(last, Const):
            if first.value >= last.value:
                raise ValueError(f"{self.name}: loop {name} never runs")
            if first.value + step >= last.value:
                yield first
                return
        self._open()
        var = Var(self._unique(name), INT32)
        yield var
        body = self._close()
        self._blocks[-1].append(For(var, first, last, step, body, rolled))

    @contextmanager
    def when(self, condition: Expr, rare: bool = False) -> Iterator[None]:
        """if (condition); rare: as in loop.If"""
        self._open()
        yield
        body = self._close()
        self._blocks[-1].append(If(condition, body, (), rare))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """else, for the `when` just before."""
        last = self._blocks[-1].pop()
        assert isinstance(last, If) and not last.otherwise
        self._open()
        yield
        body = self._close()
        self._blocks[-1].append(replace(last, otherwise=body))

    @contextmanager
    def part(
        self, name: str, doc: str = "", in_place: bool = False, /, **given: Expr
    ) -> Iterator[list[Var]]:
        """Write a piece of the kernel as a function; its parameters are those of
        `given` that it uses."""
        outer = self._names, self._taken
        self._names, self._taken = [set(given)], set(given)
        params = [Var(word, value.type) for word, value in given.items()]
        self._blocks.append([])
        yield params
        body, names = used(tuple(self._blocks.pop()))
        self._names, self._taken = outer
        params = [p for p in params if p.name in names]
        values = tuple(given[p.name] for p in params)
        # what is done again is done by the same function
        alike = self._parts.setdefault(name, [])
        known = next((n for n, p, b in alike if (p, b) == (params, body)), "")
        if not known:
            known = self._unique(name, outermost=True)
            alike.append((known, params, body))
        self._blocks[-1].append(Part(known, tuple(params), values, body, in_place, doc))

    def call(self, func: Func, pointers: Sequence[Expr], values: Iterable[int]) -> None:
        """Call another kernel as a part of this one; it may work in place."""
        given: dict[Var, Expr] = {}
        body = []
        for stmt in func.body:
            if isinstance(stmt, Let) and isinstance(stmt.value, Row):
                assert isinstance(stmt.value.index, Const)
                given[stmt.var] = pointers[int(stmt.value.index.value)]
            else:
                body.append(stmt)
        given |= {
            a: self.arg(a.name, n) for a, n in zip(func.args, values, strict=True)
        }
        args = tuple(given.values())
        part = Part(func.name, tuple(given), args, tuple(body), True, func.doc)
        self._blocks[-1].append(part)

    def early(self, name: str, value: Expr) -> Var:
        """Declare a variable at the start of the kernel, whatever block is open."""
        var = Var(self._unique(name, outermost=True), value.type)
        self._blocks[0].insert(0, Let(var, value))
        return var

    def apart(self, part: Part) -> None:
        """Add a piece that is already written as a function."""
        self._blocks[-1].append(part)

    def finish(self, in_place: bool = False, ordered: bool = False) -> Func:
        """Return the verified kernel; `in_place`: it may overwrite what it has read;
        `ordered`: even if not element by element."""
        assert len(self._blocks) == 1, f"{self.name}: a block is still open"
        with _FINISHING:  # other threads may ask for the same kernel
            if self._finished is None:
                body = self._used(tuple(self._blocks[0]))
                args, arrays = tuple(self._args), tuple(self._arrays)
                kinds = in_place, self.doc, ordered
                made = Func(self.name, args, arrays, body, *kinds)
                self._finished = _verified(made)
        assert self._finished.in_place == in_place
        return self._finished

    def _used(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the body without unused variables, and drop unused arguments."""
        body, names = used(body)
        kept = [i for i, arg in enumerate(self._args) if arg.name in names]
        self._args = [self._args[i] for i in kept]
        self.values[:] = [self.values[i] for i in kept]
        return body

    def _open(self) -> None:
        self._blocks.append([])
        self._names.append(set())

    def _close(self) -> tuple[Stmt, ...]:
        self._taken -= self._names.pop()
        return tuple(self._blocks.pop())

    def _unique(self, name: str, outermost: bool = False) -> str:
        unique, count = name, 1
        while unique in self._taken:
            count += 1
            unique = f"{name}_{count}"
        self._names[0 if outermost else -1].add(unique)
        self._taken.add(unique)
        return unique


@functools.lru_cache(_MOST)
def _verified(func: Func) -> Func:
    """Verify a kernel; return the first of equal kernels, so that layers share it and
    an identity check finds equal ones."""
    verify(func)
    return func


def _scalar(var: Var) -> DType:
    assert isinstance(var.type, DType)
    return var.type
