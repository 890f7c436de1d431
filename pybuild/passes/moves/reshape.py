"""Reshapes and slices: one after another become one; reshapes sink below element-wise
operators.

So a 1-D convolution, which stands between reshapes, meets its activation and the next
convolution.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.errors import BuildError
from pybuild.ir.graph import Attr, Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, only_reader

_ENDS = ("begin", "end", "strides")  # of a slice
_SINKING = (*UNARY, *BINARY, "quantize")
_NORMS = ("norm", "group_norm")

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


def merge_slices(graph: Graph) -> Graph:
    """A slice of a slice reads what the first one reads, where nothing else reads the
    first: torch and its exporters write one slice for each axis."""
    edit, users = Edit(graph), graph.consumers()
    slices: dict[str, Node] = {}
    for node in graph.nodes:
        if node.op == "slice":
            first = slices.get(node.inputs[0])
            if first is not None and only_reader(graph, users, first.output):
                node = replace(
                    node.with_attrs(**_both(first, node)), inputs=first.inputs
                )
            slices[node.output] = node
        edit.keep(node)
    return remove_dead(edit.done())


def _both(first: Node, second: Node) -> dict[str, Attr]:
    """The attributes of one slice that does what two do."""
    found = []
    for a, b in zip(_ranges(first), _ranges(second), strict=True):
        kept = a[b.start : b.stop if b.stop >= 0 else None : b.step]
        end = kept[-1] + (1 if kept.step > 0 else -1)
        found.append((kept.start, end, kept.step))
    return dict(zip(_ENDS, zip(*found, strict=True), strict=True))


def _ranges(node: Node) -> list[range]:
    """The places that a slice reads, along each axis."""
    return [range(*ends) for ends in zip(*(node.attrs[k] for k in _ENDS), strict=True)]


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
    if node.op not in (*_SINKING, *_NORMS):
        return False
    bases = [sources[name][0] if name in sources else None for name in node.inputs]
    wholes = [edit.tensors[base] for base in bases if base is not None]
    y = edit.tensors[node.output]
    if len({t.shape for t in wholes}) != 1 or y.size != wholes[0].size:
        return False
    operands = []
    for name, base in zip(node.inputs, bases, strict=True):
        at = base
        if at is None and node.op == "group_norm":
            at = name  # of channels, whatever shape x has
        elif at is None:
            at = _fitting(edit, name, y, wholes[0])
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
