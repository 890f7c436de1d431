"""softmax over one axis: int8 in fixed point by table, float32 by exp."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import DType
from pybuild.graph import Graph, Node
from pybuild.kernels.builder import Builder
from pybuild.kernels.candidate import Candidate, Packed
from pybuild.kernels.math import EXP
from pybuild.kernels.operands import Operands, offer, whole_operands
from pybuild.kernels.requant import CLAMP, MULHI_ROUND
from pybuild.kernels.softmax16 import shares16, tables16
from pybuild.loop import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    Expr,
    Intrin,
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
from pybuild.ops.softmax import SoftmaxParameters, softmax8, softmax_parameters
from pybuild.ops.softmax16 import softmax16_parameters
from pybuild.targets.target import Target

_MOST = 2**31 - 1


_TOTAL = Var("total", INT32)


def _spare_bits() -> Intrin:
    """How far total > 0 can go left until bit 30 is set, by halving the search."""
    lets: list[tuple[Var, Expr]] = []
    value, shifts = _TOTAL, i32(0)
    for bits in (16, 8, 4, 2, 1):
        step = Var(f"step{bits}", INT32)
        small = value < (1 << (31 - bits))
        lets.append((step, select(small, const(bits), const(0))))
        shifts = shifts + step
        if bits > 1:
            moved = Var(f"total{bits}", INT32)
            lets.append((moved, value << step))
            value = moved
    return Intrin("crt_spare_bits", (_TOTAL,), shifts, tuple(lets))


SPARE_BITS = _spare_bits()


def _newton() -> tuple[tuple[Var, Expr], ...]:
    """2^61 / h in Q2.29 by three steps; h in Q0.31, at least a half."""
    lets: list[tuple[Var, Expr]] = []
    half = Var("half", INT32)
    value = Var("t0", INT32)
    lets.append((value, MULHI_ROUND(half, const(-1010580540)) + 1515870810))
    for turn in (1, 2, 3):
        following = Var(f"t{turn}", INT32)
        rest = const(1 << 29) - MULHI_ROUND(half, value)
        lets.append((following, value + MULHI_ROUND(value, rest) * 4))
        value = following
    return tuple(lets)


_T3 = Var("t3", INT32)
RECIPROCAL = Intrin(
    "crt_reciprocal",
    (Var("half", INT32),),
    select(_T3 >= (1 << 30), const(_MOST), _T3 << const(1)),
    _newton(),
)


@dataclass(frozen=True)
class _Line:
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
    if y.dtype is INT16:
        return [_int16(node, graph, operands)]
    pair = y.shape[node.attrs["axis"] :] == (2,)
    return (pair and _pair(node, graph, operands)) or [_int8(node, graph, operands)]


def _lines(
    k: Builder,
    node: Node,
    graph: Graph,
    operands: Operands,
    body: Callable[[_Line], None],
) -> None:
    """One turn per softmax of the tensor."""
    y = graph.tensor(node.output)
    axis: int = node.attrs["axis"]
    outer, inner = math.prod(y.shape[:axis]), math.prod(y.shape[axis + 1 :])
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", operands.numbers[0], y.dtype)
    turns, depth = k.arg("outer", outer), k.arg("depth", y.shape[axis])
    one: Expr = const(1)
    step = k.arg("inner", inner) if inner > 1 else one
    with k.loop("o", turns) as o, k.loop("i", step) as i:
        at = k.let("at", o * depth * step + (i if inner > 1 else 0))
        x_line = k.let("x_line", offset(source, at))
        y_line = k.let("y_line", offset(to, at))
        body(_Line(x_line, y_line, depth, step))


def _name(node: Node, graph: Graph, kind: str) -> str:
    inner = math.prod(graph.tensor(node.output).shape[node.attrs["axis"] + 1 :])
    return f"softmax_{kind}" + ("_strided" if inner > 1 else "")


def _most(k: Builder, line: _Line, dtype: DType) -> Var:
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
    k = Builder(_name(node, graph, "f32" + ("_beta" if scaled else "")))
    factor: Expr | None = None
    tables: tuple[Packed, ...] = ()
    if scaled:
        factor = k.let("beta", load(k.row("factor", operands.after, FLOAT32)))
        tables = (Packed("beta", np.asarray([beta], np.float32)),)

    def body(line: _Line) -> None:
        most = _most(k, line, FLOAT32)
        total = k.let("total", 0.0, FLOAT32)
        with k.loop("c", line.depth) as c:
            below = load(line.x, c * line.step) - most
            power = k.let("power", EXP(below * factor if factor is not None else below))
            k.store(line.y, c * line.step, power)
            k.assign(total, total + power)
        with k.loop("c", line.depth) as c:
            at = c * line.step
            k.store(line.y, at, load(line.y, at) / total)

    _lines(k, node, graph, operands, body)
    cost = 40 * graph.tensor(node.output).size
    return offer(k, operands, tables=tables, in_place=(0,), cost=cost)


def _int8(node: Node, graph: Graph, operands: Operands) -> Candidate:
    """By the integer steps of ops/softmax.py."""
    made = softmax_parameters(node, graph)
    even = made.rounding == "even"
    k = Builder(_name(node, graph, f"s8_{'even' if even else 'double'}"))
    table = k.row("table", operands.after, INT32)
    low, high = k.arg("low", made.low), k.arg("high", made.high)
    zero = k.arg("y_zero", made.y_zero)
    finish = _even(k, made) if even else _twice(k)

    def body(line: _Line) -> None:
        most = _most(k, line, INT8)

        def power(c: Expr) -> Expr:
            return load(table, most - i32(load(line.x, c * line.step)))

        total = k.let("total", 0)
        with k.loop("c", line.depth) as c:
            value = k.let("value", power(c))
            k.assign(total, total + finish.term(value))
        share = finish.share(total)
        with k.loop("c", line.depth) as c:
            whole = share(power(c)) + zero
            k.store(line.y, c * line.step, cast(CLAMP(whole, low, high), INT8))

    _lines(k, node, graph, operands, body)
    tables = (Packed("exponentials", np.asarray(made.table, np.int32)),)
    cost = 40 * graph.tensor(node.output).size
    return offer(k, operands, tables=tables, in_place=(0,), cost=cost)


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
    k = Builder("softmax_s8_pair")
    most = k.arg("last", last)
    table = k.row("table", operands.after, INT8)

    def body(line: _Line) -> None:
        apart = k.let("apart", i32(load(line.x, 0)) - i32(load(line.x, 1)))
        size = select(apart < 0, 0 - apart, apart)
        less = k.let("less", i32(load(table, minimum(size, most))))
        more = k.let("more", minimum(0 - less, const(INT8.high)))
        first = select(apart < 0, less, more)
        k.store(line.y, 0, cast(first, INT8))
        k.store(line.y, 1, cast(less + more - first, INT8))

    _lines(k, node, graph, operands, body)
    tables = (Packed("shares", less[: last + 1]),)
    cost = 10 * graph.tensor(node.output).size
    return [offer(k, operands, tables=tables, in_place=(0,), cost=cost)]


def _int16(node: Node, graph: Graph, operands: Operands) -> Candidate:
    """By the integer steps of ops/softmax16.py."""
    made = softmax16_parameters(node, graph)
    k = Builder(_name(node, graph, "s16"))
    power, share = shares16(k, made, const(operands.after))

    def body(line: _Line) -> None:
        most, total = _most(k, line, INT16), k.let("total", 0)
        with k.loop("c", line.depth) as c:
            value = k.let("exp", power(i32(load(line.x, c * line.step)) - most))
            k.store(line.y, c * line.step, cast(value, INT16))
            k.assign(total, total + value)
        of = share(total, k.let("spare", SPARE_BITS(total)))
        with k.loop("c", line.depth) as c:
            at = c * line.step
            k.store(line.y, at, of(i32(load(line.y, at))))

    _lines(k, node, graph, operands, body)
    cost = 60 * graph.tensor(node.output).size
    return offer(k, operands, tables=tables16(made), in_place=(0,), cost=cost)


@dataclass(frozen=True)
class _Steps:
    """The two ways: what is summed, and a share of the total as an integer."""

    term: Callable[[Expr], Expr]
    share: Callable[[Expr], Callable[[Expr], Expr]]


def _even(k: Builder, made: SoftmaxParameters) -> _Steps:
    # numerator = inverse << bits: an argument holds 32 bits
    trailing = made.shift - 16
    inverse = k.arg("inverse", made.numerator >> trailing)
    bits = k.arg("bits", trailing)
    numerator = k.let("numerator", i64(inverse) << i64(bits))
    shift = k.let("shift", i64(bits + 16))
    half = k.let("half", const(1, INT64) << (shift - 1))

    def share(total: Expr) -> Callable[[Expr], Expr]:
        wide = k.let("wide", i64(total))
        ratio = k.let("ratio", (numerator + wide / 2) / wide)
        return lambda power: i32((i64(power) * ratio + half) >> shift)

    return _Steps(lambda power: power, share)


def _twice(k: Builder) -> _Steps:
    def term(power: Expr) -> Expr:
        # (power + 2048) >> 12 without overflow
        return (power >> const(12)) + ((power >> const(11)) & 1)

    def share(total: Expr) -> Callable[[Expr], Expr]:
        spare = k.let("spare", SPARE_BITS(total))
        inverse = k.let("inverse", RECIPROCAL(total << spare))
        shift = k.let("shift", i64(const(34) - spare))
        half = k.let("half", const(1, INT64) << (shift - 1))
        return lambda power: i32((i64(MULHI_ROUND(inverse, power)) + half) >> shift)

    return _Steps(term, share)
