"""A whole graph in numpy: the meaning that every back end must reproduce."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Node
from pybuild.ops import OPERATORS
from pybuild.ops.base.operator import Operator


def operator_of(node: Node, graph: Graph) -> Operator:
    """The operator of a node.

    Errors  BuildError for an operator that does not exist
    """
    found = OPERATORS.get(node.op)
    if found is None:
        raise BuildError(graph.where(node), f"the operator '{node.op}' does not exist")
    return found


def interpret(
    graph: Graph,
    inputs: Mapping[str, Array],
    state: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Runs every node; returns every tensor, constants and inputs included.

    state   what was kept from the run before (see kept()); None: nothing yet
    Errors  BuildError for inputs that do not fit
    """
    values: dict[str, Array] = dict(graph.constants)
    values |= {name: kept.initial for name, kept in graph.state.items()}
    values |= state or {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if name not in inputs:
            raise BuildError(graph.source, f"input '{name}' has no value")
        given = inputs[name]
        if given.shape != tensor.shape or given.dtype != tensor.dtype.numpy:
            what = f"input '{name}' is {given.dtype.name}{list(given.shape)}, not "
            what += f"{tensor.dtype.value}{list(tensor.shape)}"
            raise BuildError(graph.source, what)
        values[name] = given
    for node in graph.nodes:
        reads = [values[name] if name else None for name in node.inputs]
        made = operator_of(node, graph).reference(node, graph, reads)
        values.update(zip(node.outputs, made, strict=True))
    return values


def next_state(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """The state that the next run begins with, after a run that made these values."""
    return {name: values[state.next] for name, state in graph.state.items()}


def check_types(graph: Graph) -> list[Problem]:
    """Every node that is invalid, or whose outputs have other types than declared."""
    found: list[Problem] = []
    for node in graph.nodes:
        try:
            made = operator_of(node, graph).infer(node, graph)
        except BuildError as error:
            found += error.problems
            continue
        for name, (shape, dtype) in zip(node.outputs, made, strict=True):
            tensor = graph.tensor(name)
            if (tensor.shape, tensor.dtype) != (shape, dtype):
                what = f"'{name}' is {tensor.dtype.value}{list(tensor.shape)}, it "
                what += f"must be {dtype.value}{list(shape)}"
                found.append(Problem(graph.where(node), what))
    return found
