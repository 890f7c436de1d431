"""Pools of int8 and int16 on vectors: 16 channels at a time, or eight, or four where
there are fewer.

Knows no node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pybuild.ir.loop import INT8, INT16, Expr, Intrin, Var, const, offset
from pybuild.kernels.base.between import BITS4
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.extremes import MAX8, MIN8
from pybuild.kernels.base.taps import bind
from pybuild.kernels.base.vector_eights import ALL8
from pybuild.kernels.base.vector_packs import RIGHT4
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    ALL16,
    CORRECT4,
    LINE4,
    MAX4,
    MAX16,
    MIN16,
    MULHI4,
    NARROW4,
    PLUS4,
    SCALE4,
    bytes_at,
    halves_at,
    words_at,
)
from pybuild.kernels.epilogues.affine import Affine, of_means
from pybuild.kernels.epilogues.affine_line import MOST, Line, line
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.pool import SIZES, Layer
from pybuild.kernels.layers.quotient import Quotient, quotient
from pybuild.ops.fixed_point.quant import requantize
from pybuild.ops.pool import averages
from pybuild.ops.reduce import MeanParameters
from pybuild.records import dataclass
from pybuild.targets.target import Target


def suits(layer: Layer, target: Target) -> bool:
    """True if a layer may have a kernel of this file."""
    large_edges = layer.window.padded and not layer.unrolled
    alike = layer.rows is None and not layer.varies and not large_edges
    channels = layer.window.channels >= 4
    kind = layer.elem in (INT8, INT16)
    return "mve" in target.features and kind and alike and channels


@dataclass(frozen=True)
class High:
    """An end by high products, where no line equals the rule.

    start  what is added to a sum of values as they are
    """

    epilogue: Affine
    start: int

    @property
    def low(self) -> int:
        return self.epilogue.low

    @property
    def high(self) -> int:
        return self.epilogue.high

    @property
    def key(self) -> str:
        """What distinguishes the code of two layers."""
        signed = "" if self.epilogue.below is None else "_signed"
        return "high" + ("_based" if self.epilogue.base else "") + signed

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        return self.epilogue.words

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        """The words of four sums before they are shifted."""
        made, first = self.epilogue, self.start << FRACTION
        factor = k.let("factor", ALL4(k.arg("factor", int(made.multipliers[0]))))
        base = k.arg("base", made.base) if made.base else None
        plus, below = int(made.offsets[0]), made.below
        apart = first if below is not None else first + plus
        start = k.let("start", ALL4(k.arg("start", apart)))
        offsets = []
        if below is not None:
            given = {"offset": plus, "below": int(below[0])}
            offsets = [k.let(n, ALL4(k.arg(n, v))) for n, v in given.items()]

        def end(total: Expr) -> Expr:
            value = SCALE4(total, start)
            value = CORRECT4(value, *offsets) if offsets else value
            value = MULHI4(value, factor)
            return ADD4(value, base) if base is not None else value

        return end


@dataclass(frozen=True)
class Even:
    """sum / 2^bits to nearest, ties to even: where x and y have one scale, and a power
    of two of cells, an average is often halfway between two integers.

    x_zero, y_zero  as in PoolParameters
    """

    bits: int
    x_zero: int
    y_zero: int
    low: int
    high: int
    words = "divided by the number of cells, a power of two; ties to even"

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        return f"even{self.bits}"

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        """Return a function of four sums; what it returns is still to be shifted."""
        less = k.arg("less", -self.x_zero << self.bits)
        half = (1 << self.bits - 1) - 1
        start = k.arg("start", half + (self.y_zero << self.bits))

        def end(total: Expr) -> Expr:
            above = k.let("above", ADD4(total, less))
            odd = BITS4(RIGHT4(above, const(self.bits)), const(1))
            return PLUS4(ADD4(above, start), odd)

        return end


End = Line | High | Quotient | Even
# by the numbers in a vector
_ALL = {4: ALL4, 8: ALL8, 16: ALL16}
_MAX = {4: MAX4, 8: MAX8, 16: MAX16}


def scaled(layer: Layer) -> End | None:
    """The cheap end of an average, where there is one."""
    made, cells = layer.made, layer.window.kernel_h * layer.window.kernel_w
    if made is None:
        return None
    if layer.elem is INT16:
        return quotient(cells, (made.low, made.high)) if made.divide else None
    if not made.divide:
        multiplier, shift = made.multipliers[cells], made.shifts[cells]
        mean = MeanParameters(
            made.rounding, cells, multiplier, shift, made.x_zero, made.y_zero,
            made.low, made.high,
        )  # fmt: skip
        return scaled_mean(mean)
    if 255 * cells >= MOST:
        return None
    sums = np.arange(-128 * cells, 127 * cells + 1)
    wanted = averages(made, sums, np.full_like(sums, cells))
    return line(sums, wanted, 1 / cells, (made.low, made.high))


def scaled_mean(made: MeanParameters) -> End | None:
    """The cheap end of a mean: by one product of 32 bits, or by a high one."""
    count = made.count
    sums = np.arange(-128 * count, 127 * count + 1)
    if len(sums) <= MOST:
        above, rule = sums - count * made.x_zero, made.rounding
        wanted = requantize(above, made.multiplier, made.shift, rule) + made.y_zero
        scale = made.multiplier * 2.0 ** (made.shift - 31)
        found = line(sums, wanted, scale, (made.low, made.high))
        if found is not None:
            return found
    epilogue = of_means(made)
    if epilogue is not None:
        return High(epilogue, -count * made.x_zero)
    return _even(made)


def _even(made: MeanParameters) -> Even | None:
    """The end by the rule "even" where the scale is one over a power of two."""
    bits = made.count.bit_length() - 1
    whole = (made.multiplier, made.shift) == (1 << 30, 1 - bits)
    if made.rounding != "even" or made.count != 1 << bits or not bits or not whole:
        return None
    return Even(bits, made.x_zero, made.y_zero, made.low, made.high)


def kernel(layer: Layer, end: End | None) -> Builder:
    """y[ox,c] = end(sum over cells x[c]), or the greatest x[c].

    Shapes  rows x [W,C], y [OW,C]; the pixel outside, if windows leave the row
    """
    return Writer(layer, end).write()


def _limits(layer: Layer, end: End | None) -> tuple[int, int]:
    of = layer.made if end is None else end
    return (of.low, of.high) if of is not None else _ends(layer)


def _ends(layer: Layer) -> tuple[int, int]:
    return layer.elem.low, layer.elem.high


class Writer:
    """The pieces of one kernel being written; a block of channels is a vector of
    bytes, or of words."""

    kind = "mve"

    def __init__(self, layer: Layer, end: End | None) -> None:
        w = layer.window
        self.layer = layer
        self.block = self._block()
        self.k = k = Builder(self._name(end), self._doc(end))
        self.y = k.row("y", 0, layer.elem, writable=True)
        unrolled = layer.unrolled
        self.kernel_h = const(w.kernel_h) if unrolled else k.arg("kernel_h", w.kernel_h)
        self.pixels = bind(k, w, layer.elem, self.kernel_h, 0 if unrolled else None)
        self.out_width = k.arg("out_width", w.out_width)
        limits = _limits(layer, end)
        narrowed = layer.average and not isinstance(end, Quotient)
        self.clamped = narrowed or limits != _ends(layer)
        self.low: Expr
        self.high: Expr
        self.low, self.high = map(const, _ends(layer))
        if self.clamped:
            self.low, self.high = k.arg("low", limits[0]), k.arg("high", limits[1])
        self.shift: Expr = const(0)
        if isinstance(end, Quotient):
            self.scaled = end.bind(k)
        elif isinstance(end, Even):
            self.scaled = end.bind(k)
            self.shift = const(end.bits)
        elif isinstance(end, High):
            self.scaled = end.bind(k)
            self.shift = k.arg("shift", end.epilogue.shift)
        elif end is not None:
            factor = k.let("factor", ALL4(k.arg("factor", end.factor)))
            plus = k.arg("offset", end.offset)
            self.scaled = lambda total: LINE4(total, factor, plus)
            self.shift = k.arg("shift", end.shift)

    def _block(self) -> int:
        """Channels taken together."""
        most = 16 // self.layer.elem.bytes
        return most if self.layer.window.channels >= most else 4

    def _name(self, end: End | None) -> str:
        layer, w = self.layer, self.layer.window
        clamped = _limits(layer, None) != _ends(layer)
        parts = (
            f"avg_pool_{self.kind}" if layer.average else f"max_pool_{self.kind}",
            "s16" if layer.elem is INT16 else "",
            f"{w.kernel_h}x{w.kernel_w}" if layer.unrolled else "large",
            f"by{self.block}",
            "padded" if w.padded else "",
            "rest" if w.channels % self.block else "",
            "clamped" if clamped and not layer.average else "",
            end.key if isinstance(end, High | Quotient | Even) else "",
        )
        return "_".join(p for p in parts if p)

    def _doc(self, end: End | None) -> str:
        """What the kernel's C says."""
        layer, w = self.layer, self.layer.window
        what = "average" if layer.average else "maximum"
        taps = f"{w.kernel_h}x{w.kernel_w} windows" if layer.unrolled else SIZES
        beside = ", which may leave the row" if w.padded else ""
        rest = "; the last ones reach back" if w.channels % self.block else ""
        return told(
            f"{what} over {taps}{beside}, {layer.elem.value}",
            f"pixel by pixel, {self.block} channels at a time{rest}; all cells of each",
            "" if end is None else end.words,
        )

    def write(self) -> Builder:
        k, w, pixels = self.k, self.layer.window, self.pixels
        if not self.layer.unrolled:
            return self._large()
        rows = [pixels.row(k, ky) for ky in range(w.kernel_h)]
        with k.loop("ox", self.out_width) as ox:
            cells = pixels.all(k, rows, ox)
            to = k.let("to", offset(self.y, ox * pixels.channels))
            for _, (y, *found) in self._blocks([to, *cells]):
                values = zip(*map(self._values, found), strict=True)
                for i, (first, *others) in enumerate(values):
                    total = k.let("total", first)
                    for value in others:
                        k.assign(total, self.more(total, value))
                    self._store(y, i, total)
        return k

    def _large(self) -> Builder:
        k, pixels = self.k, self.pixels
        kernel_w = k.arg("kernel_w", self.layer.window.kernel_w)
        start = k.let("start", self._start())
        count, channels = len(self._values(self.y)), pixels.channels
        with k.loop("ox", self.out_width) as ox:
            begin = k.let("begin", pixels.start(ox) * channels)
            to = k.let("to", offset(self.y, ox * channels))
            for c, (y,) in self._blocks([to]):
                totals = [k.let(f"total{i}", start) for i in range(count)]
                with k.loop("ky", self.kernel_h, rolled=True) as ky:
                    x = k.let("x", offset(pixels.row(k, ky), begin + c))
                    with k.loop("kx", kernel_w, rolled=True):
                        for total, value in zip(totals, self._values(x), strict=True):
                            k.assign(total, self.more(total, value))
                        k.assign(x, offset(x, channels))
                for i, total in enumerate(totals):
                    self._store(y, i, total)
        return k

    def _blocks(self, pixels: list[Var]) -> Iterator[tuple[Expr, list[Var]]]:
        """Blocks of channels: the first of them, and where it is in some pixels.

        The last block may reach back into the one before.
        """
        k, block, channels = self.k, self.block, self.pixels.channels
        rest = self.layer.window.channels % block > 0
        whole = k.let("whole", channels - channels % block) if rest else channels
        with k.loop("c", whole, 0, block) as c:
            yield c, pixels
            for pixel in pixels:
                k.assign(pixel, offset(pixel, block))
        if rest:
            yield (
                channels - block,
                [k.let("last", offset(x, channels % block - block)) for x in pixels],
            )

    def _values(self, x: Expr) -> list[Expr]:
        """The vectors of a block."""
        if self.block > 4 and not self.layer.average:
            return [bytes_at(x) if self.block == 16 else halves_at(x)]
        return [words_at(x, at) for at in range(0, self.block, 4)]

    def _start(self) -> Expr:
        if self.layer.average:
            return ALL4(0)
        return _ALL[self.block](self.layer.elem.low)

    @property
    def more(self) -> Intrin:
        """What makes one value of two."""
        return PLUS4 if self.layer.average else _MAX[self.block]

    def _store(self, y: Expr, number: int, total: Expr) -> None:
        self.k.store(y, 4 * number, self._end(total))

    def _end(self, total: Expr) -> Expr:
        if self.layer.average:
            total = self.scaled(total)
        if not self.clamped:
            return total
        if self.block == 4 or self.layer.average:
            return NARROW4(total, self.shift, self.low, self.high)
        all_of, least = _ALL[self.block], MIN16 if self.block == 16 else MIN8
        return least(self.more(total, all_of(self.low)), all_of(self.high))
