"""The epilogue of a layer without one: its int32 sums are stored as they are. Knows no
layer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.ir.loop import Expr, Operand, Var
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.epilogues.exact import Exact
from pybuild.ops.conv import ConvParameters


class Bare(Exact):
    """y = acc, of layers without a bias; both a Finish and an Exact without a table."""

    @property
    def size(self) -> int:
        """Words of a row of the table."""
        return 0

    @property
    def key(self) -> str:
        return "sums"

    @property
    def words(self) -> str:
        return "none: the int32 sums as they are"

    def tables(self) -> tuple[Packed, ...]:
        """Return no tables."""
        return ()

    def bind(self, k: Builder, pointer: Expr) -> BareEnd:
        return BareEnd(k)


def bare(channels: int) -> Bare:
    """Return the epilogue for so many output channels."""
    return Bare("none", np.zeros((channels, 0), np.int64), 0, 0, 0, 0)


def bare_parameters() -> ConvParameters:
    """Return the parameters of a layer of plain sums, without zero points."""
    return ConvParameters("none", (), (), (), 0, 0, 0, 0)


class BareEnd:
    """A Bare inside a kernel being written."""

    def __init__(self, k: Builder) -> None:
        self.k = k
        self.values: dict[str, Expr] = {}

    def inside(self, params: Mapping[str, Var]) -> BareEnd:
        """Return the same inside a part of the kernel."""
        return self

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        """Return the stored value of an accumulator."""
        return acc

    def store(self, y: Expr, at: Operand, acc: Expr, row: Expr) -> None:
        """Store a sum; it has no table row."""
        self.k.store(y, at, acc)
