"""A graph over many samples in numpy: several at once where that means the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.interpret import operator_of
from pybuild.quantisation.samples import Samples
from pybuild.records import dataclass

# bytes that all tensors of the samples computed at once may take
_ROOM = 1 << 28
_MOST = 64

Values = Mapping[str, Array]


class NodeError(Exception):
    """An operator that refuses a node, and which."""

    def __init__(self, node: Node, error: BuildError) -> None:
        super().__init__(str(error))
        self.node, self.problem = node, error.problems[0]


@dataclass(frozen=True)
class Execution:
    """A graph that runs `chunk` samples at a time: together, or one by one."""

    graph: Graph
    chunk: int
    together: bool

    def over(self, samples: Samples) -> Iterator[dict[str, Array]]:
        """Every tensor that moves, [samples of the chunk, *shape], chunk by chunk."""
        for given in samples.chunks(self.chunk):
            count = len(next(iter(given.values())))
            if self.together:
                sized = batched(self.graph, count)
                made = run(sized, {name: v[:, 0] for name, v in given.items()})
                yield {name: value[:, None] for name, value in made.items()}
            else:
                each = [
                    run(self.graph, {name: v[i] for name, v in given.items()})
                    for i in range(count)
                ]
                yield {name: np.stack([one[name] for one in each]) for name in each[0]}


def execution(graph: Graph, samples: Samples) -> Execution:
    """Several samples together if two of them give what each gives alone.

    Errors  NodeError
    """
    each = sum(graph.tensor(name).size * 8 for name in _moving(graph))
    chunk = max(1, min(_MOST, samples.count, _ROOM // max(each, 1)))
    return Execution(graph, chunk, chunk > 1 and _alike(graph, samples))


def like(graph: Graph, other: Execution) -> Execution:
    """The execution of a graph that treats each sample as another graph does."""
    return Execution(graph, other.chunk, other.together and _rows_alike(graph))


def _alike(graph: Graph, samples: Samples) -> bool:
    if not _rows_alike(graph):
        return False
    two = {name: value[:2] for name, value in samples.inputs.items()}
    alone = [run(graph, {n: v[index] for n, v in two.items()}) for index in range(2)]
    try:
        together = run(batched(graph, 2), {n: v[:, 0] for n, v in two.items()})
    except (NodeError, ValueError, IndexError):
        return False
    return all(
        together[name].shape[0] == 2
        and together[name][index : index + 1].shape == value.shape
        and _near(together[name][index : index + 1], value)
        for index in range(2)
        for name, value in alone[index].items()
    )


def run(graph: Graph, inputs: Values) -> dict[str, Array]:
    """The values of each node for the inputs; the inputs and the outputs of nodes.

    Errors  NodeError for a node that its operator refuses
    """
    values: dict[str, Array] = dict(inputs)
    constants = graph.constants
    for node in graph.nodes:
        reads = [
            (values[name] if name in values else constants[name]) if name else None
            for name in node.inputs
        ]
        try:
            made = operator_of(node, graph).reference(node, graph, reads)
        except BuildError as error:
            raise NodeError(node, error) from None
        values.update(zip(node.outputs, made, strict=True))
    return values


def batched(graph: Graph, count: int) -> Graph:
    """The graph for `count` samples along the first axis of all that moves."""
    moving = _moving(graph)
    tensors = {
        name: _sized(tensor, count) if name in moving else tensor
        for name, tensor in graph.tensors.items()
    }
    nodes = tuple(_longer(node, count) for node in graph.nodes)
    return replace(graph, tensors=tensors, nodes=nodes)


def _longer(node: Node, count: int) -> Node:
    """A slice names the end of the first axis."""
    end = node.attrs.get("end")
    if node.op != "slice" or not end or end[0] != 1:
        return node
    return node.with_attrs(end=(count, *end[1:]))


def _sized(tensor: Tensor, count: int) -> Tensor:
    return replace(tensor, shape=(count, *tensor.shape[1:]))


def _moving(graph: Graph) -> set[str]:
    """The tensors that differ from sample to sample."""
    found = set(graph.inputs)
    for node in graph.nodes:
        if found & set(node.inputs):
            found.update(node.outputs)
    return found


def _rows_alike(graph: Graph) -> bool:
    """True if all that moves has a first axis of 1."""
    moving = _moving(graph)
    made = all(set(node.outputs) <= moving for node in graph.nodes)
    return made and all(graph.tensor(name).shape[:1] == (1,) for name in moving)


def _near(a: Array, b: Array) -> bool:
    """Integers are equal, floats up to the order of their sums."""
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-5 * float(np.abs(b).max())))
