"""A sum of two tensors as the epilogue of the layer that makes one of them.

The layer writes a band into scratch, where the sum reads it: its tensor needs no
memory, and the plan a step less. Made of the kernels of both, so it serves all of them;
the innermost part is the one that other layers call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT32,
    Expr,
    Func,
    Let,
    PointerType,
    Row,
    Var,
    const,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.specialise import rows_of, with_rows
from pybuild.kernels.layers.eltwise_loops import Axis
from pybuild.kernels.operators.eltwise import SYMBOL, Form, forms
from pybuild.targets.target import Target

_ALIGN = 16
_THEN = "Then      adds the other operand, p[1], to what is in scratch"


def with_sum(
    node: Node, graph: Graph, target: Target, layers: Sequence[Candidate]
) -> list[Candidate]:
    """The candidates of a layer and the sum behind it, of those of the layer that write
    one row after the other."""
    found = []
    for layer in layers:
        wrote = layer.outputs[0]
        alone = (wrote.window, layer.finish, len(layer.outputs)) == (1, None, 1)
        if not alone or wrote.stride > 1 or not isinstance(layer.func, Func):
            continue
        size = wrote.row_bytes // graph.tensor(node.output).dtype.bytes
        ways = forms(node.of[1], graph, target, Axis(size, True, True), 3)
        found.append(_joined(layer, node, graph, ways[-1], size))
    return found


def _joined(
    layer: Candidate, node: Node, graph: Graph, form: Form, size: int
) -> Candidate:
    assert isinstance(layer.func, Func)
    total, (wrote,) = node.of[1], layer.outputs
    elem = graph.tensor(node.output).dtype
    at = -(-layer.scratch // _ALIGN) * _ALIGN
    writable = PointerType(elem, True)
    scratch, begin = Var("working", writable), Var("made_at", INT32)
    made, other = offset(scratch, begin), Row(const(1), writable)
    last = 2 + sum(x.window for x in layer.inputs) + len(layer.constants)

    def moved(row: Row) -> Expr:
        """All behind the output is one further: the other operand is first."""
        if row.index == const(0):
            return made
        return replace(row, index=row.index + 1)

    func = with_rows(layer.func, {row: moved(row) for row in rows_of(layer.func)})
    body = (Let(scratch, Row(const(last), writable)), *func.body)
    func = replace(func, args=(*func.args, begin), body=body)
    alone, values = _row_of(total, form, elem, size)
    k = Builder.after(
        func,
        (*layer.args, at // elem.bytes),
        f"{func.name}_{alone.name}",
        f"{func.doc}\n{_THEN}",
    )
    mine = total.inputs[0] == node.of[0].output
    k.call(
        alone,
        (
            Row(const(0), writable),
            *((made, other) if mine else (other, made)),
        ),
        values,
    )
    name, calls = node.inputs[-1], layer.images * layer.bands
    return replace(
        layer,
        func=k.finish(layer.func.in_place),
        args=tuple(k.values),
        inputs=(replace(wrote, tensor=name), *layer.inputs),
        outputs=(replace(wrote, tensor=node.output),),
        scratch=at + wrote.row_bytes,
        in_place=() if name in node.inputs[:-1] else (len(node.inputs) - 1,),
        cost=layer.cost + calls * size * form.each,
    )


def _row_of(
    total: Node, form: Form, elem: DType, size: int
) -> tuple[Func, Sequence[int]]:
    """A kernel of one row of a sum, and its arguments."""
    doc = told(
        f"y = left {SYMBOL[total.op]} right, {elem.value}", form.turn, form.words
    )
    k = Builder(f"{total.op}_{form.kind}_{form.key}".rstrip("_"), doc)
    y, a, b = (k.row(n, i, elem, True) for i, n in enumerate(("y", "left", "right")))
    write = form.bind(k)
    write(k, Axis(size, True, True), k.arg("elements", size), (y, a, b))
    return k.finish(), k.values
