"""Images with channels first, read and written row by row.

A transpose at an input or output moves all of it at once. A concat of an input's
planes makes a row of pixels at a time, and slices of a row of pixels write a row of
each plane of an output: planes are views of the image. What converts its elements,
such as quantize or a cast of float16, converts pixels.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit
from pybuild.passes.ends.when_set import conversions
from pybuild.passes.layout import to_first, to_last

# planes that a row of pixels is made of, at most: each is an operand of a kernel
MOST_PLANES = 4
# planes that a row of pixels is written to, at most: each is a step
MOST_WRITTEN = 8


def by_planes(graph: Graph) -> Graph | None:
    """The graph with pixels of inputs made of planes, and outputs written plane by
    plane; images are converted pixel by pixel. None: no input or output is transposed.

    Shapes  inputs and outputs [1,C,H,W]
    """
    if graph.is_placed or graph.storage or graph.windows:
        return None
    names = (*graph.inputs, *conversions(graph).values())
    found = [(_turned(graph, name), _pixels) for name in names]
    found += [(_written(graph, name), _planes) for name in graph.outputs]
    ways = {node.output: way for way in found for node in way[0]}
    if not ways:
        return None
    edit = Edit(graph)
    for node in graph.nodes:
        nodes, write = ways.get(node.output, ((), None))
        if write is None:
            edit.keep(node)
        elif node is nodes[-1]:
            write(edit, nodes)
    return edit.done()


def _turned(graph: Graph, name: str) -> tuple[Node, ...]:
    """The transpose that reads an input, behind what converts it; (): none."""
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
        if not _converts(node):
            return ()
        name = node.output
    return ()


def _converts(node: Node) -> bool:
    """True if it gives each element another type."""
    cast = node.op == "map" and node.attrs["fn"] == "cast"
    return cast or node.op in ("quantize", "dequantize")


def _written(graph: Graph, name: str) -> tuple[Node, ...]:
    """The transpose that makes an output, with what converts it before or after, in the
    order in which they run; (): none."""
    shape, users = graph.tensor(name).shape, graph.consumers()
    makers = graph.producers()
    if len(shape) != 4 or shape[0] != 1 or not 1 < shape[1] <= MOST_WRITTEN:
        return ()
    if graph.outputs.count(name) > 1 or name in graph.state or users[name]:
        return ()
    found: list[Node] = []
    while name in makers:
        node = makers[name]
        turned = any(one.op == "transpose" for one in found)
        if not _converts(node) and (node.op != "transpose" or turned):
            break
        found.insert(0, node)
        name = node.inputs[0]
        if len(users[name]) != 1 or name in graph.outputs:
            break
    turns = [node for node in found if node.op == "transpose"]
    if not turns or tuple(turns[0].attrs["perm"]) != to_first(4):
        return ()
    return tuple(found)


def _pixels(edit: Edit, nodes: tuple[Node, ...]) -> None:
    """Planes, side by side, then converted as they were."""
    name = nodes[0].inputs[0]
    image = edit.tensors[name]
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
    *converts, last = nodes
    pixels = edit.fresh(f"{name}.nhwc") if converts else last.output
    joined = Node("concat", last.name, tuple(planes), (pixels,), {"axis": 3})
    edit.emit(joined, quant=quant, dtype=dtype)
    for node in converts:
        like = edit.old.tensor(node.output)
        made = last.output if node is converts[-1] else edit.fresh(f"{like.name}.nhwc")
        node = replace(node, inputs=(pixels,), outputs=(made,))
        edit.emit(node, quant=like.quant, dtype=like.dtype)
        pixels = made


def _planes(edit: Edit, nodes: tuple[Node, ...]) -> None:
    """Pixels, converted where they were not, then each plane of them."""
    made = edit.tensors[nodes[-1].output]
    (turn,) = (node for node in nodes if node.op == "transpose")
    pixels = nodes[0].inputs[0]
    _, count, height, width = made.shape
    quant, dtype = made.quant, made.dtype
    for node in nodes:
        if node is not turn:
            like = edit.old.tensor(node.output)
            converted = edit.fresh(f"{made.name}.nhwc")
            node = replace(node, inputs=(pixels,), outputs=(converted,))
            edit.emit(node, quant=like.quant, dtype=like.dtype)
            pixels = converted
    planes = []
    for number in range(count):
        column = edit.fresh(f"{made.name}.pixels{number}")
        ends = {"begin": (0, 0, 0, number), "end": (1, height, width, number + 1)}
        attrs = {**ends, "strides": (1, 1, 1, 1)}
        node = Node("slice", column, (pixels,), (column,), attrs)
        edit.emit(node, quant=quant, dtype=dtype)
        plane = edit.fresh(f"{made.name}.plane{number}")
        node = Node("reshape", plane, (column,), (plane,))
        edit.emit(node, shape=(1, 1, height, width), quant=quant, dtype=dtype)
        planes.append(plane)
    joined = Node("concat", turn.name, tuple(planes), (made.name,), {"axis": 1})
    edit.emit(joined, quant=quant, dtype=dtype)
