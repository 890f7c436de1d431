"""Inputs and outputs of a graph under names that the user chose."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem, fitting
from pybuild.ir.graph import Graph, Node

Run = Callable[[Mapping[str, Array]], dict[str, Array]]

OPTION = "--rename"
_PLACE = re.compile(r"(input|output):(\d+)")


def with_names(graph: Graph, chosen: Mapping[str, str]) -> Graph:
    """The graph with inputs and outputs renamed; it remembers their names in the file.

    chosen  old -> new; old is a name, or input:N and output:N by position, which a
            new export of the same net keeps
    Errors  BuildError for an old name that is not there, a new one that is taken
    """
    if not chosen:
        return graph
    ends = (*graph.inputs, *graph.outputs)
    names: dict[str, str] = {}
    found: list[Problem] = []
    for old, new in chosen.items():
        name = _meant(graph, old)
        if name not in ends:
            hint = fitting(old, (*ends, "input:0", "output:0"))
            what = f"there is no input or output '{old}'"
            found.append(Problem(OPTION, what, hint))
        elif not new:
            found.append(Problem(OPTION, f"'{old}' gets no name"))
        else:
            names[name] = new
    kept = set(graph.tensors) - set(names)
    for new in names.values():
        if new in kept or list(names.values()).count(new) > 1:
            what = f"'{new}' is the name of another tensor"
            found.append(Problem(OPTION, what))
    if found:
        raise BuildError.of(dict.fromkeys(found))
    made = renamed(graph, names)
    return replace(made, renamed={new: old for old, new in names.items()})


def as_in_file(graph: Graph) -> Graph:
    """The graph with the names of its file again; a tensor that a pass has given such a
    name, which was free, gets another."""
    names = dict(graph.renamed)
    for name in set(names.values()) & set(graph.tensors) - set(names):
        other = f"{name}.inside"
        while other in graph.tensors:
            other += "_"
        names[name] = other
    return replace(renamed(graph, names), renamed={})


def _meant(graph: Graph, old: str) -> str:
    place = _PLACE.fullmatch(old)
    if place is None:
        return old
    ends = graph.inputs if place[1] == "input" else graph.outputs
    return ends[int(place[2])] if int(place[2]) < len(ends) else old


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with other names of tensors; layers keep theirs."""

    def one(name: str) -> str:
        return names.get(name, name)

    def keys(known: Mapping[str, Any]) -> dict[str, Any]:
        return {one(name): value for name, value in known.items()}

    def node(old: Node) -> Node:
        reads, makes = (tuple(map(one, side)) for side in (old.inputs, old.outputs))
        return replace(old, inputs=reads, outputs=makes, of=tuple(map(node, old.of)))

    tensors = {one(n): replace(t, name=one(n)) for n, t in graph.tensors.items()}
    state = {
        one(n): replace(kept, next=one(kept.next)) for n, kept in graph.state.items()
    }
    bounded = {
        one(n): replace(bound, count=one(bound.count))
        for n, bound in graph.bounded.items()
    }
    return replace(
        graph,
        nodes=tuple(map(node, graph.nodes)),
        tensors=tensors,
        inputs=tuple(map(one, graph.inputs)),
        outputs=tuple(map(one, graph.outputs)),
        constants=keys(graph.constants),
        lazy=tuple(map(one, graph.lazy)),
        storage=keys(graph.storage),
        homes=keys(graph.homes),
        state=state,
        windows=keys(graph.windows),
        bounded=bounded,
        sampled=one(graph.sampled),
        fixed=keys(graph.fixed),
    )


def under(run: Run, names: Mapping[str, str]) -> Run:
    """A run of what knows the file's names, by those that the user chose.

    names  chosen -> the file's, as Graph.renamed has them
    """
    chosen = {old: new for new, old in names.items()}

    def other(inputs: Mapping[str, Array]) -> dict[str, Array]:
        made = run({names.get(name, name): value for name, value in inputs.items()})
        return {chosen.get(name, name): value for name, value in made.items()}

    return other
