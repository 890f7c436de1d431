"""int8 pools four channels at a time. Averages with pairs of int16 (SXTAB16), in sums
of 16 bits, where no window has too many cells for them; maxima by bytes (SSUB8, SEL).
Knows no node.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, INT32, Expr, Intrin, cast, const, offset, wide
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.intrin import ADD_EVEN, ADD_ODD, MAX_BYTES
from pybuild.kernels.base.taps import bind
from pybuild.kernels.layers.pool import DIVIDED, Layer, Reduction
from pybuild.kernels.mve.pool import Writer
from pybuild.targets.target import Target

_MOST = 32767 // 128  # cells


def suits(layer: Layer, target: Target) -> bool:
    """True if windows lie in the row, whole words of channels, and sums in int16."""
    w = layer.window
    plain = layer.average and layer.elem is DType.INT8 and layer.rows is None
    cells = w.kernel_h * w.kernel_w
    words = w.channels % 4 == 0 and not w.padded and cells <= _MOST
    return "dsp" in target.features and plain and words


def kernel(
    layer: Layer,
    bound: Callable[[Builder, Expr], Reduction],
    named: tuple[str, str] | None = None,
) -> Builder:
    """y[ox,c] = end(sum over cells x[c]), four channels at a time.

    Shapes  rows x [W,C], y [OW,C]
    named   what it is called, and how it ends
    """
    rule = layer.rule
    epilogue = rule.key if rule is not None else "divide"
    name, words = named or (f"avg_pool_dsp_{epilogue}", rule.words if rule else DIVIDED)
    doc = told(
        "average over windows that lie in the row, int8, sums of 16 bits two in a word",
        "pixel by pixel, four channels at a time, all cells row by row",
        words,
    )
    k = Builder(name, doc)
    y = k.row("y", 0, INT8, writable=True)
    kernel_h = k.arg("kernel_h", layer.window.kernel_h)
    kernel_w = k.arg("kernel_w", layer.window.kernel_w)
    pixels = bind(k, layer.window, INT8, kernel_h, None)
    out_width = k.arg("out_width", layer.window.out_width)
    reduction = bound(k, kernel_h + 1)
    cells = k.let("cells", kernel_h * kernel_w)
    start = k.let("start", reduction.start(cells))
    with k.loop("ox", out_width) as ox, k.loop("c", pixels.channels, 0, 4) as c:
        begin = k.let("begin", pixels.start(ox) * pixels.channels + c)
        sums = [k.let("even", 0), k.let("odd", 0)]
        with k.loop("ky", kernel_h) as ky:
            x = k.let("x", offset(pixels.row(k, ky), begin))
            # rolled: written out it is what emit/llvm/passes.py tells LLVM 22 to leave
            with k.loop("kx", kernel_w, rolled=True):
                word = k.let("word", wide(x, 0))
                for total, add in zip(sums, (ADD_EVEN, ADD_ODD), strict=True):
                    k.assign(total, add(total, word))
                k.assign(x, offset(x, pixels.channels))
        to = k.let("to", offset(y, ox * pixels.channels + c))
        # the low halves, then the high ones: of their ends the code is there twice
        with k.loop("half", 2, rolled=True):
            for i, pair in enumerate(sums):
                lane = cast(cast(pair, DType.INT16), INT32)
                total = k.let("total", start + lane)
                k.store(to, i, reduction.end(total, cells))
                k.assign(pair, pair >> 16)
            k.assign(to, offset(to, 2))
    return k


def has_maxima(layer: Layer, target: Target) -> bool:
    """True if windows are pixels of whole words, or more, that no clamp changes."""
    made, large_edges = layer.made, layer.window.padded and not layer.unrolled
    bytes_alone = layer.elem is DType.INT8 and layer.window.channels >= 4
    free = made is not None and (made.low, made.high) == (-128, 127)
    fits = not layer.average and bytes_alone and free and not large_edges
    return "dsp" in target.features and fits


def maxima(layer: Layer) -> Builder:
    """y[ox,c] = the greatest x[c] of the cells, four channels at a time.

    Shapes  rows x [W,C], y [OW,C]; the pixel outside, if windows leave the row
    """
    return _Words(layer, None).write()


class _Words(Writer):
    """A block of channels is a word."""

    kind = "dsp"

    def _block(self) -> int:
        return 4

    def _values(self, x: Expr) -> list[Expr]:
        return [wide(x, 0)]

    def _start(self) -> Expr:
        return const(-0x7F7F7F80)

    @property
    def more(self) -> Intrin:
        return MAX_BYTES

    def _store(self, y: Expr, number: int, total: Expr) -> None:
        self.k.store(y, 4 * number, total, wide=True)
