"""The epilogue of a layer for as many channels as there are lanes, inside a kernel
being written: the cheap form that is proven, or the rule itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import Expr, Intrin, Var, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.rvv.vectors import Vectors
from pybuild.kernels.wide.epilogue import columns

_FACTOR = 256  # of a sum, before the offset of an Affine is added


def is_served(epilogue: Epilogue) -> bool:
    """True if the operations can compute it: all but a product of floats, which a core
    without floats in vectors has not."""
    return isinstance(epilogue, Affine) or epilogue.rule != "even"


def table(epilogue: Epilogue, bias: Array) -> Packed:
    """What sums begin with, and the numbers of their end: rows of all channels."""
    lie = f"rows of all output channels: what a sum begins with, {_row(epilogue)}"
    return Packed.later("epilogue", lie, _arranged, epilogue, bias)


def _arranged(epilogue: Epilogue, bias: Array) -> Ints:
    rows = [bias.astype(np.int64)[:, None], columns(epilogue)]
    return np.ascontiguousarray(np.concatenate(rows, axis=1).T).astype(np.int32)


def _row(epilogue: Epilogue) -> str:
    """The numbers of an end, for readers of the C."""
    if isinstance(epilogue, Affine):
        return "an offset, a factor"
    lift = ", the shift to the left before" if epilogue.lifted else ""
    return f"a factor, minus the shift to the right{lift}"


class Finish:
    """The bound values of an epilogue inside a kernel being written.

    channels  of the layer: elements of a row of the table
    """

    def __init__(
        self, k: Builder, v: Vectors, epilogue: Epilogue, channels: Expr
    ) -> None:
        self.v, self.epilogue, self.channels = v, epilogue, channels
        given = {"low": epilogue.low, "high": epilogue.high}
        if not epilogue.clamped:
            given = {}
        if isinstance(epilogue, Affine):
            given["shift"] = epilogue.shift
            given |= {"base": epilogue.base} if epilogue.base else {}
        else:
            given["y_zero"] = epilogue.y_zero
        self.values: Mapping[str, Expr] = {n: k.arg(n, g) for n, g in given.items()}

    def start(self, ends: Expr, n: Expr) -> Expr:
        """What the sums of some channels begin with; `ends`: their first column."""
        return self.v.WORDS(ends, n)

    def narrow(
        self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr
    ) -> list[Expr]:
        """The values of the sums of some pixels, as bytes. Each number of the table is
        used for all of them before the next is loaded: registers hold one or two."""
        v, bound = self.v, self.values
        if isinstance(self.epilogue, Affine):
            self._scale(k, sums, ends, n)
            values: list[Expr] = [v.SHIFTED(x, bound["shift"], n) for x in sums]
        else:
            self._by_rule(k, sums, ends, n)
            values = [v.RAISED(total, bound["y_zero"], n) for total in sums]
        if "low" in bound:
            low, high = bound["low"], bound["high"]
            values = [v.HOLD(value, low, high, n) for value in values]
        return values

    def _number(self, k: Builder, ends: Expr, row: int, n: Expr) -> Var:
        """A row of the table."""
        at = offset(ends, self.channels * row)
        return k.let("number", self.v.WORDS(at, n))

    def _scale(self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr) -> None:
        v, offsets = self.v, self._number(k, ends, 1, n)
        for total in sums:
            k.assign(total, v.LINE(total, _FACTOR, offsets, n))
        factors = self._number(k, ends, 2, n)
        for total in sums:
            k.assign(total, v.HIGH(total, factors, n))
            if "base" in self.values:
                k.assign(total, v.PLUS(total, self.values["base"], n))

    def _by_rule(self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr) -> None:
        v, epilogue = self.v, self.epilogue
        assert not isinstance(epilogue, Affine)
        rules: Mapping[str, Intrin] = {
            "double": v.TWICE, "single": v.ONCE, "away": v.AWAY,
        }  # fmt: skip
        if epilogue.lifted:
            lift = self._number(k, ends, 3, n)
            for total in sums:
                k.assign(total, v.LIFT(total, lift, n))
        factors, places = (self._number(k, ends, row, n) for row in (1, 2))
        for total in sums:
            k.assign(total, rules[epilogue.rule](total, factors, places, n))
