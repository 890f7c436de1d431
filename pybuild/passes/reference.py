"""Differences between TensorFlow Lite Micro and LiteRT, beyond rounding.

A front end marks such a node: `only` names the option under which it stays, `unscaled`
the one under which a clip takes the integers as they are, whatever the output's scale,
`either` the one under which its last input is the result, else the one before that.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit

_MARKS = ("only", "unscaled", "either")


def as_reference(graph: Graph, option: str) -> Graph:
    """The graph that `--rounding` means; no marks are left."""
    if not any(mark in node.attrs for node in graph.nodes for mark in _MARKS):
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        only, unscaled, either = (node.attrs.get(mark) for mark in _MARKS)
        attrs = {k: v for k, v in node.attrs.items() if k not in _MARKS}
        bare = replace(node, attrs=attrs)
        if only not in (None, option):
            edit.keep(Node("copy", node.name, node.inputs[:1], node.outputs))
        elif either is not None:
            chosen = node.inputs[-1 if either == option else -2]
            edit.keep(Node("copy", node.name, (chosen,), node.outputs))
        elif unscaled == option:
            _clipped(edit, bare)
        else:
            edit.keep(bare)
    return edit.done()


def _clipped(edit: Edit, node: Node) -> None:
    """The clip in its input's scale; then its bytes, in the scale of its output."""
    x, y = edit.old.tensor(node.inputs[0]), edit.old.tensor(node.output)
    if x.quant == y.quant:
        edit.keep(node)
        return
    name = edit.fresh(f"{node.output}.clipped")
    made = replace(node, inputs=(edit.name(x.name),), outputs=(name,))
    edit.emit(made, quant=x.quant, dtype=x.dtype)
    edit.keep(Node("map", node.name, (name,), (y.name,), {"fn": "copy"}))
