"""The epilogue of a layer for as many channels as there are lanes, inside a kernel being
written: the cheap form that is proven, or the rule itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import Const, Expr, Intrin, Var, offset
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

    def numbers(self, k: Builder, ends: Expr, n: Expr) -> list[Var]:
        """The numbers of these channels' end, for any number of pixels."""
        epilogue = self.epilogue
        count = 2 if isinstance(epilogue, Affine) else epilogue.given
        places = (offset(ends, self.channels * (1 + i)) for i in range(count))
        return [k.let("number", self.v.WORDS(at, n)) for at in places]

    def narrow(self, sums: Expr, numbers: list[Var], n: Expr) -> Expr:
        """The values of sums, as bytes."""
        v, bound = self.v, self.values
        value = self._ended(sums, numbers, n)
        if "low" in bound:
            value = v.HOLD(value, bound["low"], bound["high"], n)
        return value

    def _ended(self, sums: Expr, numbers: list[Var], n: Expr) -> Expr:
        v, bound, epilogue = self.v, self.values, self.epilogue
        if isinstance(epilogue, Affine):
            value = v.HIGH(v.LINE(sums, _FACTOR, numbers[0], n), numbers[1], n)
            if "base" in bound:
                value = v.PLUS(value, bound["base"], n)
            return v.SHIFTED(value, bound["shift"], n)
        rules: Mapping[str, Intrin] = {
            "double": v.TWICE, "single": v.ONCE, "away": v.AWAY,
        }  # fmt: skip
        if epilogue.lifted:
            sums = v.LIFT(sums, numbers[2], n)
        value = rules[epilogue.rule](sums, *numbers[:2], n)
        return v.RAISED(value, bound["y_zero"], n)
