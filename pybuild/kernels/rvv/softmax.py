"""softmax of int8 by LiteRT's integer steps on vectors of any length: exponentials by
an indexed load (vluxei16). Knows no meaning: ops/softmax.py.
"""

from __future__ import annotations

import math
from functools import partial

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT32, Expr, Var, const, i32, load, maximum, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.portable.softmax import (
    FARTHEST,
    MORE,
    ORDER,
    Line,
    exponentials,
    lines,
    share_of,
)
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.ops.softmax import softmax_parameters
from pybuild.targets.target import Target

LEAST = 12  # elements of a line
_v = partial(vectors, 16)  # made when it is first used


def candidates(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The kernel for lines of elements that lie side by side; none for others, and for
    the rule of ONNX, which divides."""
    y, axis = graph.tensor(node.output), int(node.attrs["axis"])
    together = math.prod(y.shape[axis + 1 :]) == 1 and y.shape[axis] >= LEAST
    if FEATURE not in target.features or y.dtype is not INT8 or not together:
        return []
    made = softmax_parameters(node, graph)
    if made.rounding == "even":
        return []
    doc = told("softmax, int8 by integers: exponentials of a table", ORDER)
    operands, (table, last) = whole_operands(node, graph), exponentials(made, y.size)
    short = last < FARTHEST
    k = Builder(f"softmax_s8_rvv{'_short' * short}", doc)
    farthest: Expr = k.arg("farthest", last) if short else const(FARTHEST)
    powers = k.row("table", operands.after, INT32)

    def body(line: Line) -> None:
        steps = Steps(k, _v(), line.depth)
        first = k.let("first", farthest - _most(k, steps, line))

        def some(at: Expr, n: Expr) -> Expr:
            index = _v().HALVES_PLUS(_v().WIDENED(offset(line.x, at), n), first, n)
            # none is above, but only so it is proven
            return _v().ENTRIES(powers, _v().HOLD_HALVES(index, 0, farthest, n), n)

        total = k.let("total", line.depth << 19)
        with steps.each() as (at, n):
            sums = _v().TOTAL(_v().RIGHT(some(at, n), 12, n), n)
            k.assign(total, total + sums)
        factor, shift = share_of(k, total, INT8)
        half = k.let("half_factor", factor / 2)
        with steps.each("share") as (at, n):
            power = k.let("power", _v().PLUS(some(at, n), -MORE, n))
            scaled = _v().SUM(power, _v().UP_ONE(power, half, n), n)
            whole = _v().PLUS(_v().RIGHT(scaled, shift, n), 1 + 2 * INT8.low, n)
            k.store(line.y, at, _v().SHIFTED(whole, 1, n), count=n)

    lines(k, node, graph, operands, body)
    return [offer(k, operands, tables=(table,), in_place=(0,), cost=4 * y.size)]


def _most(k: Builder, steps: Steps, line: Line) -> Var:
    """The greatest element."""
    most = k.let("most", i32(load(line.x)))
    with steps.each("one") as (at, n):
        greatest = _v().GREATEST(_v().BYTES(offset(line.x, at), n), n)
        k.assign(most, maximum(most, greatest))
    return most
