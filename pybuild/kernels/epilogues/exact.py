"""The epilogue by the layer's own rounding rule: for channels without a cheaper form
that is proven equal. Such a channel needs only a row of a table. Knows no layer.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.epilogues.int8 import ScaledFinish, int8_finish
from pybuild.kernels.epilogues.requantise import Requant
from pybuild.ops.conv import ConvParameters
from pybuild.records import dataclass


@dataclass(frozen=True)
class Exact:
    """clamp(rule(acc + bias) + zero point)

    rows  [channel, word] the rule's numbers: the multiplier, the shift and, if some
          channel has one, the shift before it; "even": the bits of the scale
    """

    rounding: str
    rows: Ints
    low: int
    high: int
    zero_point: int
    given: int

    @property
    def size(self) -> int:
        """Words of a row of the table."""
        return 1 + self.given

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        return f"exact_{self.rounding}" + ("_left" if self.given == 3 else "")

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        return f"requantises by the rule itself, rounding {self.rounding}"

    @property
    def row(self) -> str:
        """`columns` for readers of the C."""
        if self.rounding == "even":
            return "bias, bits of the scale"
        return "bias, multiplier, shift" + ", shift before it" * (self.given == 3)

    def columns(self, bias: Array) -> Ints:
        """Return a row for each channel; bias: the value added to its sum."""
        return np.concatenate([bias.astype(np.int64)[:, None], self.rows], axis=1)

    def table(self, bias: Array, order: Array | None = None) -> Packed:
        """Return the rows of all channels, or of those in `order`."""
        rows = self.columns(bias)
        rows = rows if order is None else rows[order]
        lie = f"{EACH}: {self.row}"
        return Packed("epilogue", rows.astype(np.int32), order=lie)


def exact(made: ConvParameters, channels: int) -> Exact:
    """Return the epilogue that every int8 layer has."""
    rule = int8_finish(made)
    if isinstance(rule, ScaledFinish):
        bits = np.asarray(rule.scales, np.float32).view(np.int32)
        factors = bits.astype(np.int64)[:, None]
    else:
        factors = _factors(rule.rule)
    rows = np.broadcast_to(factors, (channels, factors.shape[1]))
    return Exact(
        made.rounding, rows, made.low, made.high, made.y_zero, factors.shape[1]
    )


def _factors(rule: Requant) -> Ints:
    columns = [rule.multipliers, rule.shifts]
    if rule.left is not None:
        columns.append(rule.left)
    return np.asarray(columns, np.int64).T
