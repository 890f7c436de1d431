"""int8 depthwise convolution of rows that are one block of pixels.

All pixels of a row are summed together, channel by channel, from the rows where they
lie: what the copies of depthwise.py's kernels by rows take is saved. A tap on padding
loads nothing: it is multiplied by the input's zero point.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.dtype import Array, DType
from pybuild.ir.loop import INT8, INT32, Const, Expr, Var, cast, load, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.intrin import KEPT
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.by_channel import (
    Epilogue,
    columns,
    exact_of,
    exact_share,
    finish_of,
)
from pybuild.records import dataclass

MOST_TAPS = 32  # of a sum: they are written out


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it; every pixel of a row in one block.

    zero     the input's zero point: taps on padding add to sums where it is not 0
    weights  their element type: int16 of nine bits
    """

    window: Window
    epilogue: Epilogue
    zero: int
    weights: DType = INT8

    @property
    def edges(self) -> list[int]:
        """Pixels whose windows leave the row, where that adds to their sums."""
        return [p for p in range(self.window.out_width) if self.outside(p)]

    def outside(self, pixel: int) -> list[int]:
        """Taps of a row that lie on padding, and add to its sum."""
        within = [kx for kx, _ in self.inside(pixel)]
        taps = range(self.window.kernel_w) if self.zero else ()
        return [kx for kx in taps if kx not in within]

    def inside(self, pixel: int) -> Iterator[tuple[int, int]]:
        """Taps of a row that lie in it, and their columns."""
        w = self.window
        for kx in range(w.kernel_w):
            column = pixel * w.stride_w + kx * w.dilation_w - w.left
            if 0 <= column < w.width:
                yield kx, column

    @property
    def uses(self) -> dict[int, list[tuple[int, int]]]:
        """For each column that is read: the sums that it is in, and by which tap."""
        found: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(self.window.out_width):
            for kx, column in self.inside(pixel):
                found.setdefault(column, []).append((pixel, kx))
        return dict(sorted(found.items()))

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            f"depthwise_rows_{w.kernel_h}x{w.kernel_w}_{w.width}to{w.out_width}",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_h}_{w.dilation_w}" if w.dilated else "",
            f"left{w.left}" if w.left else "",
            "zero" if self.edges else "",
            "" if self.weights is INT8 else "w16",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        nine = " x int16" * (self.weights is not INT8)
        return told(
            f"depthwise convolution, int8{nine}, int32 sums: {w.kernel_h}x{w.kernel_w} "
            f"windows of rows of {w.width}, stride {w.stride_w}",
            f"channel by channel: all {w.out_width} sums of the row together, rows "
            "read where they lie; weights forward",
            self.epilogue.words,
        )


def cost(layer: Layer) -> int:
    """Estimated instructions of a call."""
    w, uses = layer.window, layer.uses
    products = sum(map(len, uses.values())) + len(layer.edges)
    row = 2 * products + 2 * len(uses) + w.kernel_w + 2
    return w.channels * (w.kernel_h * row + 18 * w.out_width + 30)


def candidates(
    window: Window,
    epilogue: Epilogue,
    kernels: Array,
    x_zero: int,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
    tables: tuple[Packed, ...],
    pixels: int,
) -> list[Candidate]:
    """The kernel of a layer, or none.

    tables  weights, then what sums begin and end with
    pixels  whose sums registers hold
    Shapes  kernels [C, taps]
    """
    if window.out_width > pixels or kernels.shape[1] > MOST_TAPS:
        return []
    layer = Layer(window, epilogue, x_zero, DType.of(kernels))
    if not layer.uses:  # all taps of a row lie on padding
        return []
    k = kernel(layer)
    images, bands = calls
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=tables,
            images=images,
            bands=bands,
            cost=images * bands * cost(layer),
            rare=exact_share(layer.epilogue),
        )
    ]


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[c,tap]))).

    Shapes  rows x [W,C], y [OW,C]; weights [C, taps]; ends of by_channel.table
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.w = layer, layer.window
        w = self.w
        self.k = k = Builder(layer.name, layer.doc)
        after = w.rows + 1
        self.y = k.row("y", 0, INT8, writable=True)
        self.rows = [
            k.row(f"row{ky}", ky * w.dilation_h + 1, INT8) for ky in range(w.kernel_h)
        ]
        self.weights = k.let("w", k.row("weights", after, layer.weights))
        self.ends = k.let("next_epilogue", k.row("epilogue", after + 1, INT32))
        after, rules = after + 2, None
        if exact_of(layer.epilogue) is not None:
            rules, after = k.row("exact", after, INT32), after + 1
        self.channels = k.arg("channels", w.channels)
        self.zero = k.arg("x_zero", layer.zero)
        self.finish = finish_of(k, layer.epilogue, rules)

    def write(self) -> Builder:
        k, layer, w = self.k, self.layer, self.w
        with k.loop("c", self.channels, rolled=True) as c:
            sums = self._starts()
            for ky, row in enumerate(self.rows):
                self._row(sums, row, c, ky)
            self._store(sums, c)
            k.assign(self.weights, offset(self.weights, w.kernel_h * w.kernel_w))
            k.assign(self.ends, offset(self.ends, columns(layer.epilogue)))
        return k

    def _starts(self) -> list[Var]:
        k, start = self.k, self.finish.start(self.ends, 0)
        if not isinstance(start, Const):
            start = k.let("start", start)
        return [k.let(f"sum{pixel}", start) for pixel in range(self.w.out_width)]

    def _row(self, sums: list[Var], row: Var, c: Expr, ky: int) -> None:
        """One row of taps: each value and each weight is read once."""
        k, w, uses = self.k, self.w, self.layer.uses
        first, *others = uses
        beside = [(p, kx) for p in self.layer.edges for kx in self.layer.outside(p)]
        before, taps = first, dict[int, Expr]()

        def tap(kx: int) -> Expr:
            if kx not in taps:
                weight = cast(load(self.weights, ky * w.kernel_w + kx), INT32)
                taps[kx] = k.let("tap", weight)
            return taps[kx]

        def pad(found: list[tuple[int, int]]) -> None:
            for pixel, kx in found:
                k.assign(sums[pixel], KEPT(sums[pixel] + tap(kx) * self.zero))
                beside.remove((pixel, kx))

        at = c if first == 0 else k.let("at", c + self.channels * first)
        x = k.let("x", offset(row, at)) if others else row
        for column, users in uses.items():
            if column > first:
                k.assign(x, offset(x, self.channels * (column - before)))
            before = column
            value = k.let("value", cast(load(x, 0 if others else at), INT32))
            for pixel, kx in users:
                k.assign(sums[pixel], sums[pixel] + value * tap(kx))
            # while the tap is held: LLVM would leave these for the end, and spill
            pad([one for one in beside if one[1] in taps])
        pad([*beside])

    def _store(self, sums: list[Var], c: Expr) -> None:
        k = self.k
        y = k.let("to", offset(self.y, c))
        row = self.finish.row(k, self.ends, 0)
        if not self.finish.is_cheap:
            each = [(acc, y, self.channels * p) for p, acc in enumerate(sums)]
            self.finish.store(k, each, row, self.ends)
            return
        for pixel, acc in enumerate(sums):
            if pixel:
                k.assign(y, offset(y, self.channels))
            k.store(y, 0, self.finish.narrow(k, acc, row))
