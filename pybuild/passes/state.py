"""Tensors that are kept from run to run: outputs of one run, inputs of the next.

While other passes work they are inputs and outputs among others; at last a node
assigns each its next value, when all else is done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem, fitting
from pybuild.ir.graph import Graph, Node, State, Tensor
from pybuild.ops.shape import ASSIGN

OPTION = "--state"
# which are obvious
AUTO = {"auto": "auto"}


def connected(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """The graph whose inputs, by `pairs`, are what outputs were in the run before.

    They begin with zero. An output that is one no more leaves at least one other.
    Integers of another scale than the input's become its own.

    Errors  BuildError with every pair that does not fit
    """
    found, state, nodes, tensors = [], dict(graph.state), [*graph.nodes], {}
    for name, end in pairs.items():
        if name not in graph.inputs or end not in graph.outputs:
            what = f"there is no input '{name}'"
            hint = fitting(name, graph.inputs)
            if name in graph.inputs:
                what = f"there is no output '{end}'"
                hint = f"one of {', '.join(graph.outputs)}"
            elif name in graph.outputs and end in graph.inputs:
                hint = f"the other way round: {name}={end}"
            found.append(Problem(OPTION, what, hint))
            continue
        have, want = graph.tensor(end), graph.tensor(name)
        if not _fits(have, want):
            what = f"'{end}' is {_typed(have)}, '{name}' is {_typed(want)}"
            found.append(Problem(OPTION, what, "both must be of one type and shape"))
        if have.quant != want.quant:
            kept = f"{name} kept"
            nodes.append(Node("quantize", kept, (end,), (kept,)))
            tensors[kept], end = replace(want, name=kept), kept
        state[name] = State(end, zeros(want))
    if found:
        raise BuildError.of(found)
    inputs = tuple(name for name in graph.inputs if name not in pairs)
    outputs = tuple(name for name in graph.outputs if name not in pairs.values())
    return replace(
        graph, inputs=inputs, outputs=outputs or graph.outputs[:1], state=state,
        nodes=tuple(nodes), tensors={**graph.tensors, **tensors},
    )  # fmt: skip


def _fits(have: Tensor, want: Tensor) -> bool:
    """True if both have one type and shape; integers may have different scales."""
    scaled = have.quant is not None and want.quant is not None
    return replace(have, name=want.name, quant=want.quant) == want and (
        have.quant == want.quant or scaled
    )


# words of names that say which end of a state one is
_ENDS = {
    "next", "new", "out", "output", "in", "input", "prev", "previous", "past",
    "present", "last", "initial", "init", "n", "0",
}  # fmt: skip
_SHORT = re.compile(r"(h|c|hx|cx|hidden|cell|state)(0|n|in|out)")


def obvious(graph: Graph) -> dict[str, str]:
    """Input -> the output that it is in the next run, of one type, which depends on it:
    by names (`h` and `h_next`, `past_key` and `present_key`); else where only one of
    each has that type, and another input is left.

    Errors  BuildError where there is none, or which one is open
    """
    reached = {name: _reached(graph, name) for name in graph.inputs}
    fits = {
        name: [o for o in graph.outputs if o in reached[name]
               and _fits(graph.tensor(o), graph.tensor(name))]
        for name in graph.inputs
    }  # fmt: skip
    found: dict[str, str] = {}
    for alike in (_named_alike, _typed_alike):
        taken = set(found.values())
        left = {n: [o for o in each if o not in taken]
                for n, each in fits.items() if n not in found}  # fmt: skip
        for name, each in left.items():
            mine = [o for o in each if alike(name, o, left)]
            others = [n for n in left if any(o in left[n] for o in mine)]
            others = [n for n in others if any(alike(n, o, left) for o in mine)]
            if len(mine) == 1 and others == [name]:
                found[name] = mine[0]
    open_ = [
        n for n, each in fits.items() if n not in found and _stem(n) != {n} and each
    ]
    if not found or len(found) == len(graph.inputs) or open_:
        what = "which input is what an output was is not obvious"
        some = [f"{o}={n}" for n, each in fits.items() for o in each][:4]
        hint = f"say it: {' or '.join(some)}" if some else "none have one type"
        raise BuildError(OPTION, what, hint)
    return found


def _reached(graph: Graph, name: str) -> set[str]:
    """The tensors that are computed from an input."""
    found = {name}
    for node in graph.nodes:
        if found & set(node.inputs):
            found.update(node.outputs)
    return found


def _stem(name: str) -> set[str]:
    """The words of a name that do not say which end of a state it is."""
    words = [w for w in re.split(r"[^a-z0-9]+", name.lower()) if w]
    words = [m[1] if (m := _SHORT.fullmatch(w)) else w for w in words]
    return {word for word in words if word not in _ENDS}


def _named_alike(name: str, output: str, left: Mapping[str, list[str]]) -> bool:
    return bool(_stem(name)) and _stem(name) == _stem(output)


def _typed_alike(name: str, output: str, left: Mapping[str, list[str]]) -> bool:
    return len(left[name]) == 1


def zeros(tensor: Tensor) -> Array:
    """The real number 0 everywhere."""
    zero = tensor.quant.zero_point[0] if tensor.quant else 0
    return np.full(tensor.shape, zero, tensor.dtype.numpy)


def _typed(tensor: Tensor) -> str:
    quant = ""
    if tensor.quant is not None:
        quant = f" of scale {tensor.quant.scale[0]:.9g}, zero point "
        quant += f"{tensor.quant.zero_point[0]}"
    return f"{tensor.dtype.value}{list(tensor.shape)}{quant}"


def state_as_inputs(graph: Graph) -> Graph:
    """The graph with its state as inputs and outputs, after those of its own."""
    if not graph.state:
        return graph
    ends = tuple(state.next for state in graph.state.values())
    inputs = (*graph.inputs, *graph.state)
    return replace(graph, inputs=inputs, outputs=(*graph.outputs, *ends), state={})


def inputs_as_state(graph: Graph, before: Graph) -> Graph:
    """An opened graph after passes: `before` says what is state.

    Errors  BuildError where a next value has another type than the state
    """
    if not before.state:
        return graph
    count = len(before.outputs)
    ends = graph.outputs[count:]
    state = {
        name: replace(old, next=_source(graph, end))
        for (name, old), end in zip(before.state.items(), ends, strict=True)
    }
    for name, one in state.items():
        have, want = graph.tensor(one.next), graph.tensor(name)
        if (have.shape, have.dtype) != (want.shape, want.dtype):
            what = f"state '{name}' is {want.dtype.value}{list(want.shape)}, what it "
            what += f"becomes is {have.dtype.value}{list(have.shape)}"
            raise BuildError(graph.source, what)
    inputs, outputs = graph.inputs[: len(before.inputs)], graph.outputs[:count]
    made = replace(graph, inputs=inputs, outputs=outputs, state=state)
    needless = set(ends) - {one.next for one in state.values()}
    return replace(made, nodes=tuple(n for n in made.nodes if n.output not in needless))


def _source(graph: Graph, end: str) -> str:
    """The tensor to assign: the source of a copied output itself. For an input, another
    state, or a view of one, it is the copy, because a state may be assigned before.

    Of an input, another state, or a view of one, it is the copy: a state may be
    assigned before.
    """
    for node in graph.nodes:
        copies = node.output == end and node.op == "copy"
        if copies and node.inputs[0] in graph.outputs:
            return node.inputs[0]
    return end


def assigned(graph: Graph) -> Graph:
    """The graph with a node for each state that gives it its next value, last."""
    if not graph.state:
        return graph
    nodes, tensors, state = list(graph.nodes), dict(graph.tensors), {}
    for name, old in graph.state.items():
        made = f"{name} (next)"
        while made in tensors:
            made += "'"
        tensors[made] = replace(tensors[name], name=made)
        nodes.append(Node(ASSIGN, made, (old.next,), (made,)))
        state[name] = replace(old, next=made)
    return replace(graph, nodes=tuple(nodes), tensors=tensors, state=state)
