"""The option `layout`: an input or output in another order of axes than in the file.

Adds one transpose at the boundary; the pass `transposes` then removes both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pybuild.errors import BuildError, Problem, fitting
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY

# nhcw: a row of pixels is a row of each plane, as a row of an input that is pushed is
ROWS = "nhcw"
LAYOUTS = ("nchw", "nhwc", ROWS)
# axes of the least tensor that has channels to move
LEAST_RANK = 3
# what has no order of axes of its own; a search for transposes looks through it
_THROUGH = (
    *UNARY, *BINARY, "copy", "quantize", "dequantize", "concat", "pad", "slice",
)  # fmt: skip


def set_layout(graph: Graph, layout: Mapping[str, str]) -> Graph:
    """Changes the shape of the named inputs and outputs.

    Errors  BuildError for a name or layout that does not exist
    """
    problems = [p for name, want in layout.items() for p in _check(graph, name, want)]
    if problems:
        raise BuildError.of(problems)
    for name, want in layout.items():
        if layout_of(graph, name) == want:
            continue
        change = _input if name in graph.inputs else _output
        graph = change(graph, name, want)
    return graph


def layout_of_pushed(
    graph: Graph, pushed: Iterable[str], layout: Mapping[str, str]
) -> Mapping[str, str]:
    """The layout, with that of inputs that are pushed: a row of an image with channels
    first is a row of each of its planes."""
    names = (name for name in pushed if name in graph.inputs and name not in layout)
    planes = [
        name
        for name in names
        if len(graph.tensor(name).shape) == 4 and layout_of(graph, name) == "nchw"
    ]
    return {**layout, **dict.fromkeys(planes, ROWS)}


def _check(graph: Graph, name: str, want: str) -> Iterable[Problem]:
    names = (*graph.inputs, *graph.outputs)
    if name not in names:
        hint = fitting(name, names)
        yield Problem("--layout", f"the model has no input or output '{name}'", hint)
    elif want not in LAYOUTS:
        hint = fitting(want, LAYOUTS)
        yield Problem("--layout", f"'{want}' is unknown", hint)
    elif len(graph.tensor(name).shape) < LEAST_RANK:
        shape = list(graph.tensor(name).shape)
        yield Problem("--layout", f"'{name}' of shape {shape} has no channels to move")


def layout_of(graph: Graph, name: str) -> str:
    """The layout in the file: "nchw" if a spatial operator's transpose follows."""
    rank = len(graph.tensor(name).shape)
    forward = name in graph.inputs
    perm = to_last(rank) if forward else to_first(rank)
    users, producers = graph.consumers(), graph.producers()
    todo, seen = [name], {name}
    while todo:
        at = todo.pop()
        near = users[at] if forward else [n for n in [producers.get(at)] if n]
        for node in near:
            if node.op == "transpose" and tuple(node.attrs["perm"]) == perm:
                return "nchw"
            if node.op in _THROUGH:
                following = node.outputs if forward else node.inputs
                todo += [n for n in following if n and n not in seen]
                seen |= set(following)
    return "nhwc"


def to_last(rank: int) -> tuple[int, ...]:
    """The perm that moves channels from axis 1 to the end."""
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """The perm that moves channels from the end to axis 1."""
    return (0, rank - 1, *range(1, rank - 1))


def _perms(rank: int, want: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """From the file's order to the wanted one, and back."""
    if want == ROWS:
        swap = (0, 2, 1, *range(3, rank))
        return swap, swap
    if want == "nhwc":
        return to_last(rank), to_first(rank)
    return to_first(rank), to_last(rank)


def _input(graph: Graph, name: str, want: str) -> Graph:
    tensor = graph.tensor(name)
    there, back = _perms(len(tensor.shape), want)
    inner, shaped = _both(graph, tensor, there)
    nodes = [Node("transpose", inner.name, (name,), (inner.name,), {"perm": back})]
    for node in graph.nodes:
        inputs = tuple(inner.name if n == name else n for n in node.inputs)
        nodes.append(replace(node, inputs=inputs))
    tensors = {**graph.tensors, name: shaped, inner.name: inner}
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _output(graph: Graph, name: str, want: str) -> Graph:
    tensor = graph.tensor(name)
    there, _ = _perms(len(tensor.shape), want)
    inner, shaped = _both(graph, tensor, there)

    def names(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(inner.name if n == name else n for n in found)

    nodes = [
        replace(n, inputs=names(n.inputs), outputs=names(n.outputs))
        for n in graph.nodes
    ]
    nodes.append(Node("transpose", name, (inner.name,), (name,), {"perm": there}))
    tensors = {**graph.tensors, name: shaped, inner.name: inner}
    bounded = dict(graph.bounded)
    if name in bounded:
        axis = there.index(bounded[name].axis)
        bounded[name] = replace(bounded[name], axis=axis)
    return replace(graph, nodes=tuple(nodes), tensors=tensors, bounded=bounded)


def _both(graph: Graph, tensor: Tensor, perm: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The tensor as the file has it, under a new name; and as the boundary has it."""
    name = f"{tensor.name}.inner"
    while name in graph.tensors:
        name += "."
    shape = tuple(tensor.shape[axis] for axis in perm)
    return replace(tensor, name=name), replace(tensor, shape=shape)
