"""The windows of a convolution copied into a patch, and the products of their vectors
with those of weights: parts of conv_code.py's kernels.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, Expr, Var, VectorType, cast, const, load, offset, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_eights import ALL8
from pybuild.kernels.base.vectors import (
    ALL4,
    ALL16,
    BYTES,
    DOT8,
    DOT16,
    FIRST16,
    HALVES,
    halves_at,
    words_at,
)
from pybuild.kernels.base.window import Bound
from pybuild.kernels.layers.int4_products import multiply
from pybuild.kernels.mve.conv_layer import Layer


class Patches:
    """Writes the bytes of windows, each into a patch.

    pitch          values from one patch to the next
    x_zero         of columns outside
    run, inputs    values that are neighbours, and those of a column
    start          the first of the group's channels
    """

    k: Builder
    g: Bound
    layer: Layer
    elem: DType
    step: int
    vector: VectorType
    patch: Expr
    pitch: Expr
    x_zero: Expr
    run: Expr
    inputs: Expr
    start: Expr

    def _gather(self, pixels: int, ox: Expr) -> None:
        k, g, w = self.k, self.g, self.layer.window
        x0 = k.let("x0", ox * g.stride - g.left)
        if not w.padded:
            self._inside(pixels, x0)
            return
        with k.when(g.fits(x0, pixels)):
            self._inside(pixels, x0)
        with k.otherwise(), k.loop("i", pixels) as i:
            to = k.let("to", offset(self.patch, self.pitch * i))
            begin = k.let("begin", x0 + g.stride * i)
            if w.by_taps or w.channels >= 4:
                self._columns(begin, to)
            else:
                self._cut(begin, to)

    def _inside(self, pixels: int, x0: Expr) -> None:
        """Windows that lie in the row."""
        k, g = self.k, self.g
        begin = k.let("begin", x0 * g.channels + self.start)
        patches = [self.patch]
        patches += [offset(self.patch, self.pitch * i) for i in range(1, pixels)]
        to = [k.let(f"to{i}", patch) for i, patch in enumerate(patches)]
        step = k.let("step", g.stride * g.channels) if pixels > 1 else const(0)
        with g.runs(k, begin, self.elem) as x:
            for i, patch in enumerate(to):
                source = k.let(f"x{i}", offset(x, step * i))
                self._copy(source, patch, self.run, self.layer.run)

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, column by column."""
        k, g = self.k, self.g
        with g.columns(k, x0, self.elem) as (inside, source):
            with k.when(inside):
                x = k.let("x", offset(source, self.start))
                self._copy(x, to, self.inputs, self.layer.window.group_channels)
            with k.otherwise():
                self._fill(to, self.inputs, self.layer.window.group_channels)
                k.assign(to, offset(to, self.inputs))

    def _cut(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, of few channels: zero points, then over them
        what is inside, row by row."""
        with self.g.cut_runs(self.k, x0, self.elem, to, self.run):
            self._fill(to, self.run, self.layer.run)

    def _fill(self, to: Var, count: Expr, known: int) -> None:
        """`count` zero points; `known`: as many, of which the code may depend on the
        form."""
        k, step = self.k, 16
        if self.elem is INT8 and 4 <= known < step:
            zeros = k.let("zeros", ALL4(self.x_zero))
            for at_byte in _words(known):
                k.store(to, at_byte, zeros)
            return
        if self.elem is not INT8 or known < step:
            with k.loop("c", count, rolled=True) as c:
                k.store(to, c, cast(self.x_zero, self.elem))
            return
        zeros = k.let("zeros", ALL16(self.x_zero))
        with k.loop("c", count - (step - 1), 0, step, rolled=True) as c:
            k.store(to, c, zeros)
        if known % step:
            k.store(to, count - step, zeros)

    def _vector(self, x: Expr, at: Expr | int = 0) -> Expr:
        """Values of one vector; of a pointer to smaller ones, widened."""
        return wide(x, at, self.vector)

    def _copy(self, x: Var, to: Var, count: Expr, known: int) -> None:
        """`count` values; `known`: as many, of which the code may depend on the form.

        The last vector, or word, may reach back into the one before.
        """
        k = self.k
        if known >= self.step:
            with k.loop("at", count - (self.step - 1), 0, self.step, rolled=True) as at:
                k.store(to, at, self._vector(x, at))
            if known % self.step:
                k.store(to, count - self.step, self._vector(x, count - self.step))
        elif known >= 8:  # bytes, as halves
            for at_byte in [0, *([known - 8] if known > 8 else [])]:
                k.store(to, at_byte, halves_at(x, at_byte))
        elif known >= 4:
            for at_byte in _words(known):
                k.store(to, at_byte, words_at(x, at_byte))
        else:
            for at_byte in range(known):
                k.store(to, at_byte, load(x, at_byte))
        k.assign(to, offset(to, count if known >= self.step else known))


def _words(count: int) -> list[int]:
    """The offsets of words in so many bytes; the last word may reach back."""
    return [*range(0, count - 3, 4), *([count - 4] if count % 4 else [])]


class Products(Patches):
    """The part of a kernel that adds products to sums.

    less  the argument that a zero point of weights is taken off by; {}: they have none
    """

    less: dict[str, Expr]

    def _add(
        self, sums: list[list[Var]], sources: list[Var], known: dict[int, list[Var]],
        given: dict[str, Var], w: Var | None,
    ) -> None:  # fmt: skip
        """All products with the weights; None: with 1."""
        if not self.layer.written_out:
            self._loop(sums, sources, given, w)
            return
        for s in range(self.layer.steps):
            values = known.get(s) or self._vectors(s, sources, given)
            self._multiply(sums, values, w)

    def _centres(
        self, sources: list[Var], known: dict[int, list[Var]], given: dict[str, Var]
    ) -> Sequence[Expr]:
        """What all sums of a pixel begin with: less what weights' zero point adds."""
        if not self.less:
            return [const(0)] * len(sources)
        k = self.k
        totals = [[k.let(f"total{p}", 0)] for p in range(len(sources))]
        self._add(totals, sources, known, given, None)
        less = given["less_zero"]
        return [k.let(f"centre{p}", one * less) for p, (one,) in enumerate(totals)]

    def _loop(
        self, sums: list[list[Var]], sources: list[Var], given: dict[str, Var],
        w: Var | None,
    ) -> None:  # fmt: skip
        layer, moving = self.layer, self._moving(sources)
        rest = layer.whole_steps % layer.turn
        steps = given["steps"] - (rest + layer.apart)
        self._steps(steps, sums, moving, w)
        for step in range(rest):
            self._multiply(sums, [self._next(x, step) for x in moving], w)
        if layer.apart:
            self._multiply(sums, self._vectors(layer.steps - 1, sources, given), w)

    def _moving(self, sources: list[Var]) -> list[Var]:
        """A pointer of each pixel."""
        return [self.k.let(f"from{p}", x) for p, x in enumerate(sources)]

    def _steps(
        self, count: Expr, sums: list[list[Var]], moving: list[Var], w: Var | None
    ) -> None:
        """Adds so many vectors, some in an iteration."""
        k, turn = self.k, self.layer.turn
        with k.loop("step", count, 0, turn, rolled=True):
            for step in range(turn):
                self._multiply(sums, [self._next(x, step) for x in moving], w)
            for x in moving:
                k.assign(x, offset(x, self.step * turn))

    def _next(self, x: Var, step: int) -> Var:
        return self.k.let("values", self._vector(x, self.step * step))

    def _vectors(
        self, step: int, sources: list[Var], given: dict[str, Var]
    ) -> list[Var]:
        """The bytes of one step, of each pixel."""
        at: Expr = const(self.step * step)
        vector = self.vector
        if self.layer.apart and step == self.layer.steps - 1:
            at = given["last"]
            vector = HALVES if self.layer.half else vector
        if self.layer.few:
            firsts = [FIRST16(x, self.layer.few) for x in sources]
            return [self.k.let("values", first) for first in firsts]
        return [self.k.let("values", wide(x, at, vector)) for x in sources]

    def _multiply(
        self, sums: list[list[Var]], values: list[Var], w: Var | None
    ) -> None:
        k, vector = self.k, values[0].type
        assert isinstance(vector, VectorType)
        dot = DOT16 if vector == BYTES else DOT8
        if w is None:
            one = k.let("one", ALL16(1) if vector == BYTES else ALL8(1))
            for (total,), x in zip(sums, values, strict=True):
                k.assign(total, dot(total, x, one))
            return
        if self.layer.int4:
            multiply(k, sums, values, w, self.layer.joint)
            return
        channels = len(sums[0])
        for c in range(channels):
            weights = k.let("weight", wide(w, vector.lanes * c, vector))
            for four, x in zip(sums, values, strict=True):
                k.assign(four[c], dot(four[c], x, weights))
        k.assign(w, offset(w, channels * vector.lanes))
