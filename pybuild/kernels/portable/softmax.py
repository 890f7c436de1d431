"""softmax over one axis: int8 in fixed point by table, float32 by exp."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    Expr,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import MULHI, MULHI_ADD_ROUND, SATURATE8
from pybuild.kernels.base.operands import Operands, offer, whole_operands
from pybuild.kernels.math.exponential import EXP
from pybuild.kernels.math.reciprocal import RECIPROCAL, SPARE_BITS
from pybuild.kernels.portable.softmax16 import most_by_words, shares16, tables16
from pybuild.ops.int16.softmax16 import softmax16_parameters
from pybuild.ops.softmax import SoftmaxParameters, softmax8, softmax_parameters
from pybuild.records import dataclass
from pybuild.targets.target import Target

_MOST = 2**31 - 1
FARTHEST = 255  # how far apart two int8 may be
_FEW = 1024  # elements, of which a shorter table is worth the instructions


@dataclass(frozen=True)
class Line:
    """One softmax: where its elements are."""

    x: Expr
    y: Expr
    depth: Expr
    step: Expr


def softmax(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for softmax.

    Errors  BuildError where an int32 sum could overflow
    """
    y = graph.tensor(node.output)
    operands = whole_operands(node, graph)
    if y.dtype is FLOAT32:
        return [_float(node, graph, operands)]
    wide = bool(node.attrs.get("wide"))
    if y.dtype is INT16 and not wide:
        found = [_int16(node, graph, operands)]
        if "dsp" in target.features:
            found.append(_int16(node, graph, operands, dsp=True))
        return found
    pair = y.shape[node.attrs["axis"] :] == (2,) and not wide
    return (pair and _pair(node, graph, operands)) or [_int8(node, graph, operands)]


# what readers of the C are told
ORDER = "line by line, each three times: its most, the sum, the shares"
_SHARE = {
    False: "shares by rounded high products (LiteRT's rule)",
    True: "shares by one rounding to even (the ONNX standard)",
}


def lines(
    k: Builder,
    node: Node,
    graph: Graph,
    operands: Operands,
    body: Callable[[Line], None],
) -> None:
    """One turn per softmax of the tensor."""
    y = graph.tensor(node.output)
    axis: int = node.attrs["axis"]
    outer, inner = math.prod(y.shape[:axis]), math.prod(y.shape[axis + 1 :])
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", operands.numbers[0], graph.tensor(node.inputs[0]).dtype)
    turns, depth = k.arg("outer", outer), k.arg("depth", y.shape[axis])
    one: Expr = const(1)
    step = k.arg("inner", inner) if inner > 1 else one
    with k.loop("o", turns) as o, k.loop("i", step) as i:
        at = k.let("at", o * depth * step + (i if inner > 1 else 0))
        x_line = k.let("x_line", offset(source, at))
        y_line = k.let("y_line", offset(to, at))
        body(Line(x_line, y_line, depth, step))


def name_of(node: Node, graph: Graph, kind: str) -> str:
    inner = math.prod(graph.tensor(node.output).shape[node.attrs["axis"] + 1 :])
    return f"softmax_{kind}" + ("_strided" if inner > 1 else "")


def most_of(k: Builder, line: Line, dtype: DType) -> Var:
    """The greatest element."""
    first = load(line.x)
    most = k.let("most", first if dtype.is_float else i32(first))
    with k.loop("c", line.depth, 1) as c:
        value = load(line.x, c * line.step)
        wide = value if dtype.is_float else i32(value)
        k.assign(most, maximum(most, wide))
    return most


def _float(node: Node, graph: Graph, operands: Operands) -> Candidate:
    """exp((x - most) * beta) / sum"""
    beta = float(node.attrs["beta"])
    scaled = beta != 1.0
    doc = told(
        f"softmax{' of beta * x' * scaled}, float32: exp(x - most) / sum of them",
        ORDER,
    )
    k = Builder(name_of(node, graph, "f32" + ("_beta" if scaled else "")), doc)
    factor: Expr | None = None
    tables: tuple[Packed, ...] = ()
    if scaled:
        factor = k.let("beta", load(k.row("factor", operands.after, FLOAT32)))
        tables = (Packed("beta", np.asarray([beta], np.float32), order="one number"),)

    def body(line: Line) -> None:
        most = most_of(k, line, FLOAT32)
        total = k.let("total", 0.0, FLOAT32)
        with k.loop("c", line.depth) as c:
            below = load(line.x, c * line.step) - most
            power = k.let("power", EXP(below * factor if factor is not None else below))
            k.store(line.y, c * line.step, power)
            k.assign(total, total + power)
        with k.loop("c", line.depth) as c:
            at = c * line.step
            k.store(line.y, at, load(line.y, at) / total)

    lines(k, node, graph, operands, body)
    cost = 40 * graph.tensor(node.output).size
    return offer(k, operands, tables=tables, in_place=(0,), cost=cost)


def _int8(node: Node, graph: Graph, operands: Operands) -> Candidate:
    """By the integer steps of ops/softmax.py.

    The table lies from the least element to the greatest, so that an element is an
    index of it. Of few elements it ends with the first power of which nothing is left.
    """
    made = softmax_parameters(node, graph)
    even, y = made.rounding == "even", graph.tensor(node.output)
    to = " to int16" if y.dtype is INT16 else ""
    doc = told(
        f"softmax, int8{to} by integers: exponentials of a table, {_SHARE[even]}",
        ORDER,
    )
    table_of, last = exponentials(made, y.size)
    short = last < FARTHEST
    kind = f"s8{'_s16' * bool(to)}_{'even' if even else 'double'}{'_short' * short}"
    k = Builder(name_of(node, graph, kind), doc)
    farthest = k.arg("farthest", last) if short else const(FARTHEST)
    table = k.row("table", operands.after, INT32)
    steps = _even(k, made) if even else _twice(k, y.dtype)

    def body(line: Line) -> None:
        most = most_of(k, line, INT8)
        first = farthest - most
        powers = table if short else k.let("powers", offset(table, first))
        more = k.let("more", first) if short else const(0)

        def power(c: Expr) -> Expr:
            x = i32(load(line.x, c * line.step))
            return load(powers, maximum(x + more, 0) if short else x)

        total = k.let("total", steps.start(line.depth))
        with k.loop("c", line.depth) as c:
            k.assign(total, total + steps.term(power(c)))
        share = steps.share(total)
        with k.loop("c", line.depth) as c:
            k.store(line.y, c * line.step, cast(share(power(c)), y.dtype))

    lines(k, node, graph, operands, body)
    over = () if to else (0,)
    return offer(k, operands, tables=(table_of,), in_place=over, cost=20 * y.size)


def exponentials(made: SoftmaxParameters, count: int) -> tuple[Packed, int]:
    """The table of a softmax of so many elements, and the distance of its first entry:
    of few it ends with the first power of which nothing is left."""
    even = made.rounding == "even"
    more = 0 if even else MORE
    last = _last(made, 1 if even else _LEFT) if count <= _FEW else FARTHEST
    powers = np.asarray(made.table[: last + 1], np.int64)[::-1] + more
    if last < FARTHEST:
        powers[0] = more
    order = "exp of how far an element is below the most, from the farthest on"
    return Packed("exponentials", powers.astype(np.int32), order=order), last


def _last(made: SoftmaxParameters, left: int) -> int:
    """The distance below the maximum of the first power that is less than `left`."""
    return int(np.argmax(np.asarray((*made.table, 0)) < left))


def _pair(node: Node, graph: Graph, operands: Operands) -> list[Candidate]:
    """Of two: a table of the lesser's share by how far they are apart.

    None where the shares of some two, as integers, have another sum than zero; 127
    stands for 128.
    """
    made, apart = softmax_parameters(node, graph), np.arange(256)
    less, more = (
        softmax8(made, np.stack([sign * apart, 0 * apart], -1), INT8)[:, 0]
        for sign in (-1, 1)
    )
    if (np.minimum(-less.astype(int), INT8.high) != more).any():
        return []
    last = int(np.argmax(less == less[-1]))
    doc = told(
        "softmax of two, int8: the lesser's share from a table, by how far both are "
        "apart",
        "pair by pair",
    )
    k = Builder("softmax_s8_pair", doc)
    most = k.arg("last", last)
    table = k.row("table", operands.after, INT8)

    def body(line: Line) -> None:
        apart = k.let("apart", i32(load(line.x, 0)) - i32(load(line.x, 1)))
        size = select(apart < 0, 0 - apart, apart)
        less = k.let("less", i32(load(table, minimum(size, most))))
        more = k.let("more", minimum(0 - less, const(INT8.high)))
        first = select(apart < 0, less, more)
        k.store(line.y, 0, cast(first, INT8))
        k.store(line.y, 1, cast(less + more - first, INT8))

    lines(k, node, graph, operands, body)
    order = "the lesser's share, by how far both are apart"
    tables = (Packed("shares", less[: last + 1], order=order),)
    cost = 10 * graph.tensor(node.output).size
    return [offer(k, operands, tables=tables, in_place=(0,), cost=cost)]


def _int16(
    node: Node, graph: Graph, operands: Operands, dsp: bool = False
) -> Candidate:
    """By the integer steps of ops/int16/softmax16.py; with DSP both points of a table
    are one word, and so are two elements whose greater is sought."""
    made, y = softmax16_parameters(node, graph), graph.tensor(node.output)
    axis: int = node.attrs["axis"]
    side_by_side = math.prod(y.shape[axis + 1 :]) == 1
    in_words = dsp and side_by_side and y.shape[axis] > 1
    odd = in_words and y.shape[axis] % 2 > 0
    doc = told("softmax, int16 by integers: exp and 1/sum from tables", ORDER)
    kind = "_dsp" * dsp + "_words" * in_words + "_odd" * odd
    k = Builder(name_of(node, graph, f"s16{kind}"), doc)
    power, share = shares16(k, made, const(operands.after), dsp)

    def body(line: Line) -> None:
        if in_words:
            most = most_by_words(k, line.x, line.depth, odd)
        else:
            most = most_of(k, line, INT16)
        total = k.let("total", 0)
        with k.loop("c", line.depth) as c:
            value = k.let("exp", power(i32(load(line.x, c * line.step)) - most))
            k.store(line.y, c * line.step, cast(value, INT16))
            k.assign(total, total + value)
        made_of = share(total, k.let("spare", SPARE_BITS(total)))
        with k.loop("c", line.depth) as c:
            at = c * line.step
            k.store(line.y, at, made_of.of(i32(load(line.y, at)), dsp))

    lines(k, node, graph, operands, body)
    cost = (30 if dsp else 50) * y.size
    return offer(k, operands, tables=tables16(made), in_place=(0,), cost=cost)


@dataclass(frozen=True)
class _Steps:
    """The two ways.

    start, term  of `depth` elements, and what is added for each: their sum
    share        of that sum, as a function of a power: the stored value
    """

    start: Callable[[Expr], Expr]
    term: Callable[[Expr], Expr]
    share: Callable[[Expr], Callable[[Expr], Expr]]


def _even(k: Builder, made: SoftmaxParameters) -> _Steps:
    # numerator = inverse << bits: an argument holds 32 bits
    power_bits = made.table[0].bit_length() - 1
    inverse = k.arg("inverse", made.numerator >> power_bits)
    numerator = i64(inverse) << i64(k.arg("bits", power_bits))
    zero, shift = k.arg("y_zero", made.y_zero), k.arg("shift", made.shift)

    def share(total: Expr) -> Callable[[Expr], Expr]:
        wide = k.let("wide", i64(total))
        # at most `inverse`: the greatest power alone is 1 << bits
        ratio = k.let("ratio", i32((numerator + wide / 2) / wide))

        def stored(power: Expr) -> Expr:
            if made.shift < 33:
                half = const(1, INT64) << i64(shift - 1)
                whole = i32((i64(power) * i64(ratio) + half) >> i64(shift))
            else:
                # half a step is nothing in the low half of the product
                half = const(1) << (shift - 33)
                whole = (MULHI(power, ratio) + half) >> (shift - 32)
            return SATURATE8(whole + zero)

        return stored

    return _Steps(lambda depth: const(0), lambda power: power, share)


# of a power below that nothing is left: neither 1 / 4096 of it, rounded, nor a share
_LEFT = 2048
# what the table of LiteRT's rule holds more than a power: 2048 for rounding, and what
# makes all that an int32
MORE = 2048 - (1 << 31)


def share_of(k: Builder, total: Expr, to: DType) -> tuple[Expr, Expr]:
    """The factor of a power's share of the total, and the bits to the right after it,
    without the last one."""
    spare = k.let("spare", SPARE_BITS(total))
    inverse = maximum(RECIPROCAL(total << spare), 1 << 30)
    factor = k.let("factor", (inverse + -(1 << 31)) * 2)
    # of an int16 8 bits less
    first = 33 if to is INT8 else 25
    return factor, k.let("shift", minimum(const(first) - spare, 31))


def _twice(k: Builder, to: DType) -> _Steps:
    """With `r` and `e` of SoftmaxParameters, 2^30 <= r:

    mulhi_round(r, power) = power + the high half of (2 * r - 2^32) * power, rounded.
    Of an r below that e is above 32, and nothing is left of any power.
    """

    def share(total: Expr) -> Callable[[Expr], Expr]:
        factor, shift = share_of(k, total, to)
        ends = SATURATE8 if to is INT8 else None

        def stored(more: Expr) -> Expr:
            power = k.let("power", more + -MORE)
            scaled = MULHI_ADD_ROUND(power, factor, power)
            # half a step and the zero point, both twice
            whole = ((scaled >> shift) + (1 + 2 * to.low)) >> 1
            return ends(whole) if ends else minimum(whole, to.high)

        return stored

    return _Steps(lambda depth: depth << 19, lambda more: more >> 12, share)
