"""The code of conv.py's kernel: one for all forms of a window.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder, Named, told
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, IN_ORDER, ODD_BYTES
from pybuild.kernels.base.window import Window
from pybuild.kernels.compact.epilogue import ended, kind_of, read_end
from pybuild.kernels.compact.lines import WORD
from pybuild.kernels.epilogues.affine import Affine, told_form
from pybuild.kernels.epilogues.affine_end import AffineFinish
from pybuild.records import dataclass

BLOCK = 4  # output channels done together, as two pairs
UNROLLED = 4  # pairs of taps in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    signed  what a sum's sign adds is there, be it 0
    """

    window: Window
    epilogue: Affine
    x_zero: int
    signed: bool

    @property
    def columns(self) -> int:
        """The contiguous pieces of a row under the window: one run, or separate
        taps."""
        return 1 if self.window.dilation_w == 1 else self.window.kernel_w

    @property
    def run(self) -> int:
        """The bytes of such a piece, which is read in words."""
        w = self.window
        return w.channels * (w.kernel_w if self.columns == 1 else 1)

    @property
    def taken(self) -> int:
        """The bytes read for a piece: at least a word."""
        return max(self.run, WORD)

    @property
    def order(self) -> tuple[int, ...]:
        """The tap of every int16 of a patch, padded to whole iterations; -1: its weight
        is 0. The last word of a piece reaches back to bytes that were already read."""
        lanes: list[int] = []
        for start in range(0, self.window.kernel_h * self.columns * self.run, self.run):
            for at in range(0, self.taken, WORD):
                first = min(at, self.taken - WORD)
                for byte in (first, first + 2, first + 1, first + 3):
                    new = at <= byte < self.run
                    lanes.append(start + byte if new else -1)
        return (*lanes, *[-1] * (-len(lanes) % (2 * UNROLLED)))

    @property
    def patch(self) -> int:
        """Bytes of the widened windows of two pixels."""
        return 4 * len(self.order)

    @property
    def scratch(self) -> int:
        """Bytes of the patch, and of a piece that may lie partly outside a row."""
        leaves = self.window.padded or self.run < WORD
        return self.patch + self.taken * leaves

    @property
    def pair_step(self) -> int:
        """The distance from the first pair of channels of a block to the second: with
        two or three output channels some are computed twice."""
        return min(2, self.window.out_channels - 2)

    @property
    def arguments(self) -> tuple[tuple[Named, Named], ...]:
        """The kernel's arguments, packed in pairs."""
        w = self.window
        return (
            (("out_width", w.out_width), ("out_channels", w.out_channels)),
            (("run", self.taken), ("step", w.stride_w * w.channels)),
            (("kernel_h", w.kernel_h), ("turns", len(self.order) // 2 // UNROLLED)),
            (("before", w.left * w.channels), ("outside", self.x_zero & 0xFF)),
        )

    @property
    def kind(self) -> str:
        return kind_of(self.epilogue, self.signed)

    @property
    def name(self) -> str:
        dilated = "dilated" if self.window.dilated else ""
        parts = ("conv2d_small", dilated, self.kind)
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        gaps = ", with gaps between taps" if self.window.dilated else ""
        return told(
            f"convolution, int8, int32 sums by pairs of int16 (SMLAD): windows of "
            f"any size{gaps}",
            f"two pixels at a time, widened into the patch; then {BLOCK} output "
            "channels at a time; weights and epilogues are one stream, read forward",
            told_form(self.signed, self.epilogue.clamped),
        )


def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), two pixels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of the kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        (
            (self.out_width, self.out_channels),
            (self.run, self.step),
            (self.kernel_h, self.turns),
            (self.before, self.outside),
        ) = (k.halves(*pair) for pair in layer.arguments)
        self.inside = k.arg("inside", w.width * w.channels)
        self.columns: Expr = const(1)
        self.down: Expr = const(1)
        self.apart: Expr = const(0)
        if w.dilated:
            self.columns = k.arg("columns", layer.columns)
            self.down = k.arg("dilation_h", w.dilation_h)
            self.apart = k.arg("apart", w.dilation_w * w.channels)
        after = k.let("after", (self.kernel_h - 1) * self.down + 2)
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", after, INT32)
        self.patch = k.row("patch", after + 1, INT32, writable=True)
        bytes_of = k.row("bytes", after + 1, INT8, writable=True)
        self.piece = k.let("piece", offset(bytes_of, self.turns * (8 * UNROLLED)))
        self.finish = AffineFinish(k, layer.epilogue, False)

    def write(self) -> Builder:
        k = self.k
        with k.loop("ox", self.out_width, 0, 2) as ox:
            # a last pixel alone is both of its pair
            more = k.let("more", minimum(self.out_width - 1 - ox, 1))
            self._gather(ox, more)
            self._channels(ox, more)
        return k

    def _gather(self, ox: Expr, more: Expr) -> None:
        """Widens the windows of two pixels: a word of one, then one of the other."""
        k = self.k
        with k.loop("p", 2) as p:
            to = k.let("to", offset(self.patch, p))
            begin = k.let("begin", (ox + p * more) * self.step - self.before)
            with k.loop("ky", self.kernel_h) as ky, k.loop("kx", self.columns) as kx:
                row = k.row("row", ky * self.down + 1, INT8)
                x = self._piece(row, k.let("first", begin + kx * self.apart))
                with k.loop("at", self.run, 0, WORD, rolled=True) as at:
                    word = k.let("word", wide(x, minimum(at, self.run - WORD)))
                    k.store(to, 0, EVEN_BYTES(word))
                    k.store(to, 2, ODD_BYTES(word))
                    k.assign(to, offset(to, 4))

    def _piece(self, row: Expr, first: Expr) -> Var:
        """Return a pointer to a piece: in the row, or in a copy with the padding beside
        it."""
        k = self.k
        x = k.let("x", offset(row, first))
        leaves = minimum(first, self.inside - self.run - first) < 0
        with k.when(leaves):
            self._copy(row, first)
            k.assign(x, self.piece)
        return x

    def _copy(self, row: Expr, first: Expr) -> None:
        """Copy a piece, byte by byte."""
        k = self.k
        with (
            k.part(
                "piece_small",
                "A piece of a row with what stands beside that, byte by byte.",
                piece=self.piece,
                row=row,
                first=first,
                run=self.run,
                inside=self.inside,
                outside=self.outside,
            ) as (piece, source, start, run, inside, outside),
            k.loop("byte", run) as byte,
        ):
            value, at = k.let("value", outside), k.let("at", start + byte)
            with k.when(const(0) <= minimum(at, inside - 1 - at)):
                k.assign(value, cast(load(source, at), INT32))
            k.store(piece, byte, cast(value, INT8))

    def _channels(self, ox: Expr, more: Expr) -> None:
        """Computes all output channels of two pixels, in a separate function."""
        k = self.k
        with k.part(
            f"dot_small_{self.layer.kind}".rstrip("_"),
            "All output channels of two pixels; of each two channels, a and b, a lane "
            "of a weight word is 256 * a + b.",
            patch=self.patch,
            weights=self.weights,
            y=offset(self.y, ox * self.out_channels),
            apart=more * self.out_channels,
            out_channels=self.out_channels,
            turns=self.turns,
            **self.finish.values,
        ) as params:
            inner = {p.name: p for p in params}
            w = k.let("w", inner["weights"])
            # of two or three output channels some are computed twice
            step = k.let("pair_step", minimum(inner["out_channels"] - 2, 2))
            most = inner["out_channels"] - step - 2
            finish = self.finish.inside(inner)
            with k.loop("first", inner["out_channels"], 0, BLOCK) as first:
                sums = self._sums(w, inner)
                y = k.let("to", offset(inner["y"], minimum(first, most)))
                for pair in sums:
                    self._finish(finish, pair, w, y, inner["apart"])
                    k.assign(y, offset(y, step))

    def _sums(self, w: Var, inner: dict[str, Var]) -> list[list[tuple[Var, Var]]]:
        """The sums of two pairs of channels for two pixels: 256 * a + b, and b."""
        k = self.k
        sums = [
            [(k.let("both", 0), k.let("low", 0)) for _ in range(2)] for _ in range(2)
        ]
        x = k.let("x", inner["patch"])
        with k.loop("turn", inner["turns"], rolled=True):
            for tap in range(0, 2 * UNROLLED, 2):
                for b, block in enumerate(sums):
                    pair = k.let("pair", IN_ORDER(load(w, tap + b)))
                    if b == 0:
                        values = [k.let("value", load(x, tap + p)) for p in (0, 1)]
                    for value, (both, _) in zip(values, block, strict=True):
                        k.assign(both, DOT2(value, pair, both))
                    low = k.let("single", EVEN_BYTES(pair))
                    for value, (_, alone) in zip(values, block, strict=True):
                        k.assign(alone, DOT2(value, low, alone))
            k.assign(w, offset(w, 2 * UNROLLED))
            k.assign(x, offset(x, 2 * UNROLLED))
        return sums

    def _finish(
        self,
        finish: AffineFinish,
        pair: Sequence[tuple[Var, Var]],
        w: Var,
        y: Expr,
        apart: Expr,
    ) -> None:
        """Stores a pair of output channels of two pixels."""
        k, signed = self.k, self.layer.signed
        for which in range(2):
            ends = read_end(k, w, signed)
            for p, (both, alone) in enumerate(pair):
                product = alone * 256 if which else both - alone
                value = k.let("value", ended(k, finish, product, ends))
                k.store(y, apart * p + which, value)
            k.assign(w, offset(w, len(ends)))
