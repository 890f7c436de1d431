"""softmax of int16 over one axis: LiteRT's two tables of 513 points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import invalid, operand, whole_quant
from pybuild.ops.fixed_point.curves16 import curve_between, points_of
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    requantize,
    saturated,
)
from pybuild.records import dataclass

_STEPS = 512
_MOST_VALUES = 1 << 15


@dataclass(frozen=True)
class Softmax16Parameters:
    """Every integer of an int16 softmax. For one row, d = x - max(x):

        v     = max(requantize(d, multiplier, shift) + 32767, -32768)   "double"
        e     = between points 128 apart of `exps` (from v + 32768)     0..32767
        total = sum(e)                                                  int32, > 0
        spare = leading zeros of total in 31 bits
        s     = ((total << spare) + 2^13) >> 14        from 2^16; less 2^16: in `ratios`
        r     = between points of `ratios`, 1 / (1 + s)                 Q0.15
        y     = (e * r + 2^(bits - 1)) >> bits,  bits = 30 - spare
    Source  LiteRT reference SOFTMAX (int16)
    """

    multiplier: int
    shift: int
    exps: tuple[int, ...]
    ratios: tuple[int, ...]


def softmax16_parameters(node: Node, graph: Graph) -> Softmax16Parameters:
    """The parameters of an int16 softmax.

    Errors  BuildError for another output scale than 1/32768, and for long rows
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    if y.scale != 2.0**-15:
        what = f"the output has scale {y.scale:g}"
        raise invalid(node, graph, what, "LiteRT has int16 with 1/32768 here")
    count = x.shape[int(node.attrs["axis"])]
    if count >= _MOST_VALUES:
        raise invalid(node, graph, f"{count} values in a row, at most 32767 in int16")
    scale = x.scale * float(node.attrs["beta"]) / (10.0 / 65535.0)
    if scale >= 1 << 14:
        raise invalid(node, graph, f"the input scale {x.scale:g} is too large")
    multiplier, shift = quantize_multiplier(scale)
    return Softmax16Parameters(
        multiplier, shift, _points(-10.0, 0.0, np.exp), _points(0.0, 1.0, _inverse)
    )


def _inverse(x: Any) -> Any:
    return 1 / (1 + x)


def _points(low: float, high: float, function: Callable[[Any], Any]) -> tuple[int, ...]:
    """The function times 2^15 at 513 points, each moved half of the middle's error.

    Source  LiteRT gen_lut
    """
    at = low + np.arange(2 * _STEPS + 1) * ((high - low) / (2 * _STEPS))
    made = np.asarray(function(at) * 32768)
    return tuple(int(v) for v in points_of(made[::2], made[1::2]))


def softmax16(node: Node, graph: Graph, x: Array) -> Array:
    """The numpy meaning, over the last axis."""
    made = softmax16_parameters(node, graph)
    q = x.astype(np.int64)
    d = requantize(q - q.max(-1, keepdims=True), made.multiplier, made.shift, "double")
    exps = curve_between(made.exps, np.clip(d + 65535, 0, 65535))
    total = exps.sum(-1, keepdims=True)
    spare = 31 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    position = ((total << spare) + (1 << 13)) >> 14
    ratio = curve_between(made.ratios, np.clip(position - (1 << 16), 0, 65535))
    bits = 30 - spare
    whole = (exps * ratio + (np.int64(1) << (bits - 1))) >> bits
    return saturated(whole, graph.tensor(node.output).dtype, 0, 32767)
