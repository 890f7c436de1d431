"""y = table[x] of single bytes: in gathers (M55, RISC-V's vectors), eight in a turn
(cores with DSP), else one by one. What is not a table of bytes:
kernels/portable/act.py and kernels/any_type/index.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import INT8, Expr, i32, load, offset
from pybuild.kernels.any_type import index
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import Operands, elementwise_operands, offer
from pybuild.kernels.base.vectors import TABLE16, bytes_at
from pybuild.kernels.mve.int16 import curve as curve16_mve
from pybuild.kernels.portable import act, curve16
from pybuild.kernels.rvv import lookup as lookup_rvv
from pybuild.ops.act import unary_table
from pybuild.ops.base.operator import BYTES
from pybuild.records import dataclass
from pybuild.targets.target import Target

TURN, LANES = 8, 16


def unary(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for logistic, tanh, clip, leaky_relu, and byte quantize."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if x.dtype is y.dtype is DType.INT16 and node.op in ("logistic", "tanh"):
        return _curve(node, graph, target)
    same = node.op == "clip" and x.quant == y.quant
    if same or x.dtype not in BYTES or y.dtype not in BYTES:
        return act.unary(node, graph, target)
    operands = elementwise_operands(node, graph)
    made = unary_table(node, graph).astype(y.dtype.numpy).view(np.int8)
    if x.dtype is DType.UINT8:
        made = np.roll(made, LANES * TURN)
    table = Packed("table", made, order="y of each byte, from that of -128 on")
    return _candidates(_Layer(operands, operands.after, y, (table,)), target)


def _curve(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    found = curve16.curve(node, graph, target)
    one = curve16.curve_of(node, graph)
    if "mve" in target.features and one.count >= curve16_mve.LANES:
        found.append(curve16_mve.curve(one))
    return found


def lookup(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for lookup."""
    x, table = (graph.tensor(n) for n in node.inputs)
    if x.dtype is not INT8 or table.dtype not in BYTES:
        return index.lookup(node, graph, target)
    operands = elementwise_operands(node, graph)
    y = graph.tensor(node.output)
    return _candidates(_Layer(operands, operands.numbers[1], y), target)


@dataclass(frozen=True)
class _Layer:
    """table  number of the pointer to the table of 256 bytes, that of -128 first"""

    operands: Operands
    table: int
    y: Tensor
    packed: tuple[Packed, ...] = ()

    @property
    def count(self) -> int:
        """Elements of a call."""
        return self.y.size // (self.operands.images * self.operands.bands)

    def offer(self, k: Builder, cost: int) -> Candidate:
        return offer(k, self.operands, tables=self.packed, in_place=(0,), cost=cost)


def _candidates(layer: _Layer, target: Target) -> list[Candidate]:
    if "mve" in target.features and layer.count >= LANES:
        return [_by_vectors(layer)]
    if lookup_rvv.suits(target, layer.count):
        return [_by_indices(layer)]
    alone = _one_by_one(layer)
    if "dsp" in target.features and layer.count >= TURN:
        return [alone, _in_turns(layer)]
    return [alone]


def _builder(layer: _Layer, key: str, step: int, how: str) -> Builder:
    rest = "_rest" if layer.count % step else ""
    return Builder(f"lookup_s8{key}{rest}", told("y = table[x], of one byte", how))


def _one_by_one(layer: _Layer) -> Candidate:
    k = _builder(layer, "", 1, act.FORWARD)
    to, source, entry = _pointers(k, layer)
    with k.loop("i", k.arg("count", layer.count)) as i:
        k.store(to, i, entry(load(source, i)))
    return layer.offer(k, 5 * layer.y.size)


def _pointers(k: Builder, layer: _Layer) -> tuple[Expr, Expr, Callable[[Expr], Expr]]:
    """y, x, and what reads the entry of a byte."""
    to, source = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    middle = k.let("middle", offset(k.row("table", layer.table, INT8), 128))
    return to, source, lambda value: load(middle, i32(value))


def _in_turns(layer: _Layer) -> Candidate:
    k = _builder(layer, "_by8", TURN, f"{TURN} in a turn, from the first to the last")
    to, source, entry = _pointers(k, layer)
    size = k.arg("count", layer.count)
    end = size - size % TURN if layer.count % TURN else size
    y, x = k.let("to", to), k.let("from", source)
    with k.loop("i", end, 0, TURN):
        for at in range(TURN):
            k.store(y, at, entry(load(x, at)))
        k.assign(y, offset(y, TURN))
        k.assign(x, offset(x, TURN))
    if layer.count % TURN:
        with k.loop("i", size, k.let("end", end)) as i:
            k.store(to, i, entry(load(source, i)))
    return layer.offer(k, 18 * layer.y.size // 5)


def _by_indices(layer: _Layer) -> Candidate:
    doc = told("y = table[x], of one byte", "a vector at a time")
    k = Builder("lookup_s8_rvv", doc)
    to, source = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    table = k.row("table", layer.table, INT8)
    lookup_rvv.write(k, to, source, table, k.arg("count", layer.count))
    return layer.offer(k, layer.y.size // 2)


def _by_vectors(layer: _Layer) -> Candidate:
    """The last vector reaches back. It is read first: x and y may be one."""
    k = _builder(layer, "_mve", LANES, f"{LANES} in a vector")
    to, source = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    table = k.row("table", layer.table, INT8)
    size = k.arg("count", layer.count)
    end, last, at = size, None, size
    if layer.count % LANES:
        end, at = size - size % LANES, k.let("at", size - LANES)
        last = k.let("last", TABLE16(table, bytes_at(source, at)))
    y, x = k.let("to", to), k.let("from", source)
    with k.loop("i", end, 0, LANES):
        k.store(y, 0, TABLE16(table, bytes_at(x)))
        k.assign(y, offset(y, LANES))
        k.assign(x, offset(x, LANES))
    if last is not None:
        k.store(to, at, last)
    return layer.offer(k, layer.y.size // 2)
