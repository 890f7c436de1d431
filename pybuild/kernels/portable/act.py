"""Unary functions of float32 by formula, one element at a time, and clamps.

Bytes: kernels/operators/tables.py; int16: act16.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import FLOAT32, Expr, cast, const, i32, load, select
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import elementwise_operands, offer, short
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.epilogues.requantise import CLAMP
from pybuild.kernels.math.exponential import LOGISTIC, TANH
from pybuild.kernels.portable.act16 import unary16
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.fixed_point.quant import quantized_clamp
from pybuild.targets.target import Target

_COST = {"logistic": 25, "tanh": 35}
FORWARD = "element by element, from the first to the last"


def unary(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for logistic, tanh, clip, leaky_relu, and byte quantize."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if y.dtype is FLOAT32:
        return [_float(node, graph)]
    if node.op == "clip" and x.dtype is y.dtype and x.quant == y.quant:
        return [_clip(node, graph)]
    return [unary16(node, graph)]


def element_loop(
    k: Builder, x: Tensor, y: Tensor, count: int, form: Callable[[Expr], Expr]
) -> None:
    """y[i] = form(x[i]), from pointer 1 to pointer 0."""
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", 1, x.dtype)
    with k.loop("i", k.arg("count", count)) as i:
        k.store(to, i, form(load(source, i)))


def _clip(node: Node, graph: Graph) -> Candidate:
    """A clamp in the integers of a quantisation that does not change."""
    y = graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    least, most = quantized_clamp(clamp_of(node), y)
    told_ = told(f"y = x held within low..high, {y.dtype.value}", FORWARD)
    k = Builder(f"clip_{short(y.dtype)}", told_)
    low, high = k.arg("low", least), k.arg("high", most)
    count = y.size // (operands.images * operands.bands)
    element_loop(k, y, y, count, lambda q: cast(CLAMP(i32(q), low, high), y.dtype))
    return offer(k, operands, in_place=(0,), cost=6 * y.size)


def _float(node: Node, graph: Graph) -> Candidate:
    y = graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    limits = FloatClamp(*clamp_of(node))
    tables: tuple[Packed, ...] = ()
    name = f"{node.op}_f32" + (f"_{limits.key}" if node.op == "clip" else "")
    clamp = f", {limits.words}" if node.op == "clip" and limits.words else ""
    k = Builder(name, told(f"y = {node.op}(x), float32{clamp}", FORWARD))
    match node.op:
        case "logistic":
            form: Callable[[Expr], Expr] = LOGISTIC
        case "tanh":
            form = TANH
        case "clip":
            tables = limits.tables()
            bound = limits.bind(k, const(operands.after))
            form = lambda x: bound.apply(x, 0)  # noqa: E731
        case _:
            slope_ = np.asarray([node.attrs["alpha"]], np.float32)
            tables = (Packed("alpha", slope_, order="the slope below zero"),)
            alpha = k.let("alpha", load(k.row("slope", operands.after, FLOAT32)))
            form = lambda x: select(x > 0.0, x, x * alpha)  # noqa: E731
    count = y.size // (operands.images * operands.bands)
    element_loop(k, y, y, count, form)
    cost = _COST.get(node.op, 6) * y.size
    return offer(k, operands, tables=tables, in_place=(0,), cost=cost)
