"""Reshapes: one after another become one; they sink below element-wise operators.

So a 1-D convolution, which stands between reshapes, meets its activation and the next
convolution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.edit import Edit

_SINKING = (*UNARY, *BINARY, "quantize")

# tensor -> what it is a reshape of, and the node that will make it until it has
_Sources = dict[str, tuple[str, Node | None]]


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
    """f(reshape(x)) becomes reshape(f(x)); a reshape is made where it is needed."""
    edit = Edit(graph)
    sources: _Sources = {}
    for node in graph.nodes:
        if node.op == "reshape" and node.output not in graph.outputs:
            base = sources.get(node.inputs[0], (node.inputs[0], node))[0]
            sources[node.output] = (base, replace(node, inputs=(base,)))
        elif not _sunk(edit, node, sources):
            for name in node.inputs:
                _place(edit, name, sources)
            edit.keep(node)
    for name in graph.outputs:
        _place(edit, name, sources)
    return edit.done()


def _place(edit: Edit, name: str, sources: _Sources) -> None:
    """Emits a reshape that was put off, once."""
    base, node = sources.get(name, ("", None))
    if node is not None:
        edit.nodes.append(node)
        sources[name] = (base, None)


def _sunk(edit: Edit, node: Node, sources: _Sources) -> bool:
    """Computes the node on what its inputs are reshapes of; its output is one."""
    if node.op == "norm" and not _has_rows(edit, node, sources):
        return False
    if node.op not in (*_SINKING, "norm"):
        return False
    bases = [sources[name][0] if name in sources else None for name in node.inputs]
    wholes = [edit.tensors[base] for base in bases if base is not None]
    y = edit.tensors[node.output]
    if len({t.shape for t in wholes}) != 1 or y.size != wholes[0].size:
        return False
    operands = []
    for name, base in zip(node.inputs, bases, strict=True):
        at = base if base is not None else _fitting(edit, name, y, wholes[0])
        if at is None:
            return False
        operands.append(at)
    inner = edit.fresh(f"{node.output}.rows")
    try:
        made = replace(node, inputs=tuple(operands), outputs=(inner,))
        edit.emit(made, dtype=y.dtype, quant=y.quant)
    except BuildError:
        return False
    after = Node("reshape", f"{node.name}.shape", (inner,), node.outputs)
    sources[node.output] = (inner, after)
    return True


def _has_rows(edit: Edit, node: Node, sources: _Sources) -> bool:
    """True if rows of a norm are those before the reshape."""
    base = sources.get(node.inputs[0], (node.inputs[0], None))[0]
    rows = [edit.tensors[name].shape[-1:] for name in (base, node.output)]
    return rows[0] == rows[1]


def _fitting(edit: Edit, name: str, y: Tensor, whole: Tensor) -> str | None:
    """A constant that means the same along the last axis before the reshape."""
    value = edit.constants.get(name)
    if value is None or not whole.shape:
        return None
    last = y.shape[-1:] == whole.shape[-1:] == value.shape[-1:]
    if value.size == 1 or (last and value.size == value.shape[-1]):
        return edit.moved(name, "flat", value.reshape(-1))
    return None


def pad_behind_reshapes(graph: Graph) -> Graph:
    """reshape(pad(x)) that only adds axes of 1 becomes pad(reshape(x)): the pad of a
    layer over time stands where that of an image does, and joins its layer."""
    users, edit = graph.consumers(), Edit(graph)
    for node in graph.nodes:
        shape = _shape_behind(node, graph, users)
        if shape is None:
            edit.keep(node)
            continue
        x, y = (edit.tensors[edit.name(n)] for n in (node.inputs[0], node.output))
        inner, made = edit.fresh(f"{x.name}.more"), edit.fresh(f"{y.name}.more")
        pads = iter(node.attrs["pads"])
        kept = _kept_axes(y.shape, shape)
        axes = range(len(shape))
        given = tuple(next(pads) if at in kept else (0, 0) for at in axes)
        sizes = iter(x.shape)
        before = tuple(next(sizes) if at in kept else 1 for at in axes)
        first = Node("reshape", inner, (x.name,), (inner,))
        padded = replace(node, inputs=(inner, *node.inputs[1:]), outputs=(made,))
        padded = padded.with_attrs(pads=given)
        back = Node("reshape", f"{node.name}.less", (made,), node.outputs)
        for one, sizes_after in ((first, before), (padded, ()), (back, y.shape)):
            edit.emit(one, shape=sizes_after, dtype=x.dtype, quant=x.quant)
    return edit.done()


def _shape_behind(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]]
) -> tuple[int, ...] | None:
    """The one shape to which all readers of a pad reshape it by adding axes of 1."""
    if node.op != "pad" or node.output in graph.outputs:
        return None
    readers = users.get(node.output, ())
    shapes = {graph.tensor(r.output).shape for r in readers if r.op == "reshape"}
    if len(shapes) != 1 or any(r.op != "reshape" for r in readers):
        return None
    shape, y = shapes.pop(), graph.tensor(node.output).shape
    more = len(shape) > len(y) and len(_kept_axes(y, shape)) == len(y)
    return shape if more else None


def _kept_axes(fewer: tuple[int, ...], more: tuple[int, ...]) -> list[int]:
    """The axes of the longer shape that are those of the other, without some of 1."""
    kept: list[int] = []
    for at, size in enumerate(more):
        if len(kept) < len(fewer) and size == fewer[len(kept)]:
            kept.append(at)
        elif size != 1:
            return []
    return kept
