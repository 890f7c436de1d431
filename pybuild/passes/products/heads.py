"""Heads that share keys or values: rows of one product, not products with copies.

Files repeat the shared tensor by broadcasting it (Unsqueeze, Expand, Reshape): it would
be written once for each head, in each run.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit


def share_heads(graph: Graph) -> Graph:
    """The graph in which heads that have the same second operand are one product.

    Shapes  a[A.., G * R, m, d]  b[A.., G, 1, ..] broadcast to [A.., G, R, ..]; the
            product has a[A.., G, R * m, d] and b[A.., G, ..]
    """
    if not any(node.op == "matmul" for node in graph.nodes):
        return graph
    makers, edit = graph.producers(), Edit(graph)
    for node in graph.nodes:
        shared = _shared(graph, makers, node) if node.op == "matmul" else None
        if shared is None:
            edit.keep(node)
        else:
            _join(edit, node, *shared)
    return edit.done() if edit.nodes != list(graph.nodes) else graph


def _shared(
    graph: Graph, makers: dict[str, Node], node: Node
) -> tuple[str, tuple[int, ...]] | None:
    """The tensor that is broadcast to all heads, and its shape without the broadcast
    axis."""
    flat = makers.get(node.inputs[1])
    if flat is None or flat.op != "reshape":
        return None
    wide = makers.get(flat.inputs[0])
    if wide is None or wide.attrs.get("fn") != "copy":
        return None
    a, b, one, many = (
        graph.tensor(n) for n in (*node.inputs, wide.inputs[0], wide.output)
    )
    at = len(many.shape) - 3  # the copies
    short = (*many.shape[:at], 1, *many.shape[at + 1 :])
    joined = (*many.shape[: at - 1], many.shape[at - 1] * many.shape[at])
    heads = (*joined, *many.shape[at + 1 :])
    if at < 1 or one.shape != short or b.shape != heads or one.quant != b.quant:
        return None
    if a.shape[:-2] != b.shape[:-2]:
        return None
    return wide.inputs[0], (*many.shape[:at], *many.shape[at + 1 :])


def _join(edit: Edit, node: Node, source: str, shape: tuple[int, ...]) -> None:
    a, y = edit.old.tensor(node.inputs[0]), edit.old.tensor(node.output)
    rows = a.shape[-3] * a.shape[-2] // shape[-3]
    names = [edit.fresh(f"{node.output}.{part}") for part in ("a", "b", "y")]
    shapes = ((*shape[:-2], rows, a.shape[-1]), shape)
    for name, read, made in zip(names, (node.inputs[0], source), shapes, strict=False):
        tensor = edit.old.tensor(read)
        edit.emit(
            Node("reshape", name, (edit.name(read),), (name,)),
            shape=made, quant=tensor.quant, dtype=tensor.dtype,
        )  # fmt: skip
    product = replace(node, inputs=(names[0], names[1]), outputs=(names[2],))
    edit.emit(product, quant=y.quant, dtype=y.dtype)
    last = Node("reshape", node.name, (names[2],), node.outputs)
    edit.emit(last, shape=y.shape, quant=y.quant, dtype=y.dtype)
