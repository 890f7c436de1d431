"""Finds the constants of a kernel that depend on parameters, by trying other values.

A kernel must not depend on them: the same code and arguments for any values. Packing
other values is making the candidates again. Knows no operator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.kernels.base.candidate import Candidate, Packed

Offer = Callable[[Graph], list[Candidate]]


def with_values(graph: Graph, values: Mapping[str, Array]) -> Graph:
    """The graph with other values of some of its constants."""
    return replace(graph, constants={**graph.constants, **values})


def bound(node: Node, graph: Graph, offer: Offer) -> list[Candidate]:
    """The candidates, their constants marked that depend on parameters.

    offer   makes the candidates of the node for values of its constants
    Errors  BuildError if the code depends on the values of a parameter
    """
    names = sorted({n for n in node.inputs if n in graph.parameters})
    found = offer(graph)
    if not names:
        return found
    zeros = {n: np.zeros_like(graph.constants[n]) for n in names}
    blank = offer(with_values(graph, zeros))
    trials = {
        n: offer(with_values(graph, {**zeros, n: _pattern(graph.constants[n])}))
        for n in names
    }
    for other in (blank, *trials.values()):
        if [(c.func, c.args) for c in other] != [(c.func, c.args) for c in found]:
            what = "its code depends on the values of a parameter"
            raise BuildError(graph.where(node), what, "make it a constant")
    return [
        replace(
            candidate,
            constants=tuple(
                _marked(node, graph, candidate, at, blank[i].constants[at],
                        {n: trial[i].constants[at] for n, trial in trials.items()})
                for at in range(len(candidate.constants))
            ),
        )
        for i, candidate in enumerate(found)
    ]  # fmt: skip


def _pattern(like: Array) -> Array:
    """Values that no other order of elements gives, small enough for any sum."""
    return (np.arange(like.size).reshape(like.shape) % 101 + 1).astype(like.dtype)


def _marked(
    node: Node,
    graph: Graph,
    candidate: Candidate,
    at: int,
    blank: Packed,
    trials: Mapping[str, Packed],
) -> Packed:
    packed = candidate.constants[at]
    made_of = tuple(n for n, t in trials.items() if not _same(t.array, blank.array))
    if not made_of:
        return packed
    name = made_of[0]
    as_it_is = len(made_of) == 1 and _same(
        trials[name].array.reshape(-1), _pattern(graph.constants[name]).reshape(-1)
    )
    if as_it_is:
        layout = _moved(graph, name)
    else:
        layout = _layout(node, graph, candidate, at, blank)
    return replace(packed, parameters=made_of, layout=layout)


def _same(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)


def _moved(graph: Graph, name: str) -> int:
    """0: the user's own array; else of one with its elements moved, for any layer."""
    if graph.parameters[name] == name:
        return 0
    return zlib.crc32(repr(_type(graph, graph.tensor(name))).encode()) or 1


def _type(graph: Graph, tensor: Tensor) -> tuple[object, ...]:
    """Type and shape, and what a parameter is called beyond its user's name."""
    name = tensor.name
    end = name.removeprefix(graph.parameters.get(name, name))
    return tensor.shape, tensor.dtype.value, end


def _layout(
    node: Node, graph: Graph, candidate: Candidate, at: int, blank: Packed
) -> int:
    """Equal for equal arrangements, of whatever layer and model; never 0."""
    types = []
    for name in (*node.inputs, *node.outputs):
        absent = Tensor("", (), graph.tensor(node.output).dtype)
        tensor = graph.tensors.get(name, absent)
        types.append((*_type(graph, tensor), tensor.quant))
    assert candidate.func is not None
    code = replace(candidate.func, name="")
    text = repr((node.op, sorted(node.attrs.items()), types, code, candidate.args, at))
    data = text.encode() + blank.array.tobytes()
    return zlib.crc32(data) or 1
