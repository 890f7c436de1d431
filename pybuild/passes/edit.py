"""A Graph being rewritten: what every pass needs, and no pass in particular."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops.interpret import operator_of


class Edit:
    """New nodes in order, over the tensors and constants of an old graph."""

    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.nodes: list[Node] = []
        self.tensors = dict(graph.tensors)
        self.constants = dict(graph.constants)
        self.parameters = dict(graph.parameters)
        self._renamed: dict[str, str] = {}

    def name(self, name: str) -> str:
        """The present name of a tensor of the old graph."""
        while name in self._renamed:
            name = self._renamed[name]
        return name

    def alias(self, old: str, new: str) -> None:
        """Makes later reads of `old` read `new`."""
        self._renamed[old] = new

    def fresh(self, text: str) -> str:
        """A name like `text` that no tensor has."""
        name, count = text, 1
        while name in self.tensors or name in self._renamed:
            count += 1
            name = f"{text}.{count}"
        return name

    def constant(self, text: str, value: Array, quant: Quant | None = None) -> str:
        """A new constant; one that is equal to `text` itself is that one."""
        name = self.fresh(text)
        self.tensors[name] = Tensor(name, value.shape, DType.of(value), quant)
        self.constants[name] = np.ascontiguousarray(value).reshape(value.shape)
        return name

    def moved(self, name: str, suffix: str, value: Array) -> str:
        """A constant with the elements of another, in another order or shape.

        Of a parameter that is a parameter too.
        """
        made = self.constant(f"{name}.{suffix}", value, self.tensors[name].quant)
        if name in self.parameters:
            self.parameters[made] = self.parameters[name]
        return made

    def known(self, name: str) -> bool:
        """True if the value of a tensor is fixed for ever."""
        return name in self.constants and name not in self.parameters

    def keep(self, node: Node) -> None:
        """The node as it is, reading what its inputs are called now."""
        inputs = tuple(self.name(n) if n else n for n in node.inputs)
        same = inputs == node.inputs
        self.nodes.append(node if same else replace(node, inputs=inputs))

    def emit(
        self,
        node: Node,
        *,
        shape: tuple[int, ...] = (),
        quant: Quant | None = None,
        dtype: DType = DType.FLOAT32,
    ) -> str:
        """Adds a node and (again) the type of its output, as the operator infers.

        Errors  BuildError where the operator refuses
        """
        output = node.output
        before = self.tensors.get(output)
        self.tensors[output] = Tensor(output, shape, dtype, quant)
        try:
            made, kind = operator_of(node, self.old).infer(node, self.view())[0]
        except BuildError:
            if before is None:
                del self.tensors[output]
            else:
                self.tensors[output] = before
            raise
        self.tensors[output] = Tensor(output, made, kind, quant)
        self.nodes.append(node)
        return output

    def view(self) -> Graph:
        """The tensors and constants so far, for infer() and reference()."""
        return replace(self.old, tensors=self.tensors, constants=self.constants)

    def done(self, nodes: Iterable[Node] | None = None) -> Graph:
        """The new graph, without tensors that nothing reads or makes."""
        if nodes is not None:
            self.nodes = list(nodes)
        return used(
            replace(
                self.old,
                nodes=tuple(self.nodes),
                tensors=self.tensors,
                constants=self.constants,
                parameters=self.parameters,
            )
        )


def used(graph: Graph) -> Graph:
    """The graph without tensors and constants that no node or boundary names."""
    names = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        names |= {n for n in (*node.inputs, *node.outputs) if n}
    tensors = {name: t for name, t in graph.tensors.items() if name in names}
    constants = {name: v for name, v in graph.constants.items() if name in names}
    parameters = {name: p for name, p in graph.parameters.items() if name in names}
    return replace(graph, tensors=tensors, constants=constants, parameters=parameters)


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """The graph with tensors that nodes make called otherwise."""
    if not names:
        return graph

    def new(found: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in found)

    nodes = tuple(
        replace(n, inputs=new(n.inputs), outputs=new(n.outputs)) for n in graph.nodes
    )
    tensors = {
        names.get(name, name): replace(t, name=names.get(name, name))
        for name, t in graph.tensors.items()
    }
    constants = {names.get(name, name): v for name, v in graph.constants.items()}
    parameters = {names.get(name, name): p for name, p in graph.parameters.items()}
    return replace(
        graph, nodes=nodes, tensors=tensors, constants=constants, parameters=parameters
    )


def only_reader(graph: Graph, users: Mapping[str, Sequence[Node]], name: str) -> bool:
    """True if one node reads the tensor once, and it is not an output of the model."""
    return len(users[name]) == 1 and name not in graph.outputs
