"""Between real numbers and integers on cores with an FPU: eight elements in a turn, by
its instructions; others, and what has no such form, as kernels/portable/convert.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    Expr,
    cast,
    const,
    i32,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import (
    KEPT,
    MULHI_ADD_ROUND,
    SATURATE8,
    SATURATE16,
)
from pybuild.kernels.base.operands import Operands, elementwise_operands, offer, short
from pybuild.kernels.base.reals import (
    QUOTIENT4,
    REAL4,
    STEPS_AWAY4,
    STEPS_EVEN4,
    WHOLE,
    WHOLE_EVEN,
    reals_at,
)
from pybuild.kernels.base.vectors import ADD4, words_at
from pybuild.kernels.operators import tables
from pybuild.kernels.portable import convert
from pybuild.kernels.portable.act import FORWARD
from pybuild.ops.base.operator import rounding
from pybuild.targets.target import Target

TURN, LANES = 8, 4
FRACTION = 8  # bits of steps, of which the high half of a product makes integers
_LEAST_SCALE = 2.0 ** (FRACTION - 126)  # below it a part of it has fewer bits
_SMALL = (DType.INT8, DType.UINT8, DType.INT16)
_Form = Callable[[Expr], Expr]


def quantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for quantize."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if x.dtype is not FLOAT32:
        return tables.unary(node, graph, target)
    operands = elementwise_operands(node, graph)
    count = _count(y, operands)
    plain = convert.quantize(node, graph, target)
    if y.dtype not in _SMALL or target.float_calls:
        return plain
    even = rounding(node) == "even"
    if "mve" in target.features and count >= LANES:
        return [_vectors(y, operands, even)]
    usual = even or bool(_LEAST_SCALE <= np.float32(y.scale) < np.inf)
    if "dsp" in target.features and count >= TURN and usual:
        return [_singles(y, operands, even)]
    return plain


def _told(dtype: DType, even: bool) -> str:
    ties = "to even" if even else "away from zero"
    return told(
        f"y = round(x / scale) + zero point, float32 to {dtype.value}; ties {ties}; "
        "NaN is 0",
        FORWARD,
    )


def _singles(y: Tensor, operands: Operands, even: bool) -> Candidate:
    """Converts one value after the other, clamped by saturation.

    Source  ties away from zero: of steps in 1/256, v, without what is behind,
            (v * (2^24 + 1) + 2^31) / 2^32 is the nearest integer: the 1 moves ties,
            and nothing else, away from zero while |v| is at most 2^24; beyond, all
            is held
    """
    count = _count(y, operands)
    # int16 has fewer steps on a side of its zero point, and more on the other
    uneven = even and y.dtype is DType.INT16 and y.zero_point != 0
    name = f"quantize_{short(y.dtype)}_{'even' if even else 'away'}_fpu"
    name += "_zero" * uneven
    k = Builder(name + _rest_key(count, TURN), _told(y.dtype, even))
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    lift = 128 if y.dtype is DType.UINT8 else 0
    zero = k.arg("y_zero", y.zero_point - lift)
    saturate = SATURATE16 if y.dtype is DType.INT16 else SATURATE8
    factor = k.let("factor", KEPT(const((1 << 32 - FRACTION) + 1)))
    if uneven:
        low = k.arg("low", y.dtype.low - y.zero_point)
        high = k.arg("high", y.dtype.high - y.zero_point)

    def form(value: Expr) -> Expr:
        if uneven:
            steps = minimum(maximum(WHOLE_EVEN(value / scale), low), high) + zero
            return cast(steps, y.dtype)
        if even:
            steps = SATURATE16(WHOLE_EVEN(value / scale)) + zero
        else:
            steps = MULHI_ADD_ROUND(WHOLE(value / scale), factor, zero)
        return cast(saturate(steps) + lift if lift else saturate(steps), y.dtype)

    _in_turns(k, FLOAT32, y.dtype, count, form)
    part = np.float32(y.scale) / np.float32(1 if even else 1 << FRACTION)
    return _offered(k, operands, part, 8 * y.size)


def _vectors(y: Tensor, operands: Operands, even: bool) -> Candidate:
    """Converts four values in a vector: a division of each, then three operations on
    all."""
    count = _count(y, operands)
    name = f"quantize_{short(y.dtype)}_{'even' if even else 'away'}_mve"
    k = Builder(name + _rest_key(count, LANES), _told(y.dtype, even))
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("y_zero", y.zero_point)
    low = k.arg("low", y.dtype.low - y.zero_point)
    high = k.arg("high", y.dtype.high - y.zero_point)
    steps = STEPS_EVEN4 if even else STEPS_AWAY4

    def four(at: Expr) -> Expr:
        return steps(QUOTIENT4(reals_at(at), scale), low, high, zero)

    # of bytes the low ones of words, whatever their sign
    elem = DType.INT16 if y.dtype is DType.INT16 else INT8
    _in_vectors(k, FLOAT32, elem, count, four)
    return _offered(k, operands, np.float32(y.scale), 3 * y.size)


def dequantize(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for dequantize."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    count = _count(y, operands)
    plain = convert.dequantize(node, graph, target)
    if x.dtype not in _SMALL or target.float_calls:
        return plain
    doc = told(f"y = scale * (x - zero point), {x.dtype.value} to float32", FORWARD)
    vectors = "mve" in target.features and count >= LANES
    if vectors and x.dtype is not DType.UINT8:
        k = Builder(f"dequantize_{short(x.dtype)}_mve{_rest_key(count, LANES)}", doc)
        scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
        less = k.arg("x_less", -x.zero_point)

        def of_words(at: Expr) -> Expr:
            return REAL4(ADD4(words_at(at), less), scale)

        _in_vectors(k, x.dtype, FLOAT32, count, of_words)
        return [_offered(k, operands, np.float32(x.scale), 2 * y.size)]
    if "dsp" not in target.features or count < TURN:
        return plain
    k = Builder(f"dequantize_{short(x.dtype)}_fpu{_rest_key(count, TURN)}", doc)
    scale = k.let("scale", load(k.row("scales", operands.after, FLOAT32)))
    zero = k.arg("x_zero", x.zero_point)

    def of_one(q: Expr) -> Expr:
        return cast(i32(q) - zero, FLOAT32) * scale

    _in_turns(k, x.dtype, FLOAT32, count, of_one)
    return [_offered(k, operands, np.float32(x.scale), 7 * y.size)]


def _count(y: Tensor, operands: Operands) -> int:
    """Elements of a call."""
    return y.size // (operands.images * operands.bands)


def _rest_key(count: int, step: int) -> str:
    return "_rest" if count % step else ""


def _in_turns(k: Builder, given: DType, made: DType, count: int, form: _Form) -> None:
    """y[i] = form(x[i]), eight in a turn, then what is left."""
    to, source = k.row("y", 0, made, writable=True), k.row("x", 1, given)
    size = k.arg("count", count)
    y, x = k.let("to", to), k.let("from", source)
    end = size - size % TURN if count % TURN else size
    with k.loop("i", end, 0, TURN):
        for at in range(TURN):
            k.store(y, at, form(load(x, at)))
        k.assign(y, offset(y, TURN))
        k.assign(x, offset(x, TURN))
    if count % TURN:
        with k.loop("i", size, k.let("end", end)) as i:
            k.store(to, i, form(load(source, i)))


def _in_vectors(k: Builder, given: DType, made: DType, count: int, form: _Form) -> None:
    """Converts four values in a vector; the last vector reaches back."""
    to, source = k.row("y", 0, made, writable=True), k.row("x", 1, given)
    size = k.arg("count", count)
    y, x = k.let("to", to), k.let("from", source)
    end = size - size % LANES if count % LANES else size
    with k.loop("i", end, 0, LANES):
        k.store(y, 0, form(x))
        k.assign(y, offset(y, LANES))
        k.assign(x, offset(x, LANES))
    if count % LANES:
        last = k.let("last", size - LANES)
        k.store(to, last, form(offset(source, last)))


def _offered(k: Builder, operands: Operands, scale: np.float32, cost: int) -> Candidate:
    table = Packed("scale", np.asarray([scale], np.float32), order="one number")
    return offer(k, operands, tables=(table,), cost=cost)
