"""The Fourier transform of real numbers, and back, in int16 and int32: pairs of numbers
are put in order, joined by butterflies of four and two, and taken apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT32,
    INT64,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.ops.sensors.fft import FftTables, fft_tables
from pybuild.targets.target import Target

Pair = tuple[Expr, Expr]
_PARTS = "real and imaginary parts"


def fft(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for rfft; scratch: the pairs."""
    return [_Writer(node, graph).written()]


class _Writer:
    """The pieces of the kernel; products are of `wide`, sums of it, what is stored
    wraps.
    """

    def __init__(self, node: Node, graph: Graph) -> None:
        self.operands = whole_operands(node, graph)
        self.x, self.y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
        self.length, self.inverse = (
            int(node.attrs["length"]),
            bool(node.attrs["inverse"]),
        )
        self.kind: DType = self.x.dtype
        self.wide = INT32 if self.kind is INT16 else INT64
        self.bits = 8 * self.kind.bytes - 1
        self.pairs = self.length // 2
        self.tables: FftTables = fft_tables(self.length, self.kind, self.inverse)
        which = "irfft" if self.inverse else "rfft"
        name = f"{which}_{short(self.kind)}_{self.length}"
        doc = told(
            f"the Fourier transform of {self.length} real numbers"
            f"{', backwards' if self.inverse else ''}, {self.kind.value}",
            "row by row: pairs in order, stage by stage, pairs taken apart",
        )
        self.k = Builder(name, doc)

    def written(self) -> Candidate:
        k, kind, after = self.k, self.kind, self.operands.after
        y = k.row("y", 0, kind, writable=True)
        x = k.row("x", self.operands.numbers[0], kind)
        order, self.twiddles, self.joining = (
            k.row(name, after + i, kind if i else INT16)
            for i, name in enumerate(("order", "twiddles", "joining"))
        )
        if self.inverse:
            self.z: Expr = k.row("z", after + 3, kind, writable=True)
        given, made = (t.shape[-1] for t in (self.x, self.y))
        with k.loop("row", k.arg("rows", self.y.size // made)) as row:
            source = k.let("source", offset(x, row * given))
            to = k.let("to", offset(y, row * made))
            if self.inverse:
                self._joined(source, to)
                self._stages(order, lambda i: load(to, i))
                with k.loop("out", 2 * self.pairs) as i:
                    k.store(to, i, load(self.z, i))
            else:
                self.z = to  # pairs are taken apart two by two, where they stand
                self._stages(order, self._padded(source, given))
                self._apart(to)
        numbers = {
            "order": (self.tables.order, INT16, "which pair each place begins with"),
            "twiddles": (self.tables.twiddles, kind, _PARTS),
            "joining": (self.tables.joining, kind, _PARTS),
        }
        found = offer(
            k, self.operands,
            tables=[_table(n, *what) for n, what in numbers.items()],
            cost=(26 * self.pairs * len(self.tables.stages) + 30 * self.pairs)
            * (self.y.size // made),
        )  # fmt: skip
        return replace(found, scratch=2 * self.pairs * kind.bytes * self.inverse)

    # ---- numbers ----------------------------------------------------------------

    def _pair(self, name: str, row: Expr, at: Expr) -> Pair:
        """Number `at` of a row of pairs."""
        k = self.k
        real, imaginary = (cast(load(row, 2 * at + i), self.wide) for i in (0, 1))
        return k.let(f"{name}_r", real), k.let(f"{name}_i", imaginary)

    def _store(self, row: Expr, at: Expr, pair: Pair) -> None:
        for i, part in enumerate(pair):
            self.k.store(row, 2 * at + i, cast(part, self.kind))

    def _rounded(self, value: Expr) -> Expr:
        return (value + (1 << (self.bits - 1))) >> self.bits

    def _divided(self, name: str, pair: Pair, by: int) -> Pair:
        factor = ((1 << self.bits) - 1) // by
        real, imaginary = (self._rounded(part * factor) for part in pair)
        return self.k.let(f"{name}_r", real), self.k.let(f"{name}_i", imaginary)

    def _times(self, name: str, a: Pair, b: Pair) -> Pair:
        real = self._rounded(a[0] * b[0] - a[1] * b[1])
        imaginary = self._rounded(a[0] * b[1] + a[1] * b[0])
        return self.k.let(f"{name}_r", real), self.k.let(f"{name}_i", imaginary)

    # ---- steps ------------------------------------------------------------------

    def _padded(self, x: Expr, given: int) -> Callable[[Expr], Expr]:
        """Reads a number; zeros follow the given ones."""
        k = self.k

        def read(at: Expr) -> Expr:
            value = k.let("value", const(0, self.kind))
            with k.when(at < given):
                k.assign(value, load(x, at))
            return value

        return read if given < 2 * self.pairs else lambda at: load(x, at)

    def _stages(self, order: Var, read: Callable[[Expr], Expr]) -> None:
        """The first puts pairs in order as it reads them; it turns none: by 0 degrees
        numbers that are divided stay what they are.
        """
        k, stages = self.k, self.tables.stages
        if not stages:  # of one pair
            for i in (0, 1):
                k.store(self.z, i, read(const(i)))
            return
        radix, _ = stages[0]
        with k.loop("block", self.pairs // radix) as block:
            base = k.let("base", block * radix)
            given = []
            for n in range(radix):
                at = k.let("at", i32(load(order, base + n)) * 2)
                real, imaginary = (
                    k.let("part", cast(read(at + i), self.wide)) for i in (0, 1)
                )
                given.append(self._divided(f"d{n}", (real, imaginary), radix))
            for n, pair in enumerate(self._butterfly(given)):
                self._store(self.z, base + n, pair)
        for radix, between in stages[1:]:
            self._stage(radix, between)

    def _stage(self, radix: int, between: int) -> None:
        k, stride = self.k, self.pairs // (radix * between)
        with k.loop("block", stride) as block:
            base = k.let("base", block * (radix * between))
            with k.loop("j", between) as j:
                places = [k.let("place", base + j + n * between) for n in range(radix)]
                given = [
                    self._divided(f"d{n}", self._pair(f"x{n}", self.z, at), radix)
                    for n, at in enumerate(places)
                ]
                turned = [given[0]]
                for n in range(1, radix):
                    by = self._pair(f"w{n}", self.twiddles, j * (stride * n))
                    turned.append(self._times(f"t{n}", given[n], by))
                for at, pair in zip(places, self._butterfly(turned), strict=True):
                    self._store(self.z, at, pair)

    def _butterfly(self, parts: list[Pair]) -> list[Pair]:
        if len(parts) == 2:
            first, one = parts
            return [_plus(first, one), _minus(first, one)]
        first, one, two, three = parts
        even, odd = _plus(first, two), _plus(one, three)
        less, (real, imaginary) = _minus(first, two), _minus(one, three)
        turned = (imaginary, 0 - real)
        forth, back = _plus(less, turned), _minus(less, turned)
        if self.inverse:
            forth, back = back, forth
        return [_plus(even, odd), forth, _minus(even, odd), back]

    def _apart(self, y: Expr) -> None:
        """The transform of real numbers from that of their pairs."""
        k, pairs, zero = self.k, self.pairs, const(0, self.wide)
        real, imaginary = self._divided("end", self._pair("z", self.z, const(0)), 2)
        self._store(y, const(0), (real + imaginary, zero))
        self._store(y, const(pairs), (real - imaginary, zero))
        with k.loop("n", pairs // 2 + 1, 1) as n:
            both, turned = self._near_and_far(self.z, n)
            self._store(y, n, _halved(_plus(both, turned)))
            less = _minus(both, turned)
            far = ((less[0] >> 1), (0 - less[1]) >> 1)
            self._store(y, pairs - n, far)

    def _near_and_far(self, row: Expr, n: Expr) -> tuple[Pair, Pair]:
        """What numbers n and pairs - n have in common, and the rest turned."""
        near = self._divided("near", self._pair("a", row, n), 2)
        real, imaginary = self._pair("b", row, self.pairs - n)
        minus = cast(cast(0 - imaginary, self.kind), self.wide)
        far = self._divided("far", (real, self.k.let("minus", minus)), 2)
        by = self._pair("w", self.joining, n - 1)
        apart = _minus(near, far)
        apart = (self.k.let("apart_r", apart[0]), self.k.let("apart_i", apart[1]))
        return _plus(near, far), self._times("turned", apart, by)

    def _joined(self, x: Expr, y: Expr) -> None:
        """The pairs, in y, from the transform."""
        k, pairs = self.k, self.pairs
        first, last = (
            self._pair("first", x, const(0)),
            self._pair("last", x, const(pairs)),
        )
        ends = tuple(
            cast(cast(value, self.kind), self.wide)
            for value in (first[0] + last[0], first[0] - last[0])
        )
        self._store(y, const(0), self._divided("end", (ends[0], ends[1]), 2))
        with k.loop("n", pairs // 2 + 1, 1) as n:
            both, turned = self._near_and_far(x, n)
            self._store(y, n, _plus(both, turned))
            less = _minus(both, turned)
            self._store(y, pairs - n, (less[0], 0 - less[1]))


def _plus(a: Pair, b: Pair) -> Pair:
    return a[0] + b[0], a[1] + b[1]


def _minus(a: Pair, b: Pair) -> Pair:
    return a[0] - b[0], a[1] - b[1]


def _halved(a: Pair) -> Pair:
    return a[0] >> 1, a[1] >> 1


def _table(name: str, array: Array, dtype: DType, order: str) -> Packed:
    return Packed(name, array.astype(dtype.numpy).reshape(-1), order=order)
