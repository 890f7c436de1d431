"""Depthwise rows in pieces: a few columns are woven and summed at a time, so that the
scratch is theirs and not a row's.

Knows no weight and no node.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.loop import Expr, const, maximum, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.depthwise_code import Writer
from pybuild.kernels.mve.depthwise_layer import SIDE, Layer
from pybuild.records import dataclass

_VECTOR = 16
# of a row's scratch: what a piece may have at most, and what is worth a kernel
_SHARE, _MUCH = 0.75, 1024


@dataclass(frozen=True)
class Pieces:
    """A row, and the layer that each of its pieces is."""

    row: Window
    layer: Layer


def pieces_of(row: Layer) -> list[Pieces]:
    """Of half, a quarter and an eighth of a row's columns, where they save much; the
    largest first."""
    found, before = list[Pieces](), row
    for parts in (2, 4, 8):
        layer = _piece(row, -(-row.window.out_width // parts))
        saves = layer.scratch <= _SHARE * before.scratch
        if before.scratch >= _MUCH and saves and _fills_vectors(row.window, layer):
            found.append(Pieces(row.window, layer))
            before = layer
    return found


def _piece(row: Layer, outputs: int) -> Layer:
    """So many pixels or a few more, of columns that all are woven."""
    w = row.window
    step = SIDE if outputs >= SIDE else row.together
    outputs = min(-(-outputs // step) * step, w.out_width)
    window = replace(w, out_width=outputs, left=0)
    window = replace(window, width=window.columns)
    return replace(row, window=window, exact=True)


def _fills_vectors(row: Window, piece: Layer) -> bool:
    """Each piece has a vector of bytes that are not padding."""
    columns = piece.window.columns
    last = (row.out_width - piece.window.out_width) * row.stride_w - row.left
    inside = min(columns - row.left, row.width - last, columns, row.width)
    return (inside - piece.halves) * row.channels >= _VECTOR


@once
def kernel_of_pieces(pieces: Pieces) -> Builder:
    """As `kernel` of the row."""
    return _PiecesWriter(pieces).write()


def _name(pieces: Pieces) -> str:
    row = pieces.row
    parts = (
        pieces.layer.name,
        "pieces",
        "left" if row.left else "",
        "even" if pieces.layer.halves and row.left and row.left % 2 == 0 else "",
        "right" if row.right else "",
        "rest" if row.out_width % pieces.layer.window.out_width else "",
    )
    return "_".join(p for p in parts if p)


class _PiecesWriter(Writer):
    """The last piece begins where it ends with the row."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__(pieces.layer, _name(pieces))
        self.row = pieces.row
        self.padded = pieces.row.left, pieces.row.right

    def write(self) -> Builder:
        k, w, row = self.k, self.layer.window, self.row
        count, y = k.arg("pixels", row.out_width), self.y
        columns, width = k.arg("columns", w.columns), k.arg("width", row.width)
        left: Expr = k.arg("left", row.left) if row.left else const(0)
        with k.loop("piece", count, 0, w.out_width, rolled=True) as pixel:
            if row.out_width % w.out_width:
                pixel = k.let("pixel", minimum(pixel, count - w.out_width))
            start = k.let("start", pixel * row.stride_w - left)
            first, end = start, start + columns
            if row.left:
                first = k.let("first", maximum(start, 0))
            if row.right:
                end = k.let("end", minimum(start + columns, width))
            self._woven(start, first, end, columns)
            self.y = k.let("out", offset(y, pixel * self.channels))
            self._sums()
        return k

    def _woven(self, start: Expr, first: Expr, end: Expr, columns: Expr) -> None:
        """The columns from `start`, of which those from `first` to `end` are inside."""
        k, row = self.k, self.row
        begin = k.let("begin", (first - start) * self.channels)
        size = k.let("size", (end - first) * self.channels)
        source = k.let("source", first * self.channels)
        for plane in range(self.layer.planes):
            at = self.plane * plane
            if row.left:
                self._fill(at, at + begin)
            if row.right:
                self._fill(at + begin + size, at + columns * self.channels)
            to = k.let("woven_to", offset(self.woven, (at + begin) * self.layer.unit))
            if self.layer.halves and plane == self.layer.planes - 1:
                self._weave_last(to, size, (source, first - start, end - first))
            else:
                self._weave(plane, to, size, source, row.channels % _VECTOR > 0)
