"""Reshapes: one after another become one; they sink below element-wise operators.

So a 1-D convolution, which stands between reshapes, meets its activation and the next
convolution.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.graph import Graph, Node, Tensor
from pybuild.passes.edit import Edit, only_reader

_UNARY = ("clip", "quantize", "logistic", "tanh", "leaky_relu")
_BINARY = ("add", "sub", "mul")


def merge_reshapes(graph: Graph) -> Graph:
    """A reshape of a reshape reads what the first one reads."""
    edit = Edit(graph)
    sources: dict[str, str] = {}
    for node in graph.nodes:
        if node.op == "reshape":
            source = sources.get(node.inputs[0], node.inputs[0])
            sources[node.output] = source
            node = replace(node, inputs=(source,))
        edit.keep(node)
    return edit.done()


def sink_reshapes(graph: Graph) -> Graph:
    """f(reshape(x)) becomes reshape(f(x)), where nothing else reads the reshape."""
    edit = Edit(graph)
    users = graph.consumers()
    # tensor -> the tensor that it is a reshape of, while the reshape is put off
    put_off: dict[str, str] = {}
    waiting: dict[str, Node] = {}
    for node in graph.nodes:
        single = node.op == "reshape" and only_reader(graph, users, node.output)
        if single and _sinks(users[node.output][0], node.output, graph):
            put_off[node.output] = put_off.get(node.inputs[0], node.inputs[0])
            waiting[node.output] = node
            continue
        if not _sunk(edit, node, put_off, waiting):
            for name in node.inputs:
                _place(edit, name, put_off, waiting)
            edit.keep(node)
    return edit.done()


def _place(
    edit: Edit, name: str, put_off: dict[str, str], waiting: dict[str, Node]
) -> None:
    """Emits a reshape that was put off after all."""
    if name in waiting:
        edit.nodes.append(replace(waiting.pop(name), inputs=(put_off.pop(name),)))


def _sinks(reader: Node, name: str, graph: Graph) -> bool:
    return reader.op in _UNARY or (
        reader.op in _BINARY and all(graph.tensor(n).shape for n in reader.inputs)
    )


def _sunk(
    edit: Edit, node: Node, put_off: dict[str, str], waiting: dict[str, Node]
) -> bool:
    """Computes the node on what its inputs are reshapes of, then reshapes."""
    froms = [put_off.get(name) for name in node.inputs]
    if not any(froms) or node.op not in (*_UNARY, *_BINARY):
        return False
    whole = next(edit.tensors[name] for name in froms if name)
    y = edit.tensors[node.output]
    operands = [
        source if source is not None else _fitting(edit, name, y, whole)
        for name, source in zip(node.inputs, froms, strict=True)
    ]
    shapes = {edit.tensors[n].shape for n in froms if n}
    if None in operands or len(shapes) > 1 or y.size != whole.size:
        return False
    inner = edit.fresh(f"{node.output}.rows")
    inputs = tuple(name for name in operands if name is not None)
    try:
        edit.emit(
            replace(node, inputs=inputs, outputs=(inner,)), dtype=y.dtype, quant=y.quant
        )
    except BuildError:
        return False
    for name in node.inputs:
        waiting.pop(name, None)
        put_off.pop(name, None)
    edit.emit(
        Node("reshape", f"{node.name}.shape", (inner,), node.outputs),
        shape=y.shape, dtype=y.dtype, quant=y.quant,
    )  # fmt: skip
    return True


def _fitting(edit: Edit, name: str, y: Tensor, whole: Tensor) -> str | None:
    """A constant that means the same along the last axis before the reshape."""
    value = edit.constants.get(name)
    if value is None:
        return None
    last = y.shape[-1:] == whole.shape[-1:] and value.size == value.shape[-1]
    if value.size == 1 or last:
        flat = value.reshape(value.shape[-1:] if value.size > 1 else (1,))
        return edit.constant(f"{name}.flat", flat, edit.tensors[name].quant)
    return None
