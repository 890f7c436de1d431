"""Between real numbers and integers: quantize, dequantize."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Bitcast,
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
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import Operands, elementwise_operands, offer, short
from pybuild.kernels.epilogues.int8 import MAGIC, MAGIC_BITS
from pybuild.kernels.math.steps import steps_of
from pybuild.kernels.portable.act import FORWARD, element_loop
from pybuild.ops.base.operator import BYTES, rounding
from pybuild.ops.fixed_point.quant import dequantized, quantized
from pybuild.targets.target import Target

_INFINITY = 0x7F800000  # its bits
_FEWEST = 64  # numbers that are worth a table of thresholds
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
ROUND_AWAY = Intrin(
    "crt_round_away",
    (_X,),
    _step(_REST >= 0.5, _REST <= -0.5),
    _LETS,
    doc="The nearest integer; ties away from zero.",
)
ROUND_EVEN = Intrin(
    "crt_round_even",
    (_X,),
    Bitcast(_X + MAGIC, INT32) - MAGIC_BITS,
    doc="The nearest integer of a number below 2^22; ties to even.",
)


def quantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for quantize from float32.

    Source  the clamp comes before the cast; NaN becomes the zero point
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    _one_scale(node, graph, y)
    operands = elementwise_operands(node, graph)
    if target.float_calls and y.dtype in BYTES and y.size >= _FEWEST:
        return [_by_search(x, y, rounding(node), operands)]
    even = rounding(node) == "even"
    # in integers, but for what is near a tie
    by = steps_of(y.scale) if target.float_calls and y.dtype is DType.INT16 else None
    way = "; without a division, but near ties" if by is not None else ""
    k = Builder(
        f"quantize_{short(y.dtype)}_{'even' if even else 'away'}{'_steps' * bool(by)}",
        told(
            f"y = round(x / scale) + zero point, float32 to {y.dtype.value}; ties "
            f"{'to even' if even else 'away from zero'}; NaN is 0{way}",
            FORWARD,
        ),
    )
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("y_zero", y.zero_point)
    low = k.let("low", cast(y.dtype.low - zero, FLOAT32))
    high = k.let("high", cast(y.dtype.high - zero, FLOAT32))
    rule = ROUND_EVEN if even else ROUND_AWAY

    def rounded(value: Expr) -> Expr:
        steps = k.let("quotient", value / scale)
        known = select(equal(steps, steps), steps, const(0.0, FLOAT32))
        return rule(minimum(maximum(known, low), high))

    bound = by.bind(k) if by is not None else None
    least, most = y.dtype.low - zero, y.dtype.high - zero

    def form(value: Expr) -> Expr:
        if bound is None:
            return cast(rounded(value) + zero, y.dtype)
        steps, unsure = bound.nearest(value)
        with k.when(unsure, rare=True):
            k.assign(steps, rounded(value))
        return cast(minimum(maximum(steps, least), most) + zero, y.dtype)

    element_loop(k, x, y, y.size // (operands.images * operands.bands), form)
    tables = (_scale(y),)
    return [offer(k, operands, tables=tables, cost=20 * y.size)]


def thresholds(scale: float, rule: str, levels: int) -> Array:
    """The least float32 that is rounded to each of 1, 2, .. `levels` steps.

    Source  dividing by a scale and rounding keep the order of numbers, and bits of
            numbers from 0 on are in their order; infinity reaches every level
    """
    level = np.arange(1, levels + 1)
    whole = Tensor("steps", level.shape, DType.INT16, Quant((scale,), (0,)))
    least, most = np.zeros(levels, np.int64), np.full(levels, _INFINITY)
    while (least < most).any():
        middle = (least + most) // 2
        numbers = middle.astype(np.int32).view(np.float32)
        reached = quantized(numbers, whole, rule).astype(np.int64) >= level
        most = np.where(reached, middle, most)
        least = np.where(reached, least, middle + 1)
    return most.astype(np.int32)


def _by_search(x: Tensor, y: Tensor, rule: str, operands: Operands) -> Candidate:
    """How many thresholds a number has reached, whatever its sign: their search takes
    less than one division where that is a function.

    Source  both rules round -x to what is opposite of x
    """
    zero = y.zero_point
    below, above = zero - y.dtype.low, y.dtype.high - zero
    levels = max(below, above)
    first = 1 << levels.bit_length() - 1
    k = Builder(
        f"quantize_{short(y.dtype)}_search{first}",
        told(
            f"y = round(x / scale) + zero point, float32 to {y.dtype.value}, without a "
            "division: how many thresholds |x| has reached, by halving",
            FORWARD,
        ),
    )
    table = k.row("thresholds", operands.after, INT32)
    middle = k.arg("zero", zero)
    least, most = k.arg("below", below), k.arg("above", above)
    rest = k.arg("rest", levels + 1 - first)

    def form(value: Expr) -> Expr:
        bits = k.let("bits", Bitcast(value, INT32))
        size = k.let("size", bits & 0x7FFFFFFF)
        at = k.let("at", 0)
        with k.when(load(table, first - 1) <= size):
            k.assign(at, rest)
        step = first // 2
        while step:
            with k.when(load(table, at + (step - 1)) <= size):
                k.assign(at, at + step)
            step //= 2
        steps = k.let("steps", select(const(_INFINITY) < size, const(0), at))
        down, up = middle - minimum(steps, least), middle + minimum(steps, most)
        return cast(select(bits < 0, down, up), y.dtype)

    element_loop(k, x, y, y.size // (operands.images * operands.bands), form)
    order = "bits of the least float32 of each number of steps"
    made = thresholds(y.scale, rule, levels)
    tables = (Packed("thresholds", made, order=order),)
    return offer(k, operands, tables=tables, cost=60 * y.size)


def dequantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """y = scale * (x - x_zero)"""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    _one_scale(node, graph, x)
    operands = elementwise_operands(node, graph)
    if target.float_calls and x.dtype in BYTES and y.size >= 256:
        return [_by_table(x, y, operands)]
    doc = told(f"y = scale * (x - zero point), {x.dtype.value} to float32", FORWARD)
    k = Builder(f"dequantize_{short(x.dtype)}", doc)
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("x_zero", x.zero_point)
    wide = i64 if x.dtype in (DType.INT32, DType.INT64) else i32

    def form(value: Expr) -> Expr:
        return cast(wide(value) - wide(zero), FLOAT32) * scale

    element_loop(k, x, y, y.size // (operands.images * operands.bands), form)
    return [offer(k, operands, tables=(_scale(x),), cost=8 * y.size)]


def _by_table(x: Tensor, y: Tensor, operands: Operands) -> Candidate:
    """y = table[x - lowest]: no longer than what it is read for."""
    assert x.quant is not None
    doc = told(f"y = table[x], {x.dtype.value} to float32", FORWARD)
    k = Builder(f"dequantize_{short(x.dtype)}_table", doc)
    table = k.row("table", operands.after, FLOAT32)
    count = y.size // (operands.images * operands.bands)
    element_loop(k, x, y, count, lambda q: load(table, i32(q) - x.dtype.low))
    numbers = np.arange(x.dtype.low, x.dtype.high + 1)
    made, order = dequantized(numbers, x.quant), "y of each x, from the lowest"
    values = Packed("table", made, order=order)
    return offer(k, operands, tables=(values,), cost=6 * y.size)


def _scale(tensor: Tensor) -> Packed:
    return Packed("scale", np.asarray([tensor.scale], np.float32), order="one number")


def _one_scale(node: Node, graph: Graph, tensor: Tensor) -> None:
    """Checks that a computed tensor has a single scale.

    Errors  BuildError for a computed tensor with a scale per channel
    """
    assert tensor.quant is not None
    if len(tensor.quant.scale) > 1 or len(tensor.quant.zero_point) > 1:
        what = f"'{tensor.name}' is computed, but has a scale per channel"
        raise BuildError(graph.where(node), what, "only constants may have them")
