"""The greatest magnitude of a float tensor, as far as the graph tells.

    largest(graph, "y")  # y = tanh(x): 1.0; y = x: infinity

What is not a number has no size: NaN may be among them all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor

# of each type what is as large as this may be infinity
_OVERFLOW = {
    DType.FLOAT16: 65504.0, DType.BFLOAT16: 3e38, DType.FLOAT32: 3e38,
    DType.FLOAT64: 1e308,
}  # fmt: skip
_DEEP = 64  # makers that are looked at, one behind the other
_ROUNDED = 1 + 2.0**-10  # more than a rounding adds, in float16 too

Sizes = list[float]


def largest(graph: Graph, name: str) -> float:
    """Return the greatest |element| that a tensor can have; infinity if nothing is
    known."""
    return _largest(graph, name, graph.producers(), {}, _DEEP)


def _largest(
    graph: Graph, name: str, makers: Mapping[str, Node], found: dict[str, float],
    deep: int,
) -> float:  # fmt: skip
    if name not in found:
        found[name] = math.inf
        found[name] = _of(graph, name, makers, found, deep)
    return found[name]


def _of(
    graph: Graph, name: str, makers: Mapping[str, Node], found: dict[str, float],
    deep: int,
) -> float:  # fmt: skip
    x, node = graph.tensor(name), makers.get(name)
    if graph.known(name):
        values = np.abs(graph.constants[name].astype(np.float64))
        return float(np.nanmax(values, initial=0.0))
    if not x.dtype.is_float:
        return 1.0 if x.dtype is DType.BOOL else float(max(-x.dtype.low, x.dtype.high))
    if node is None or deep == 0:
        return math.inf
    sizes = [
        _largest(graph, n, makers, found, deep - 1) if n else 0.0 for n in node.inputs
    ]
    size = _held(node, _of_node(node, graph, sizes))
    return size if size < _OVERFLOW[x.dtype] else math.inf


def _of_node(node: Node, graph: Graph, sizes: Sizes) -> float:
    op = str(node.attrs["fn"]) if node.op == "map" else node.op
    if op in _ENDS:
        return _ENDS[op]
    if op in _ALIKE:
        return max(sizes[:1] if op == "gather" else sizes[op == "where" :]) * _ROUNDED
    if op == "dequantize":
        return _dequantised(graph.tensor(node.inputs[0]))
    return _SIZES[op](sizes) * _ROUNDED if op in _SIZES else math.inf


def _dequantised(x: Tensor) -> float:
    if x.quant is None or x.dtype.is_float:
        return math.inf
    zeros = x.quant.zero_point or (0,)
    most = max(max(abs(x.dtype.low - z), abs(x.dtype.high - z)) for z in zeros)
    return float(most * max(x.quant.scale)) * _ROUNDED


def _held(node: Node, size: float) -> float:
    """Limit it to the range of a clip, or of an activation fused into a layer."""
    low, high = node.attrs.get("clamp", (None, None))
    return max(size if end is None else abs(end) for end in (low, high))


_HALF_TURN = math.pi * _ROUNDED
# the most of a function, whatever its input
_ENDS = {
    "acos": _HALF_TURN, "asin": _HALF_TURN, "atan": _HALF_TURN, "cos": 1.0, "erf": 1.0,
    "logistic": 1.0, "sigmoid": 1.0, "sign": 1.0, "sin": 1.0, "softmax": 1.0,
    "tanh": 1.0,
}  # fmt: skip
# what has no element that is larger than all of its inputs'
_ALIKE = frozenset((
    "abs", "avg_pool2d", "cast", "clip", "concat", "copy", "gather", "max_pool2d",
    "maximum", "mean", "minimum", "negate", "reshape", "slice", "transpose", "where",
))  # fmt: skip
_SIZES: Mapping[str, Callable[[Sizes], float]] = {
    "add": sum, "mul": math.prod, "multiply": math.prod, "sub": sum, "subtract": sum,
}  # fmt: skip
