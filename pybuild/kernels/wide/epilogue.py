"""The epilogue of a layer for sixteen channels at once, inside a kernel being written:
the cheap form that is proven, or the rule itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.loop import Expr, Var
from pybuild.kernels.base import wide_vectors as v
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.mve.epilogue import Epilogue

_RULES = {"double": v.TWICE, "single": v.ONCE, "away": v.AWAY}


def columns(epilogue: Epilogue) -> Ints:
    """The epilogue numbers of each channel, without its bias: [channel, word]."""
    if isinstance(epilogue, Affine):
        return epilogue.columns(np.zeros(len(epilogue.offsets), np.int32))
    return epilogue.factors


def size_of(epilogue: Epilogue) -> int:
    """Vectors of a block's table: what its sums begin with, and their end."""
    return 1 + (2 if isinstance(epilogue, Affine) else epilogue.given)


def table(epilogue: Epilogue, starts: Array, order: Array) -> Array:
    """The start values and epilogue numbers of each sixteen channels.

    Shapes  starts [channel]; order: channels as they are computed, -1: the last once
            more; returns int32[blocks, words, 16]
    """
    rows = np.concatenate([starts.astype(np.int64)[:, None], columns(epilogue)], axis=1)
    found = rows[order].reshape(-1, v.LANES, rows.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(found).astype(np.int32)


class Finish:
    """The bound values of an epilogue inside a kernel being written."""

    def __init__(self, k: Builder, epilogue: Epilogue) -> None:
        self.epilogue = epilogue
        if isinstance(epilogue, Affine):
            given = {"base": epilogue.base, "low": epilogue.low, "high": epilogue.high}
            given["shift"] = epilogue.shift
        else:
            given = {"lowest": epilogue.low - epilogue.y_zero}
            given |= {
                "most": epilogue.high - epilogue.y_zero,
                "y_zero": epilogue.y_zero,
            }
        self.values: Mapping[str, Expr] = {n: k.arg(n, g) for n, g in given.items()}

    def inside(self, params: Mapping[str, Var]) -> Finish:
        """The same in a part that was given `values`."""
        inner = Finish.__new__(Finish)
        inner.epilogue = self.epilogue
        inner.values = {n: params.get(n, value) for n, value in self.values.items()}
        return inner

    def narrow(self, sums: Expr, ends: Expr) -> Expr:
        """The values of sixteen sums; `ends`: the table of these channels."""
        bound, epilogue = self.values, self.epilogue
        given = [
            v.words_at(ends, v.LANES * word) for word in range(1, size_of(epilogue))
        ]
        if isinstance(epilogue, Affine):
            value = v.HIGH(v.SCALE(sums, given[0]), given[1])
            value = v.ADD(value, bound["base"])
            return v.NARROW(value, bound["shift"], bound["low"], bound["high"])
        if epilogue.rule == "even":
            value = v.SCALED(sums, given[0])
        else:
            if epilogue.lifted:
                sums = v.LIFT(sums, given.pop())
            value = _RULES[epilogue.rule](sums, *given)
        return v.HOLD(value, *(bound[n] for n in ("lowest", "most", "y_zero")))
