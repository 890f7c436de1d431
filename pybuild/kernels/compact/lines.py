"""Copies rows with the padding beside them into scratch for compact kernels: no window
leaves such a line, so no code tests for it. Knows no operator."""

from __future__ import annotations

from pybuild.ir.loop import Expr, wide
from pybuild.kernels.base.builder import Builder

WORD = 4  # bytes moved together


def lanes(value: int) -> int:
    """An int8 in all bytes of an int32."""
    byte = value & 0xFF
    return int.from_bytes(bytes([byte] * WORD), "little", signed=True)


def whole_words(size: int) -> int:
    return size + -size % WORD


def blank(k: Builder, lines: Expr, size: Expr, word: Expr) -> None:
    """Fills `size` bytes, which are whole words."""
    with k.loop("at", size, 0, WORD, rolled=True) as at:
        k.store(lines, at, word, wide=True)


def copy(k: Builder, line: Expr, row: Expr, size: Expr) -> None:
    """`size` bytes, a word at least: the first word, then those that end the row."""
    doc = "A row copied in words; the first may overlap the second."
    with k.part("copy_small", doc, to=line, row=row, size=size) as (to, source, last):
        k.store(to, 0, wide(source, 0), wide=True)
        with k.loop("at", last, last & (WORD - 1), WORD, rolled=True) as at:
            k.store(to, at, wide(source, at), wide=True)
