"""Functions of single int8 values, computed in floats, become tables of 256 bytes.

A GELU of a quantised net is one: what each of 256 integers becomes is computed at build
time, by the same nodes. Integers that are rounded at the build are those of the board.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.ops.interpret import operator_of
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit

_SINGLE = (*UNARY, *BINARY, "quantize", "dequantize")
# of map: these change the shape, or the type of what has no scale
_OTHERS = ("copy", "cast")
_INPUT = np.arange(-128, 128).astype(np.int8)


def use_tables(graph: Graph) -> Graph:
    """Each quantize of floats that are a function of one int8 tensor as a lookup."""
    roots = _roots(graph)
    found = {
        node.output: table
        for node in graph.nodes
        if node.op == "quantize"
        and roots.get(node.inputs[0], node.inputs[0]) != node.inputs[0]
        and not graph.known(node.output)
        and (table := _table(graph, node, roots[node.inputs[0]])) is not None
    }
    if not found:
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        if node.output in found:
            name = edit.constant(f"{node.output}.table", found[node.output])
            inputs = (roots[node.inputs[0]], name)
            node = replace(node, op="lookup", inputs=inputs, attrs={})
        edit.keep(node)
    return remove_dead(edit.done())


def _roots(graph: Graph) -> dict[str, str]:
    """Float tensor -> the int8 one of which each of its values is a function."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        reads = [n for n in node.inputs if n and not _is_number(graph, n)]
        single = node.op in _SINGLE or (
            node.op == "map" and node.attrs["fn"] not in _OTHERS
        )
        y = graph.tensor(node.output)
        if not single or not reads or y.dtype is not DType.FLOAT32:
            continue
        source = {found.get(name, name) for name in reads}
        if len(source) != 1 or node.device:
            continue
        x = graph.tensor(next(iter(source)))
        whole = x.quant is not None and len(x.quant.scale) == 1
        if x.dtype is DType.INT8 and whole and x.shape == y.shape:
            found[node.output] = x.name
    return found


def _is_number(graph: Graph, name: str) -> bool:
    return graph.known(name) and graph.tensor(name).size == 1


def _table(graph: Graph, last: Node, root: str) -> Array | None:
    """What the integers of `root` become; None: not all are numbers in between."""
    y = graph.tensor(last.output)
    if y.dtype is not DType.INT8 or y.quant is None or len(y.quant.scale) != 1:
        return None
    makers, needed, stack = graph.producers(), set[str](), [last.inputs[0]]
    while stack:
        name = stack.pop()
        if name != root and name in makers and name not in needed:
            needed.add(name)
            stack += [n for n in makers[name].inputs if n]
    chain = [n for n in graph.nodes if n.output in needed] + [last]
    if len(chain) < 3:  # a quantize of a dequantize
        return None
    shape = _INPUT.shape
    moved = {n: replace(graph.tensor(n), shape=shape)
             for n in (root, *(node.output for node in chain))}  # fmt: skip
    small = replace(graph, tensors={**graph.tensors, **moved})
    values: dict[str, Array] = {root: _INPUT}
    for node in chain:
        reads = [values.get(n, graph.constants.get(n)) if n else None
                 for n in node.inputs]  # fmt: skip
        with np.errstate(all="ignore"):
            made = operator_of(node, small).reference(node, small, reads)[0]
        if made.dtype == np.float32 and not np.isfinite(made).all():
            return None
        values[node.output] = np.broadcast_to(made.reshape(-1), shape)
    return np.ascontiguousarray(values[last.output]).reshape(256)
