"""How sums of four channels side by side end: of int8 and of int16. Knows no layer."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.loop import Expr, Var, const, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.affine_end import (
    AffineFinish,
    columns_of,
    fraction,
    is_signed,
    is_usual,
    kind,
)
from pybuild.kernels.epilogues.affine_end import row_words as words_of
from pybuild.kernels.epilogues.by_channel import tables
from pybuild.kernels.epilogues.end16 import Bound16, End16
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.layers.depthwise import GROUP
from pybuild.kernels.layers.weights import block_starts, in_blocks

FourEnds = Affine | Exact | End16


def epilogue_key(epilogue: FourEnds) -> str:
    """What distinguishes the code of two layers."""
    if isinstance(epilogue, End16):
        return epilogue.key
    return kind(epilogue, is_usual(epilogue))


def row_words(epilogue: FourEnds) -> int:
    """Words of the table for each channel."""
    return epilogue.size if isinstance(epilogue, End16) else words_of(epilogue)


def bits_of(epilogue: FourEnds) -> int:
    """Bits that sums are shifted left by."""
    return 0 if isinstance(epilogue, End16) else fraction(epilogue)


def four_tables(epilogue: FourEnds, bias: Array) -> tuple[Packed, ...]:
    """What each channel starts and ends with, of each four channels: of a cheap end
    word by word; then the rows of channels that end by the rule itself."""
    if isinstance(epilogue, End16):
        return tables(epilogue, bias.astype(np.int64), in_blocks(len(bias), GROUP))
    rows, row = columns_of(epilogue, bias, bits_of(epilogue))
    groups = [rows[s:][:GROUP] for s in block_starts(len(bias), GROUP)]
    order = f"{EACH}: {row}"
    if isinstance(epilogue, Affine):
        groups = [np.ascontiguousarray(g.T) for g in groups]
        order = f"of each four channels, each word of the four: {row}"
    words = np.stack(groups).reshape(-1)
    return (Packed("epilogue", words.astype(np.int32), order=order),)


class End:
    """The ends of four channels inside a kernel being written."""

    def __init__(
        self,
        k: Builder,
        epilogue: FourEnds,
        finish: AffineFinish | Bound16,
        ends: Var,
    ) -> None:
        self.k, self.epilogue, self.finish, self.ends = k, epilogue, finish, ends

    def start(self, channel: int) -> Expr:
        """What its sum begins with."""
        if isinstance(self.finish, Bound16):
            return self.finish.start(self.ends, channel * row_words(self.epilogue))
        if isinstance(self.epilogue, Exact):
            return const(0)
        return load(self.ends, channel)

    def store(self, sums: list[Var], y: Var) -> None:
        """Ends the four sums of a pixel."""
        k, size = self.k, row_words(self.epilogue)
        if isinstance(self.finish, Bound16):
            for i, acc in enumerate(sums):
                row = self.finish.row(k, self.ends, i * size)
                self.finish.store(k, [(acc, y, i)], row, offset(self.ends, i * size))
            return
        if isinstance(self.epilogue, Exact):
            for i, acc in enumerate(sums):
                to = [(acc >> bits_of(self.epilogue), y, const(i))]
                self.finish.by_rule(to, offset(self.ends, i * size))
            return
        assert isinstance(self.epilogue, Affine)
        last = GROUP * (size - 1)
        factors = [k.let("factor", load(self.ends, last + i)) for i in range(GROUP)]
        for i, (acc, factor) in enumerate(zip(sums, factors, strict=True)):
            to = [(acc >> bits_of(self.epilogue), y, const(i))]
            with self.finish.cheap(k, factor, to):
                value = self._value(acc, i, factor)
                k.store(y, i, value)

    def _value(self, acc: Var, i: int, factor: Var) -> Expr:
        assert isinstance(self.finish, AffineFinish)
        if not is_signed(self.finish.epilogue):
            return self.finish.narrow(acc, factor)
        count = row_words(self.epilogue) - 1
        words = [load(self.ends, GROUP * n + i) for n in range(1, count)]
        row = self.finish.row(self.k, [*words, factor])
        return self.finish.by_sign(self.k, acc, bits_of(self.epilogue), row)
