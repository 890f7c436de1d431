"""Pools of int8 and int16 on vectors of channels of any length. Knows no node."""

from __future__ import annotations

from pybuild.ir.loop import INT8, INT16, Expr, Operand, Var, const, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.taps import bind
from pybuild.kernels.epilogues.affine_line import Line
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.pool import SIZES, Layer
from pybuild.kernels.layers.quotient import MORE, Quotient
from pybuild.kernels.mve.pool import End, Even, High
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.one_rule import Stored
from pybuild.kernels.rvv.vectors import FEATURE, Vectors, vectors
from pybuild.targets.target import Target

LEAST = 4  # channels
_UNIT = 1 << FRACTION


def suits(layer: Layer, target: Target) -> bool:
    """True if a layer may have a kernel of this file."""
    large_edges = layer.window.padded and not layer.unrolled
    alike = layer.rows is None and not layer.varies and not large_edges
    known = FEATURE in target.features and layer.elem in (INT8, INT16)
    return known and alike and layer.window.channels >= LEAST


def kernel(layer: Layer, end: End | None) -> Builder:
    """y[ox,c] = end(sum over cells x[c]), or the greatest x[c].

    Shapes  rows x [W,C], y [OW,C]; the pixel outside, if windows leave the row
    """
    return _Writer(layer, end).write()


class Scaled:
    """The bound values of the end of sums, where a vector of them becomes bytes."""

    def __init__(self, k: Builder, v: Vectors, end: Line | High) -> None:
        self.k, self.v, self.end = k, v, end
        made = end if isinstance(end, Line) else end.epilogue
        self.shift = k.arg("shift", made.shift)
        self.limits = k.arg("low", end.low), k.arg("high", end.high)
        self.base: Expr | None = None
        if isinstance(end, Line):
            given = {"factor": end.factor, "offset": end.offset}
        else:
            affine, first = end.epilogue, end.start << FRACTION
            plus, below = int(affine.offsets[0]), affine.below
            given = {"factor": int(affine.multipliers[0])}
            given["start"] = first if below is not None else first + plus
            if below is not None:
                given |= {"offset": plus, "below": int(below[0])}
            if affine.base:
                self.base = k.arg("base", affine.base)
        self.bound = {name: k.arg(name, value) for name, value in given.items()}

    def values(self, total: Expr, n: Expr) -> Expr:
        """The values of n sums."""
        v, bound = self.v, self.bound
        if isinstance(self.end, Line):
            value = v.PLUS(v.TIMES(total, bound["factor"], n), bound["offset"], n)
        else:
            value = v.PLUS(v.TIMES(total, _UNIT, n), bound["start"], n)
            if "below" in bound:
                value = v.CORRECT(value, bound["offset"], bound["below"], n)
            value = v.HIGH_ONE(value, bound["factor"], n)
        if self.base is not None:
            value = v.PLUS(value, self.base, n)
        return v.HOLD(v.SHIFTED(value, self.shift, n), *self.limits, n)


class Halved:
    """The same where sums are divided by a power of two, ties to even."""

    def __init__(self, k: Builder, v: Vectors, end: Even) -> None:
        self.v, self.bits = v, const(end.bits)
        self.less = k.arg("less", -end.x_zero << end.bits)
        self.zero = k.arg("y_zero", end.y_zero)
        self.limits = k.arg("low", end.low), k.arg("high", end.high)

    def values(self, total: Expr, n: Expr) -> Expr:
        """The values of n sums."""
        v = self.v
        value = v.EVEN(v.PLUS(total, self.less, n), self.bits, n)
        return v.HOLD(v.RAISED(value, self.zero, n), *self.limits, n)


class Divided:
    """The same of int16: a sum divided by the number of cells."""

    def __init__(self, k: Builder, v: Vectors, end: Quotient) -> None:
        self.v = v
        self.factor, self.right = (
            k.arg("factor", end.factor),
            k.arg("right", -end.shift),
        )
        self.stored = Stored(k, v, INT16, 0, (end.low, end.high))

    def values(self, total: Expr, n: Expr) -> Expr:
        """The values of n sums."""
        v = self.v
        value = v.ONCE_ONE(v.TIMES(total, 1 << MORE, n), self.factor, self.right, n)
        return self.stored.stored(value, n)


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer, end: End | None) -> None:
        w, self.layer = layer.window, layer
        self.v = vectors(16 if layer.average else 32)
        self.k = k = Builder(_name(layer, end), _doc(layer, end))
        self.elem = layer.elem
        self.y = k.row("y", 0, self.elem, writable=True)
        unrolled = layer.unrolled
        self.kernel_h = const(w.kernel_h) if unrolled else k.arg("kernel_h", w.kernel_h)
        self.pixels = bind(k, w, self.elem, self.kernel_h, 0 if unrolled else None)
        self.out_width = k.arg("out_width", w.out_width)
        self.scaled: Scaled | Divided | Halved | None = None
        if isinstance(end, Quotient):
            self.scaled = Divided(k, self.v, end)
        elif isinstance(end, Even):
            self.scaled = Halved(k, self.v, end)
        elif end is not None:
            self.scaled = Scaled(k, self.v, end)
        self.limits: tuple[Expr, Expr] | None = None
        if end is None and _clamped(layer):
            assert layer.made is not None
            low, high = layer.made.low, layer.made.high
            self.limits = k.arg("low", low), k.arg("high", high)

    def write(self) -> Builder:
        k, w, pixels = self.k, self.layer.window, self.pixels
        rows: list[Var] = []
        if self.layer.unrolled:
            rows = [pixels.row(k, ky) for ky in range(w.kernel_h)]
        kernel_w = const(0) if rows else k.arg("kernel_w", w.kernel_w)
        steps = Steps(k, self.v, pixels.channels)
        with k.loop("ox", self.out_width) as ox:
            cells = pixels.all(k, rows, ox) if rows else []
            to = k.let("to", offset(self.y, ox * pixels.channels))
            begin = k.let("begin", pixels.start(ox) * pixels.channels)
            with steps.each() as (at, n):
                total = k.let("total", self._start(n))
                for cell in cells:
                    self._add(total, offset(cell, at), n)
                if not rows:
                    self._large(total, begin + at, kernel_w, n)
                k.store(to, at, self._end(total, n), count=n)
        return k

    def _large(self, total: Var, begin: Expr, kernel_w: Expr, n: Expr) -> None:
        k, pixels = self.k, self.pixels
        with k.loop("ky", self.kernel_h, rolled=True) as ky:
            x = k.let("x", offset(pixels.row(k, ky), begin))
            with k.loop("kx", kernel_w, rolled=True):
                self._add(total, x, n)
                k.assign(x, offset(x, pixels.channels))

    def _start(self, n: Expr) -> Expr:
        if self.layer.average:
            return self.v.ALL(0, n)
        return self.v.FILLED[self.elem](self.elem.low, n)

    def _add(self, total: Var, x: Operand, n: Expr) -> None:
        v, k = self.v, self.k
        if self.layer.average:
            k.assign(total, v.ADD(total, v.AS_HALVES[self.elem](x, n), n))
        else:
            value = v.AS_THEY_ARE[self.elem](x, n)
            k.assign(total, v.GREATER[self.elem](total, value, n))

    def _end(self, total: Expr, n: Expr) -> Expr:
        if self.scaled is not None:
            return self.scaled.values(total, n)
        if self.limits is None:
            return total
        return self.v.HELD[self.elem](total, *self.limits, n)


def _clamped(layer: Layer) -> bool:
    made = layer.made
    return made is not None and (made.low, made.high) != (
        layer.elem.low,
        layer.elem.high,
    )


def _name(layer: Layer, end: End | None) -> str:
    w = layer.window
    parts = (
        "avg_pool_rvv" if layer.average else "max_pool_rvv",
        "s16" if layer.elem is INT16 else "",
        f"{w.kernel_h}x{w.kernel_w}" if layer.unrolled else "large",
        "padded" if w.padded else "",
        "clamped" if _clamped(layer) and end is None else "",
        end.key if isinstance(end, High | Quotient | Even) else "",
    )
    return "_".join(p for p in parts if p)


def _doc(layer: Layer, end: End | None) -> str:
    """The comment in the kernel's C."""
    w, what = layer.window, "average" if layer.average else "maximum"
    taps = f"{w.kernel_h}x{w.kernel_w} windows" if layer.unrolled else SIZES
    beside = ", which may leave the row" if w.padded else ""
    return told(
        f"{what} over {taps}{beside}, {layer.elem.value}",
        "pixel by pixel, a vector of channels at a time; all cells of each",
        "" if end is None else end.words,
    )
