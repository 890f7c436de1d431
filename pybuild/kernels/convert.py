"""Between real numbers and integers: quantize, dequantize."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.graph import Graph, Node, Tensor
from pybuild.kernels.act import element_loop, unary
from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Candidate, Packed
from pybuild.kernels.operands import elementwise_operands, offer, short
from pybuild.loop import (
    FLOAT32,
    INT32,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    equal,
    i32,
    i64,
    load,
    maximum,
    minimum,
    select,
)
from pybuild.ops.operator import rounding
from pybuild.targets.target import Target

_X, _WHOLE, _REST = (Var(n, FLOAT32) for n in ("x", "whole", "rest"))
_N = Var("n", INT32)
_LETS = (
    (_N, i32(_X)),
    (_WHOLE, cast(_N, FLOAT32)),
    (_REST, _X - _WHOLE),
)


def _step(up: Expr, down: Expr) -> Expr:
    one, none = const(1), const(0)
    return _N + select(up, one, none) - select(down, one, none)


# float to int32: x - trunc(x) is exact, so that no tie is missed
ROUND_AWAY = Intrin("crt_round_away", (_X,), _step(_REST >= 0.5, _REST <= -0.5), _LETS)
_TIE, _BELOW = Var("tie", FLOAT32), Var("below", FLOAT32)
ROUND_EVEN = Intrin(
    "crt_round_even",
    (_X,),
    _step(_REST > _TIE, _REST < _BELOW),
    (
        *_LETS,
        (  # what a rest must pass: a tie passes where n is odd
            _TIE,
            select(
                equal(_N & 1, 0),
                const(0.5, FLOAT32),
                const(float(np.nextafter(np.float32(0.5), np.float32(0))), FLOAT32),
            ),
        ),
        (_BELOW, const(0.0, FLOAT32) - _TIE),
    ),
)


def quantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for quantize: by table from bytes, by rounding from float32.

    Source  the clamp comes before the cast; NaN becomes the zero point
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if x.dtype is not FLOAT32:
        return unary(node, graph, target)
    _one_scale(node, graph, y)
    operands = elementwise_operands(node, graph)
    even = rounding(node) == "even"
    k = Builder(f"quantize_{short(y.dtype)}_{'even' if even else 'away'}")
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("y_zero", y.zero_point)
    low = k.let("low", cast(y.dtype.low - zero, FLOAT32))
    high = k.let("high", cast(y.dtype.high - zero, FLOAT32))
    rule = ROUND_EVEN if even else ROUND_AWAY

    def form(value: Expr) -> Expr:
        steps = k.let("steps", value / scale)
        known = select(equal(steps, steps), steps, const(0.0, FLOAT32))
        held = minimum(maximum(known, low), high)
        return cast(rule(held) + zero, y.dtype)

    element_loop(k, x, y, y.size // (operands.images * operands.bands), form)
    tables = (_scale(y),)
    return [offer(k, operands, tables=tables, cost=20 * y.size)]


def dequantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = scale * (x - x_zero)"""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    _one_scale(node, graph, x)
    operands = elementwise_operands(node, graph)
    k = Builder(f"dequantize_{short(x.dtype)}")
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("x_zero", x.zero_point)
    wide = i64 if x.dtype in (DType.INT32, DType.INT64) else i32

    def form(value: Expr) -> Expr:
        return cast(wide(value) - wide(zero), FLOAT32) * scale

    element_loop(k, x, y, y.size // (operands.images * operands.bands), form)
    return [offer(k, operands, tables=(_scale(x),), cost=8 * y.size)]


def _scale(tensor: Tensor) -> Packed:
    return Packed("scale", np.asarray([tensor.scale], np.float32))


def _one_scale(node: Node, graph: Graph, tensor: Tensor) -> None:
    """Errors  BuildError for a computed tensor with a scale per channel"""
    assert tensor.quant is not None
    if len(tensor.quant.scale) > 1 or len(tensor.quant.zero_point) > 1:
        what = f"'{tensor.name}' is computed, but has a scale per channel"
        raise BuildError(graph.where(node), what, "only constants may have them")
