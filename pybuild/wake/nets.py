"""Nets side by side in one graph, so that they share scratch memory and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Node, State, verify


def rows_of_nets(nets: Mapping[str, Graph], bands: int) -> int:
    """The rows of features that all nets take in a step.

    Errors  BuildError with every net that is not one for a wake word
    """
    found: list[Problem] = []
    rows: dict[str, int] = {}
    for name, net in nets.items():
        ends = [net.tensor(one) for one in (*net.inputs, *net.outputs)]
        if len(net.inputs) != 1 or len(net.outputs) != 1:
            what = f"has {len(net.inputs)} inputs and {len(net.outputs)} outputs"
            found.append(Problem(net.source, what, "a wake word has one of each"))
            continue
        x, y = ends
        if x.dtype is not DType.INT8 or x.shape[-1:] != (bands,) or x.size % bands:
            what = f"input '{x.name}' is {x.dtype.value}{list(x.shape)}"
            hint = f"int8[1, rows, {bands}]: rows of {bands} features"
            found.append(Problem(net.source, what, hint))
        if y.dtype is not DType.UINT8 or y.size != 1:
            what = f"output '{y.name}' is {y.dtype.value}{list(y.shape)}"
            found.append(Problem(net.source, what, "uint8[1, 1], a probability"))
        rows[name] = x.size // bands
    if not found and len(set(rows.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in rows.items())
        what = f"nets take different numbers of rows in a step: {told}"
        found.append(Problem("--package esphome", what, "one package for each number"))
    if found:
        raise BuildError.of(found)
    return next(iter(rows.values()))


def side_by_side(nets: Mapping[str, Graph], source: str) -> Graph:
    """One graph of all nets, which run one after the other.

    source   the name that errors have for it
    Returns  inputs 'NAME rows' and outputs NAME of each net; constants of equal bytes
             are one in the tree that is built
    """
    nodes: list[Node] = []
    whole = Graph("nets", source, (), {}, (), ())
    tensors, constants = dict(whole.tensors), dict(whole.constants)
    state, origins = dict(whole.state), dict(whole.origins)
    inputs, outputs = list[str](), list[str]()
    for name, net in nets.items():
        names = {n: f"{name}/{n}" for n in net.tensors}
        names[net.inputs[0]], names[net.outputs[0]] = f"{name} rows", name
        names[""] = ""
        tensors |= {names[n]: replace(t, name=names[n]) for n, t in net.tensors.items()}
        constants |= {names[n]: value for n, value in net.constants.items()}
        nodes += [_renamed(node, name, names) for node in net.nodes]
        for old, kept in net.state.items():
            state[names[old]] = State(names[kept.next], kept.initial)
        origins |= {names[n]: o for n, o in net.origins.items() if n in names}
        inputs.append(names[net.inputs[0]])
        outputs.append(names[net.outputs[0]])
    made = replace(
        whole, nodes=tuple(nodes), tensors=tensors, constants=constants, state=state,
        inputs=tuple(inputs), outputs=tuple(outputs), origins=origins,
    )  # fmt: skip
    verify(made)
    return made


def _renamed(node: Node, net: str, names: Mapping[str, str]) -> Node:
    return replace(
        node, name=f"{net}/{node.name}",
        inputs=tuple(names[n] for n in node.inputs),
        outputs=tuple(names[n] for n in node.outputs),
    )  # fmt: skip
