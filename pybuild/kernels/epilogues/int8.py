"""The epilogue of a layer: from an accumulator to a stored value, int8 or float32."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Bitcast,
    Expr,
    Intrin,
    Operand,
    PointerType,
    Var,
    cast,
    i32,
    load,
    maximum,
    minimum,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.epilogues.requantise import Requant, packed, requant, scaler
from pybuild.ops.conv import ConvParameters
from pybuild.records import dataclass


class BoundFinish(Protocol):
    """An epilogue inside a kernel being written."""

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        """Return the stored value of an accumulator of that output channel."""


class Finish(Protocol):
    """One layer's epilogue: its tables, and the code that uses them."""

    @property
    def key(self) -> str: ...

    @property
    def words(self) -> str:
        """`key` for readers of the C."""

    def tables(self) -> tuple[Packed, ...]: ...

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish: ...


@dataclass(frozen=True)
class Int8Finish:
    """clamp(requant(acc) + zero point)"""

    rule: Requant

    @property
    def key(self) -> str:
        return self.rule.key

    @property
    def words(self) -> str:
        return self.rule.words

    def tables(self) -> tuple[Packed, ...]:
        return packed(self.rule)

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish:
        return scaler(k, self.rule, pointer)


@dataclass(frozen=True)
class ScaledFinish:
    """clamp(round(float32(acc) * scale) + zero point), ties to even, in float32.

    Source  ONNX Runtime QLinearConv; IEEE single precision on every target
    """

    scales: tuple[float, ...]
    low: int
    high: int
    zero_point: int

    @property
    def key(self) -> str:
        return "channel_scaled" if len(set(self.scales)) > 1 else "tensor_scaled"

    @property
    def words(self) -> str:
        whose = "each channel" if len(set(self.scales)) > 1 else "the whole layer"
        return f"requantises by one float32 product, ties to even; scale of {whose}"

    def tables(self) -> tuple[Packed, ...]:
        scales = self.scales if len(set(self.scales)) > 1 else self.scales[:1]
        return (Packed("scales", np.asarray(scales, np.float32), order=EACH),)

    def bind(self, k: Builder, pointer: Expr) -> BoundScaled:
        scales: Expr = k.row("scales", i32(pointer), FLOAT32)
        if len(set(self.scales)) == 1:
            scales = k.let("scale", load(scales))
        low = k.let("low", cast(k.arg("lowest", self.low - self.zero_point), FLOAT32))
        high = k.let("high", cast(k.arg("most", self.high - self.zero_point), FLOAT32))
        return BoundScaled(scales, low, high, k.arg("y_zero", self.zero_point))


_ACC = Var("acc", INT32)
_FACTOR, _LOW, _HIGH = (Var(n, FLOAT32) for n in ("scale", "low", "high"))
_VALUE = Var("value", FLOAT32)
# 1.5 * 2^23: adding it leaves the integer, rounded to even, in the lowest bits
MAGIC, MAGIC_BITS = 12582912.0, 0x4B400000
SCALE_ROUND = Intrin(
    "crt_scale_round",
    (_ACC, _FACTOR, _LOW, _HIGH),
    Bitcast(_VALUE + MAGIC, INT32) - MAGIC_BITS,
    ((_VALUE, minimum(maximum(cast(_ACC, FLOAT32) * _FACTOR, _LOW), _HIGH)),),
    doc="acc * scale in float32, held within low..high, to the nearest, ties to even.",
)


@dataclass(frozen=True)
class BoundScaled:
    scales: Expr
    low: Expr
    high: Expr
    zero_point: Expr

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        scale = self.scales
        if isinstance(scale.type, PointerType):
            scale = load(scale, channel)
        return scaled(acc, scale, self.low, self.high, self.zero_point)


def carried(bound: Any) -> dict[str, Expr]:
    """Return the values of a bound epilogue by field name, to pass them to a
    function."""
    values = {f.name: getattr(bound, f.name) for f in fields(bound)}
    kinds = (Intrin, DType, type(None))
    return {n: v for n, v in values.items() if not isinstance(v, kinds)}


def scaled(acc: Expr, scale: Expr, low: Expr, high: Expr, zero_point: Expr) -> Expr:
    """Return the value of an accumulator; low, high: limits before the zero point, in
    float32."""
    return cast(SCALE_ROUND(acc, scale, low, high) + zero_point, INT8)


@dataclass(frozen=True)
class FloatClamp:
    """min(max(acc, low), high); a missing limit costs nothing."""

    low: float | None = None
    high: float | None = None

    @property
    def key(self) -> str:
        ends = ("low" if self.low is not None else "",
                "high" if self.high is not None else "")  # fmt: skip
        return "".join(ends)

    @property
    def words(self) -> str:
        """`key` for readers of the C; "": the sum is stored as it is."""
        ends = [w for w, e in (("least", self.low), ("greatest", self.high))
                if e is not None]  # fmt: skip
        return f"clamped to the {' and the '.join(ends)} value" if ends else ""

    def tables(self) -> tuple[Packed, ...]:
        ends = [e for e in (self.low, self.high) if e is not None]
        limits = Packed("limits", np.asarray(ends, np.float32), order="least, greatest")
        return (limits,) if ends else ()

    def bind(self, k: Builder, pointer: Expr) -> BoundFinish:
        return _Clamped(*self.bind_ends(k, pointer))

    def bind_ends(self, k: Builder, pointer: Expr) -> tuple[Var | None, Var | None]:
        """Bind the least and the greatest value, if they exist."""
        if self.low is None and self.high is None:
            return None, None
        limits = k.row("limits", i32(pointer), FLOAT32)
        low = k.let("low", load(limits, 0)) if self.low is not None else None
        high = None
        if self.high is not None:
            high = k.let("high", load(limits, 0 if low is None else 1))
        return low, high


@dataclass(frozen=True)
class _Clamped:
    low: Expr | None
    high: Expr | None

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        if self.low is not None:
            acc = maximum(acc, self.low)
        return acc if self.high is None else minimum(acc, self.high)


def int8_finish(
    made: ConvParameters, dtype: DType = DType.INT8
) -> Int8Finish | ScaledFinish:
    """Return the epilogue of a layer whose sums are int32."""
    if made.rounding == "even":
        return ScaledFinish(made.scales, made.low, made.high, made.y_zero)
    limits = (made.low, made.high)
    mult, bits = np.asarray(made.multipliers), np.asarray(made.shifts)
    return Int8Finish(requant(made.rounding, mult, bits, limits, made.y_zero, dtype))
