"""The Fourier transform of real int16 that halves: in words of two int16 where a core
has instructions for both, else part by part, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    Expr,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    maximum,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import HIGH_HALVES
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.base.pairs import (
    HALF_ADD2,
    HALF_ADD_TURNED,
    HALF_SUB2,
    HALF_SUB_TURNED,
    HELD_ADD2,
    HELD_ADD_TURNED,
    HELD_SUB2,
    HELD_SUB_TURNED,
    TIMES_IMAGINARY,
    TIMES_REAL,
)
from pybuild.kernels.portable import fft as exact
from pybuild.ops.sensors.fft import FftTables, fft_tables
from pybuild.ops.sensors.halving import (
    ADDED,
    NEAREST,
    RAISED,
    RAISED_END,
    factors_of,
    is_halving,
)
from pybuild.targets.target import Target

# a complex number: a word, or its two parts
Number = tuple[Expr, ...]


def fft(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for rfft."""
    if not is_halving(node):
        return exact.fft(node, graph, target)
    words = "dsp" in target.features
    return [_Writer(node, graph, _Words if words else _Parts).written()]


class _Parts:
    """Numbers as two int32, real and imaginary."""

    name = "parts"

    def __init__(self, k: Builder) -> None:
        self.k = k

    def load(self, row: Expr, at: Expr) -> Number:
        return self._kept([i32(load(row, 2 * at + n)) for n in (0, 1)])

    def real(self, row: Expr, at: Expr) -> Number:
        """A number of which only the real part is there."""
        return i32(load(row, 2 * at)), const(0)

    def zero(self) -> Number:
        return self.k.let("real", 0), self.k.let("imaginary", 0)

    def assign(self, to: Number, value: Number) -> None:
        for var, part in zip(to, value, strict=True):
            assert isinstance(var, Var)
            self.k.assign(var, part)

    def store(self, row: Expr, at: Expr, value: Number) -> None:
        for n, part in enumerate(value):
            self.k.store(row, 2 * at + n, cast(part, INT16))

    def sums(self, a: Number, b: Number, held: bool) -> tuple[Number, Number]:
        """a + b and a - b: held, or halves."""
        end = self._held if held else self._halved
        both = zip(a, b, strict=True)
        pairs = [(x + y, x - y) for x, y in both]
        return end([p[0] for p in pairs]), end([p[1] for p in pairs])

    def turned(self, a: Number, b: Number, held: bool) -> tuple[Number, Number]:
        """a - ib and a + ib: held, or halves."""
        end = self._held if held else self._halved
        return end([a[0] + b[1], a[1] - b[0]]), end([a[0] - b[1], a[1] + b[0]])

    def half(self, a: Number, raised: int) -> Number:
        return self._kept([(part + raised) >> 1 for part in a])

    def times(self, x: Number, w: Number, added: int = NEAREST) -> Number:
        real = x[0] * w[0] - x[1] * w[1]
        imaginary = x[0] * w[1] + x[1] * w[0]
        return self._kept([(part + added) >> 16 for part in (real, imaginary)])

    def apart(self, near: Number, far: Number, w: Number) -> tuple[Number, Number]:
        """Numbers n and pairs - n of the transform of real numbers."""
        both, less = self.sums(near, far, held=False)
        turned = self.times((less[0], both[1]), w)
        first = self.half((both[0], less[1]), RAISED_END)
        return self.sums((first[0], turned[1]), (turned[0], first[1]), held=True)

    def _kept(self, parts: list[Expr]) -> Number:
        names = ("real", "imaginary")
        return tuple(self.k.let(n, p) for n, p in zip(names, parts, strict=True))

    def _halved(self, parts: list[Expr]) -> Number:
        return self._kept([part >> 1 for part in parts])

    def _held(self, parts: list[Expr]) -> Number:
        low, high = INT16.low, INT16.high
        return self._kept([maximum(minimum(p, high), low) for p in parts])


class _Words:
    """Numbers as two int16 in an int32, the real part in the low half."""

    name = "pairs"

    def __init__(self, k: Builder) -> None:
        self.k = k

    def load(self, row: Expr, at: Expr) -> Number:
        return (self.k.let("word", wide(row, 2 * at)),)

    def real(self, row: Expr, at: Expr) -> Number:
        return (i32(load(row, 2 * at)) & 0xFFFF,)

    def zero(self) -> Number:
        return (self.k.let("word", 0),)

    def assign(self, to: Number, value: Number) -> None:
        assert isinstance(to[0], Var)
        self.k.assign(to[0], value[0])

    def store(self, row: Expr, at: Expr, value: Number) -> None:
        self.k.store(row, 2 * at, value[0], wide=True)

    def sums(self, a: Number, b: Number, held: bool) -> tuple[Number, Number]:
        pair = (HELD_ADD2, HELD_SUB2) if held else (HALF_ADD2, HALF_SUB2)
        plus, minus = (self.k.let("sum", f(a[0], b[0])) for f in pair)
        return (plus,), (minus,)

    def turned(self, a: Number, b: Number, held: bool) -> tuple[Number, Number]:
        pair = (HALF_SUB_TURNED, HALF_ADD_TURNED)
        if held:
            pair = (HELD_SUB_TURNED, HELD_ADD_TURNED)
        back, forth = (self.k.let("turned", f(a[0], b[0])) for f in pair)
        return (back,), (forth,)

    def half(self, a: Number, raised: int) -> Number:
        return (self.k.let("half", HALF_ADD2(a[0], raised << 16 | raised)),)

    def times(self, x: Number, w: Number, added: int = NEAREST) -> Number:
        parts = self._products(x[0], w, added)
        return (self.k.let("product", HIGH_HALVES(*parts)),)

    def apart(self, near: Number, far: Number, w: Number) -> tuple[Number, Number]:
        (both,), (less,) = self.sums(near, far, held=False)
        odd = self.k.let("odd", (both & -65536) | (less & 0xFFFF))
        first = self.k.let("even", (less & -65536) | (both & 0xFFFF))
        (first_half,) = self.half((first,), RAISED_END)
        real, imaginary = self._products(odd, w, NEAREST)
        a = self.k.let("a", (imaginary & -65536) | (first_half & 0xFFFF))
        b = self.k.let("b", HIGH_HALVES(real, first_half))
        return self.sums((a,), (b,), held=True)

    def _products(self, x: Expr, w: Number, added: int) -> tuple[Expr, Expr]:
        """Parts in the higher halves."""
        real = self.k.let("real", TIMES_REAL(x, w[0], added))
        return real, self.k.let("imaginary", TIMES_IMAGINARY(x, w[0], added))


class _Writer:
    def __init__(
        self, node: Node, graph: Graph, numbers: type[_Parts] | type[_Words]
    ) -> None:
        self.operands = whole_operands(node, graph)
        self.x, self.y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
        self.length = int(node.attrs["length"])
        self.pairs = self.length // 2
        self.tables: FftTables = fft_tables(self.length, DType.INT16, False)
        doc = told(
            f"the Fourier transform of {self.length} real numbers, int16, which halves",
            "row by row: stage by stage, the first with pairs in order, pairs taken "
            "apart",
        )
        self.k = Builder(f"rfft_halving_{self.length}_{numbers.name}", doc)
        self.numbers = numbers(self.k)
        self.packed: list[Packed] = []

    def written(self) -> Candidate:
        k = self.k
        y = k.row("y", 0, INT16, writable=True)
        x = k.row("x", self.operands.numbers[0], INT16)
        radix = self.tables.stages[0][0]
        firsts = self.tables.order[::radix]
        order = self._table("order", firsts, "which pair each block begins with")
        later = [
            factors_of(self.tables, between) for _, between in self.tables.stages[1:]
        ]
        parts = "of each later stage, real and imaginary parts"
        turns: Var | None = None
        if later:
            whole = np.concatenate([one.reshape(-1) for one in later])
            turns = self._table("turns", whole, parts)
        joining = self._table("joining", self.tables.joining, "parts of pairs taken")
        given, made = (t.shape[-1] for t in (self.x, self.y))
        with k.loop("row", k.arg("rows", self.y.size // made)) as row:
            source = k.let("source", offset(x, row * given))
            to = k.let("to", offset(y, row * made))
            self._first(order, source, to, given)
            at = 0
            for (_, between), one in zip(self.tables.stages[1:], later, strict=True):
                assert turns is not None
                self._later(k.let("factors", offset(turns, at)), to, between)
                at += one.size
            self._apart(to, joining)
        steps = 12 if isinstance(self.numbers, _Words) else 30
        cost = steps * self.pairs * (len(self.tables.stages) + 1)
        return offer(
            k, self.operands, tables=self.packed, cost=cost * (self.y.size // made)
        )

    def _table(self, name: str, array: np.ndarray, order: str) -> Var:
        number = self.operands.after + len(self.packed)
        values = array.astype(np.int16).reshape(-1)
        self.packed.append(Packed(name, values, order=order))
        return self.k.row(name, number, INT16)

    def _read(self, x: Expr, given: int, most: int) -> Callable[[Expr], Number]:
        """Number `at` of what is given, at most `most`; zeros follow."""
        k, numbers = self.k, self.numbers
        if 2 * most + 1 < given:
            return lambda at: numbers.load(x, at)

        def read(at: Expr) -> Number:
            found = numbers.zero()
            with k.when(at < given // 2):
                numbers.assign(found, numbers.load(x, at))
            if given % 2:
                with k.when(equal(at, given // 2)):
                    numbers.assign(found, numbers.real(x, at))
            return found

        return read

    def _first(self, order: Var, x: Expr, z: Expr, given: int) -> None:
        k, numbers = self.k, self.numbers
        radix = self.tables.stages[0][0]
        stride = self.pairs // radix
        with k.loop("block", stride) as block:
            first = k.let("first", i32(load(order, block)))
            parts = [
                self._read(x, given, (n + 1) * stride - 1)(first + n * stride)
                for n in range(radix)
            ]
            if radix == 2:
                made = list(numbers.sums(parts[0], parts[1], held=False))
            else:
                made = self._four(parts, held=False)
            for n, value in enumerate(made):
                numbers.store(z, block * radix + n, value)

    def _later(self, factors: Expr, z: Expr, between: int) -> None:
        k, numbers = self.k, self.numbers
        with k.loop("j", between) as j:
            turns = [numbers.load(factors, j * 3 + n) for n in range(3)]
            with k.loop("block", self.pairs // (4 * between)) as block:
                base = k.let("base", block * (4 * between) + j)
                places = [base + n * between for n in range(4)]
                given = [numbers.load(z, at) for at in places]
                parts = [numbers.half(given[0], RAISED)]
                for part, by, added in zip(given[1:], turns, ADDED, strict=True):
                    parts.append(numbers.times(part, by, added))
                for at, value in zip(places, self._four(parts, True), strict=True):
                    numbers.store(z, at, value)

    def _four(self, parts: list[Number], held: bool) -> list[Number]:
        numbers = self.numbers
        even, less = numbers.sums(parts[0], parts[2], held=False)
        odd, apart = numbers.sums(parts[1], parts[3], held=False)
        whole, other = numbers.sums(even, odd, held=held)
        back, forth = numbers.turned(less, apart, held=held)
        return [whole, back, other, forth]

    def _apart(self, y: Expr, joining: Var) -> None:
        k, pairs, numbers = self.k, self.pairs, self.numbers
        real, imaginary = (k.let("end", i32(load(y, n))) for n in (0, 1))
        zero = const(0, INT16)
        for at, total in ((0, real + imaginary), (pairs, real - imaginary)):
            k.store(y, 2 * at, cast(total >> 1, INT16))
            k.store(y, 2 * at + 1, zero)
        with k.loop("n", pairs // 2 + 1, 1) as n:
            near, far = numbers.load(y, n), numbers.load(y, pairs - n)
            by = numbers.load(joining, n - 1)
            first, other = numbers.apart(near, far, by)
            numbers.store(y, n, first)
            numbers.store(y, pairs - n, other)
