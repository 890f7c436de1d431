"""Functions of one int8 tensor become tables of 256 bytes or floats, or layers of one
tap.

What each integer becomes is computed at build time by the nodes themselves, a GELU of
floats for example. What has constants of each channel becomes layers: affine.py for
BatchNormalization, bends.py for PReLU. Integers that are rounded here are the board's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.ops.eltwise import fits
from pybuild.ops.interpret import operator_of
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit
from pybuild.passes.legalise import rounded
from pybuild.passes.lookups.affine import Line
from pybuild.passes.lookups.bends import as_layers
from pybuild.records import dataclass

_TWO = (*BINARY, "prelu")
_BETWEEN = ("quantize", "dequantize", "reshape")
_ONE = (*UNARY, "quantize", "lookup")
_SINGLE = (*_ONE, *_TWO, "dequantize")
# of map: these change the shape, or the type of what has no scale
_OTHERS = ("copy", "cast")
# functions of floats that take no longer than an entry of a table
_CHEAP = ("abs", "add", "clip", "leaky_relu", "multiply", "negate", "subtract")
_INPUT = np.arange(-128, 128).astype(np.int8)
# how many tensors back a root is looked for
_FARTHEST = 32


@dataclass(frozen=True)
class _Chain:
    """The nodes that make one tensor of `root`, in order; the last one makes it.

    closed    nothing else reads what they compute on the way
    channels  for each of which a constant may have a number; 1: none has
    """

    root: str
    nodes: tuple[Node, ...]
    closed: bool
    channels: int


def use_tables(graph: Graph, rounding: str) -> Graph:
    """Each int8 tensor that is a function of one int8 tensor as a lookup, where that
    costs less, and each float that the file does not round. Between a dequantize and a
    quantize it is computed as floats, as the file says.

    rounding  litert | tflm | single | onnx
    """
    search, edit = _Search(graph), Edit(graph)
    made: dict[str, tuple[Node, ...]] = {}
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        new: tuple[Node, ...] = (node,)
        if _is_whole(graph.tensor(node.output)) and not graph.known(node.output):
            new = _as_table(edit, node, search.chains(node), rounding)
        elif _is_dear(node, graph) and not search.is_rounded(node.output):
            new = _as_reals(edit, node, search.chains(node), rounding)
        made[node.output] = new
        needed.update(name for one in new for name in one.inputs)
    if all(made.get(node.output, (node,)) == (node,) for node in graph.nodes):
        return graph
    nodes = (one for node in graph.nodes for one in made.get(node.output, (node,)))
    return remove_dead(edit.done(nodes))


def _is_whole(tensor: Tensor) -> bool:
    """int8, with one scale for all of it."""
    whole = tensor.quant is not None and len(tensor.quant.scale) == 1
    return whole and tensor.dtype is DType.INT8


def _numbers(tensor: Tensor) -> int:
    """1 of a number for all elements, the channels of one for each of them; else 0."""
    last = tensor.shape[-1] if tensor.shape else 1
    return last if tensor.size == last else 0


def _axis(tensor: Tensor) -> int:
    """How many elements a tensor of one axis has; 0: of several."""
    return tensor.size if tensor.size == max(tensor.shape, default=1) else 0


def _sources(graph: Graph) -> dict[str, tuple[str, ...]]:
    """For each tensor: the tensors of which each of its elements is a function of one
    element, and of its channel; the nearest first.
    """
    found: dict[str, tuple[str, ...]] = {}
    known = (name for name in graph.constants if graph.known(name))
    numbers = {name: _axis(graph.tensor(name)) for name in known}
    for node in graph.nodes:
        if node.op == "reshape" and numbers.get(node.inputs[0]):
            numbers[node.output] = _axis(graph.tensor(node.output))
            continue
        single = node.op in _SINGLE or (
            node.op == "map" and node.attrs["fn"] not in _OTHERS
        )
        given = node.inputs[:1] if node.op == "lookup" else node.inputs
        reads = [n for n in given if n and not numbers.get(n)]
        if not single or node.device:
            continue
        if not reads:
            numbers[node.output] = _axis(graph.tensor(node.output))
            continue
        counts = {_numbers(graph.tensor(n)) for n in given if n in numbers} - {1}
        if counts - {*graph.tensor(node.output).shape[-1:]}:
            continue
        shapes = {graph.tensor(n).shape for n in (*reads, node.output)}
        if len(shapes) > 1:
            continue
        first, *others = ((n, *found.get(n, ())) for n in dict.fromkeys(reads))
        common = (n for n in first if all(n in other for other in others))
        found[node.output] = tuple(common)[:_FARTHEST]
    return found


class _Search:
    """Looks for chains from a root to a node."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._sources = _sources(graph)
        self._makers = graph.producers()
        self._users = graph.consumers()
        self._places = {node.output: i for i, node in enumerate(graph.nodes)}

    def is_rounded(self, name: str) -> bool:
        """True if all that reads a tensor makes integers of it."""
        users = self._users[name]
        return bool(users) and all(
            user.op == "quantize" and bool(user.attrs.get("simulated"))
            for user in users
        )

    def chains(self, last: Node) -> list[_Chain]:
        """From each int8 root, the nearest first."""
        roots = self._sources.get(last.output, ())
        return [self._chain(last, root) for root in roots
                if _is_whole(self._graph.tensor(root))]  # fmt: skip

    def _chain(self, last: Node, root: str) -> _Chain:
        nodes: dict[str, Node] = {}
        stack = [last.output]
        while stack:
            name = stack.pop()
            if name != root and name in self._makers and name not in nodes:
                nodes[name] = self._makers[name]
                stack += [n for n in nodes[name].inputs if n]
        readers = [
            user
            for name, node in nodes.items()
            if node is not last and node.op != "dequantize"
            for user in self._users[name]
        ]
        closed = all(user.output in nodes for user in readers)
        closed = closed and nodes.keys() & set(self._graph.outputs) <= {last.output}
        order = sorted(nodes.values(), key=lambda node: self._places[node.output])
        return _Chain(root, tuple(order), closed, self._channels(order))

    def _channels(self, nodes: Sequence[Node]) -> int:
        known = self._graph.constants
        held = [n for node in nodes if node.op != "lookup" for n in node.inputs]
        counts = [_axis(self._graph.tensor(n)) for n in held if n in known]
        return max(counts, default=1) or 1


def _as_table(
    edit: Edit, node: Node, chains: Sequence[_Chain], rounding: str
) -> tuple[Node, ...]:
    """The node itself where no chain to it is worth a table or a layer, or has one."""
    worthy = [c for c in chains if _is_worthy(c)]
    closed = [c for c in worthy if c.closed]
    for chain in (*reversed(closed), *(c for c in worthy if not c.closed)):
        if chain.channels > 1 and (not chain.closed or _is_layer(chain)):
            continue  # a layer of one tap would be more than what is there
        try:
            made = _made(edit.old, chain, rounding)
        except BuildError:  # said with all others when kernels are chosen
            made = None
        if made is None:
            continue
        table, reals = made
        if chain.channels == 1:
            name = edit.constant(f"{node.output}.table", table[:, 0].copy())
            inputs = (chain.root, name)
            return (replace(node, op="lookup", inputs=inputs, attrs={}),)
        if reals is not None:
            line = Line(edit.old.tensor(chain.root), node, reals, table)
            if layers := as_layers(edit, line, rounding):
                return layers
    return (node,)


def _is_layer(chain: _Chain) -> bool:
    """True for an add, sub or mul of integers by the scales of the file: a layer."""
    functions = [node.op for node in chain.nodes if node.op not in _BETWEEN]
    both = sum(node.op == "dequantize" for node in chain.nodes) == 2
    return both and len(functions) == 1 and functions[0] in BINARY


def _is_dear(node: Node, graph: Graph) -> bool:
    """True for floats of which a function may take longer than a table's entry."""
    y = graph.tensor(node.output)
    return y.dtype is DType.FLOAT32 and y.size >= _INPUT.size


def _as_reals(
    edit: Edit, node: Node, chains: Sequence[_Chain], rounding: str
) -> tuple[Node, ...]:
    """Floats that are a function of one int8, as a table of 256 floats."""
    for chain in chains[:1]:
        dear = any(
            str(one.attrs.get("fn", one.op)) not in _CHEAP
            for one in chain.nodes
            if one.op in (*UNARY, "map")
        )
        if not dear or not chain.closed or chain.channels > 1:
            continue
        try:
            made = _made(edit.old, chain, rounding)
        except BuildError:  # said with all others when kernels are chosen
            made = None
        if made is not None and made[0].dtype == np.float32:
            name = edit.constant(f"{node.output}.table", made[0][:, 0].copy())
            return (replace(node, op="lookup", inputs=(chain.root, name), attrs={}),)
    return (node,)


def _is_worthy(chain: _Chain) -> bool:
    """True if a table costs less than what it replaces. One function of a byte is a
    table anyway, which its operator names.
    """
    ops = [node.op for node in chain.nodes]
    last = next((op for op in reversed(ops) if op not in _BETWEEN), "")
    moved = ("dequantize", "reshape")
    count = sum(1 if op in _ONE else 2 for op in ops if op not in moved)
    simulated = bool(chain.nodes[-1].attrs.get("simulated"))
    alone = simulated and len(ops) == 3 and last in UNARY
    return count > 1 and not alone and (chain.closed or last in _TWO)


def _made(
    graph: Graph, chain: _Chain, rounding: str
) -> tuple[Array, Array | None] | None:
    """What each integer of the root becomes in each channel, and the float32 that it
    rounds, if any; None: not all are numbers on the way, or some leave int32.

    Shapes  [256, channels]
    Errors  BuildError, as the operators have them
    """
    shape = (_INPUT.size, chain.channels)
    values: dict[str, Array] = {chain.root: np.broadcast_to(_INPUT[:, None], shape)}
    moved, reals = {chain.root: replace(graph.tensor(chain.root), shape=shape)}, None
    for node in chain.nodes:
        depends = not moved.keys().isdisjoint(node.inputs)
        reads = [values.get(n, graph.constants.get(n)) if n else None
                 for n in node.inputs]  # fmt: skip
        tensors = {**graph.tensors, **moved}
        if depends:
            moved[node.output] = replace(graph.tensor(node.output), shape=shape)
            tensors[node.output] = moved[node.output]
            for at, name in enumerate(node.inputs):  # numbers of each channel: a row
                value = reads[at]
                if value is not None and value.ndim > len(shape):
                    reads[at] = value = value.reshape(-1, value.shape[-1])
                    tensors[name] = replace(tensors[name], shape=value.shape)
        small = replace(graph, tensors=tensors)
        node = rounded(node, small, rounding)
        whole = small.tensor(node.output).dtype is DType.INT8
        if node.op in _TWO and whole and not fits(node, small):
            return None
        with np.errstate(all="ignore"):
            made = operator_of(node, small).reference(node, small, reads)[0]
        if made.dtype == np.float32 and not np.isfinite(made).all():
            return None
        if depends:
            made = np.broadcast_to(made.reshape(-1, made.shape[-1]), shape)
        values[node.output] = made
    last = chain.nodes[-1]
    if last.op == "quantize":
        reals = values.get(last.inputs[0])
    is_real = reals is not None and reals.dtype == np.float32
    return values[last.output], reals if is_real else None
