"""The epilogue of four channels side by side, for int8 and int16. Knows no layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    """The key that distinguishes the code of two layers."""
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
    """The ends of four channels inside a kernel being written; `ends`: where the table
    of the first of those that are summed together is."""

    def __init__(
        self,
        k: Builder,
        epilogue: FourEnds,
        finish: AffineFinish | Bound16,
        ends: Var,
    ) -> None:
        self.k, self.epilogue, self.finish, self.ends = k, epilogue, finish, ends

    def step(self, channels: int) -> None:
        """Goes on to those so many channels behind."""
        size = 1 if isinstance(self.epilogue, Affine) else row_words(self.epilogue)
        self.k.assign(self.ends, offset(self.ends, size * channels))

    def start(self, channel: int) -> Expr:
        """The start values of its sums."""
        if isinstance(self.finish, Bound16):
            return self.finish.start(self.ends, channel * row_words(self.epilogue))
        if isinstance(self.epilogue, Exact):
            return const(0)
        return load(self.ends, channel)

    def store(self, channel: int, sums: Sequence[Var], y: Var, apart: Expr) -> None:
        """Ends the sums of a channel, of pixels that are so far apart."""
        k, size = self.k, row_words(self.epilogue)
        at = channel * size
        places = [apart * i + channel for i in range(len(sums))]
        if isinstance(self.finish, Bound16):
            to = [(acc, y, place) for acc, place in zip(sums, places, strict=True)]
            row = self.finish.row(k, self.ends, at)
            self.finish.store(k, to, row, offset(self.ends, at))
            return
        bits = bits_of(self.epilogue)
        each = zip(sums, places, strict=True)
        exact = [(acc >> bits, y, place) for acc, place in each]
        if isinstance(self.epilogue, Exact):
            self.finish.by_rule(exact, offset(self.ends, at))
            return
        assert isinstance(self.epilogue, Affine)
        factor = k.let("factor", load(self.ends, GROUP * (size - 1) + channel))
        with self.finish.cheap(k, factor, exact):
            value = self._value(channel, factor)
            for acc, place in zip(sums, places, strict=True):
                k.store(y, place, value(acc))

    def _value(self, channel: int, factor: Var) -> Callable[[Var], Expr]:
        """The function that finishes a sum of the channel."""
        k, finish = self.k, self.finish
        assert isinstance(finish, AffineFinish)
        if not is_signed(finish.epilogue):
            return lambda acc: finish.narrow(acc, factor)
        count = row_words(self.epilogue) - 1
        at = [GROUP * n + channel for n in range(1, count)]
        words = [k.let("end", load(self.ends, i)) for i in at]
        row = finish.row(k, [*words, factor])
        bits = bits_of(self.epilogue)
        return lambda acc: finish.by_sign(k, acc, bits, row)
