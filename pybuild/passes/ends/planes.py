"""Images with channels first, read row by row: a transpose at an input reads all of it
at once; a concat of its planes, which are views, makes a row of pixels at a time.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit
from pybuild.passes.ends.when_set import conversions
from pybuild.passes.layout import to_last

# planes that a row of pixels is made of, at most: each is an operand of a kernel
MOST_PLANES = 4


def by_planes(graph: Graph) -> Graph | None:
    """The graph with pixels of inputs made of planes; what quantises an image does so
    pixel by pixel. None: no input is transposed.

    Shapes  inputs [1,C,H,W]
    """
    if graph.is_placed or graph.storage or graph.windows:
        return None
    names = (*graph.inputs, *conversions(graph).values())
    found = {name: turned for name in names if (turned := _turned(graph, name))}
    if not found:
        return None
    gone = {node.output: name for name, nodes in found.items() for node in nodes}
    edit = Edit(graph)
    for node in graph.nodes:
        name = gone.get(node.output)
        if name is None:
            edit.keep(node)
        elif node is found[name][-1]:
            _pixels(edit, name, found[name])
    return edit.done()


def _turned(graph: Graph, name: str) -> tuple[Node, ...]:
    """The transpose that reads an input, with what quantises it before; (): none."""
    shape, users = graph.tensor(name).shape, graph.consumers()
    if name in conversions(graph):
        return ()
    if len(shape) != 4 or shape[0] != 1 or not 1 < shape[1] <= MOST_PLANES:
        return ()
    if name in graph.outputs or name in graph.state or name == graph.sampled:
        return ()
    found: list[Node] = []
    while len(users[name]) == 1 and name not in graph.outputs:
        (node,) = users[name]
        found.append(node)
        if node.op == "transpose":
            return tuple(found) if tuple(node.attrs["perm"]) == to_last(4) else ()
        if node.op != "quantize" or len(found) > 1:
            return ()
        name = node.output
    return ()


def _pixels(edit: Edit, name: str, nodes: tuple[Node, ...]) -> None:
    """Planes, side by side, then quantised where they were."""
    image, made = edit.tensors[name], edit.tensors[nodes[-1].output]
    _, count, height, width = image.shape
    quant, dtype = image.quant, image.dtype
    planes = []
    for number in range(count):
        plane = edit.fresh(f"{name}.plane{number}")
        ends = {"begin": (0, number, 0, 0), "end": (1, number + 1, height, width)}
        attrs = {**ends, "strides": (1, 1, 1, 1)}
        edit.emit(
            Node("slice", plane, (name,), (plane,), attrs), quant=quant, dtype=dtype
        )
        column = edit.fresh(f"{plane}.pixels")
        shape = (1, height, width, 1)
        node = Node("reshape", column, (plane,), (column,))
        edit.emit(node, shape=shape, quant=quant, dtype=dtype)
        planes.append(column)
    last = nodes[-1]
    quantises = nodes[0] if len(nodes) > 1 else None
    pixels = edit.fresh(f"{name}.nhwc") if quantises else last.output
    joined = Node("concat", last.name, tuple(planes), (pixels,), {"axis": 3})
    edit.emit(joined, quant=quant, dtype=dtype)
    if quantises:
        node = replace(quantises, inputs=(pixels,), outputs=(last.output,))
        edit.emit(node, quant=made.quant, dtype=made.dtype)
