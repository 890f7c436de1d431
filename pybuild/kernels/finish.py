"""How a layer ends: from accumulator to stored value, int8 or float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Packed
from pybuild.kernels.requant import Requant, packed, scaler
from pybuild.loop import FLOAT32, Expr, Operand, i32, load, maximum, minimum


class BoundFinish(Protocol):
    """A finish inside a kernel being written."""

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        """The stored value of an accumulator of that output channel."""


class Finish(Protocol):
    """One layer's end: its tables, and the code that uses them."""

    @property
    def key(self) -> str: ...

    def tables(self) -> tuple[Packed, ...]: ...

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish: ...


@dataclass(frozen=True)
class Int8Finish:
    """clamp(requant(acc) + zero point)"""

    rule: Requant

    @property
    def key(self) -> str:
        return self.rule.key

    def tables(self) -> tuple[Packed, ...]:
        return packed(self.rule)

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish:
        return scaler(k, self.rule, pointer)


@dataclass(frozen=True)
class FloatClamp:
    """min(max(acc, low), high); a missing end costs nothing."""

    low: float | None = None
    high: float | None = None

    @property
    def key(self) -> str:
        ends = ("low" if self.low is not None else "",
                "high" if self.high is not None else "")  # fmt: skip
        return "".join(ends)

    def tables(self) -> tuple[Packed, ...]:
        ends = [e for e in (self.low, self.high) if e is not None]
        return (Packed("limits", np.asarray(ends, np.float32)),) if ends else ()

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish:
        if self.low is None and self.high is None:
            return _Clamped(None, None)
        limits = k.row("limits", i32(pointer), FLOAT32)
        low = k.let("low", load(limits, 0)) if self.low is not None else None
        high = None
        if self.high is not None:
            high = k.let("high", load(limits, 0 if low is None else 1))
        return _Clamped(low, high)


@dataclass(frozen=True)
class _Clamped:
    low: Expr | None
    high: Expr | None

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        if self.low is not None:
            acc = maximum(acc, self.low)
        return acc if self.high is None else minimum(acc, self.high)
