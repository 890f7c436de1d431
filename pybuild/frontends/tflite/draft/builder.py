"""A graph during import from a file: names, constants, inferred types. Knows flat
tensors, not what an operator means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.tflite.draft.blocks import real_blocks
from pybuild.frontends.tflite.draft.known import value_of
from pybuild.frontends.tflite.draft.stored import stored, type_of
from pybuild.frontends.tflite.draft.variable import Variable
from pybuild.frontends.tflite.reader.flat import FlatModel, FlatOperator, guarded
from pybuild.frontends.tflite.reader.scales import quant_of
from pybuild.ir.graph import Attr, Graph, Node, Quant, Tensor
from pybuild.ops.interpret import operator_of
from pybuild.params.budget import Budget
from pybuild.records import dataclass
from pybuild.text.short_names import brief

MOST_BYTES = 1 << 31


class Builder:
    """Collects tensors, constants, nodes and problems.

    `tensors` and `constants` are those of `graph`, which grows with them.
    """

    def __init__(self, source: str, name: str, model: FlatModel) -> None:
        self.source, self.model = source, model
        self.nodes: list[Node] = []
        self.budget = Budget(source, 0)
        self.problems: list[Problem] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.names = _unique([t.name for t in model.tensors])
        self.taken = set(self.names)
        self.numbered: dict[str, int] = {}  # name -> the last number given
        self.known: dict[int, Tensor] = {}
        self.graph = Graph(name, source, (), self.tensors, (), (), self.constants)
        self.origins: dict[str, str] = {}
        self.redimensioned = False
        self.max_turns, self.hybrid = 0, "litert"  # as load() has them
        self.inside: tuple[int, ...] = ()  # subgraphs that call this one
        self.handles: dict[int, str] = {}  # tensor of a handle -> its variable
        self.variables: dict[str, Variable] = {}
        self.kept: set[int] = set()  # tensors that are variables of an operator
        edge = {*model.inputs, *model.outputs}
        self.inner = {
            index: self.fresh(f"{self.names[index]}_int8")
            for index, flat in enumerate(model.tensors)
            if index in edge and self.has_twin(index)
        }

    @classmethod
    def within(cls, outer: Builder, graph: FlatModel) -> Builder:
        """Return a builder for a subgraph that adds to the same graph, with names of
        its own."""
        inside = cls(outer.source, "", replace(graph, inputs=(), outputs=()))
        inside.names = [outer.fresh(name) for name in inside.names]
        inside.model = replace(graph, subgraphs=outer.model.subgraphs)
        inside.nodes, inside.taken = outer.nodes, outer.taken
        inside.budget = outer.budget
        inside.origins = outer.origins
        inside.numbered = outer.numbered
        inside.inside = (*outer.inside, outer.model.number)
        inside.tensors, inside.constants = outer.tensors, outer.constants
        inside.graph = outer.graph
        inside.redimensioned = outer.redimensioned
        inside.max_turns, inside.hybrid = outer.max_turns, outer.hybrid
        inside.variables = outer.variables
        return inside

    def has_twin(self, index: int) -> bool:
        """True for a uint8 tensor with one scale: inside, it is int8 with a zero point
        128 lower."""
        flat = self.model.tensors[index]
        return flat.kind == "UINT8" and len(flat.scale) == 1

    def is_constant(self, index: int) -> bool:
        return self.model.tensors[index].data.size > 0

    def typed(self, index: int, shape: tuple[int, ...], outer: bool = False) -> Tensor:
        """Return the graph's tensor for a flat tensor, with this shape.

        outer   whether to return it as in the file, even if it has an int8 twin
        Errors  BuildError for invalid types, sizes and scales
        """
        flat, name = self.model.tensors[index], self.names[index]
        dtype = type_of(flat)
        if dtype is None:
            what = f"'{name}' has type {flat.kind}, which is not supported"
            raise BuildError(self.source, what, "convert to int8 or float32")
        if flat.variable and index not in self.kept:
            what = f"'{name}' is a variable, which is not supported"
            raise BuildError(self.source, what)
        tensor = Tensor(name, shape, dtype, quant_of(self.source, name, flat, dtype))
        if any(dim < 1 for dim in shape) or tensor.bytes >= MOST_BYTES:
            what = f"'{name}' has shape {list(shape)}"
            hint = "every dimension must be at least 1, and the whole below 2 GB"
            raise BuildError(self.source, what, hint)
        if outer or not self.has_twin(index) or tensor.quant is None:
            return tensor
        name = self.inner.get(index, name)
        zeros = tuple(z - 128 for z in tensor.quant.zero_point)
        quant = Quant(tensor.quant.scale, zeros, tensor.quant.axis)
        return Tensor(name, shape, DType.INT8, quant)

    def computed(self, index: int, shape: tuple[int, ...]) -> Tensor:
        """Return the tensor of an activation, which must have a single scale."""
        tensor = self.typed(index, shape)
        if tensor.quant is not None and tensor.quant.axis is not None:
            what = f"'{tensor.name}' has a scale per channel"
            raise BuildError(self.source, what, "only weights may have one")
        return tensor

    def raw_constant(self, index: int, where: str = "") -> Array:
        """Return the value of a constant of any type.

        where   what reads it, for messages
        Errors  BuildError if its bytes do not fit its shape, or its blocks
        """
        flat, name = self.model.tensors[index], self.names[index]
        if flat.kind != "FLOAT16":
            self.typed(index, flat.shape, True)  # checks it
        value = stored(self.source, name, flat, self.budget)
        if flat.blocks:
            where, tensors = where or self.source, self.model.tensors
            return real_blocks(where, name, value, flat.blocks, tensors, self.budget)
        if self.has_twin(index):
            return np.bitwise_xor(value.view(np.uint8), np.uint8(128)).view(np.int8)
        return value

    def hold(self, index: int, value: Array) -> None:
        """Turn a tensor into a constant of the file with this value."""
        tensors = list(self.model.tensors)
        if self.has_twin(index):
            value = np.bitwise_xor(value.view(np.uint8), np.uint8(128))
        data = np.frombuffer(value.tobytes(), np.uint8)
        tensors[index] = replace(tensors[index], data=data, shape=value.shape)
        self.model = replace(self.model, tensors=tuple(tensors))

    def add(self, tensor: Tensor, value: Array | None = None) -> Tensor:
        """Add a tensor, under another name if its own is taken by another tensor. That
        happens if one of two operators that read a constant needs it transposed."""
        there = self.tensors.get(tensor.name)
        if there is not None:
            if there == tensor and self._holds(tensor.name, value):
                return there
            name = self.fresh(tensor.name)
            tensor = Tensor(name, tensor.shape, tensor.dtype, tensor.quant)
        self.tensors[tensor.name] = tensor
        if value is not None:
            self.constants[tensor.name] = np.array(value, order="C")
        return tensor

    def _holds(self, name: str, value: Array | None) -> bool:
        held = self.constants.get(name)
        return held is not None and value is not None and np.array_equal(held, value)

    def shifted(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Convert a tensor to its twin by a new node; return the twin."""
        made = self.add(wanted)
        self.nodes.append(Node("quantize", made.name, (x.name,), (made.name,)))
        return made

    def fresh(self, name: str) -> str:
        """Return a name that no tensor has."""
        count = self.numbered.get(name, 0) + 1
        while (made := f"{name}_{count}") in self.taken:
            count += 1
        self.numbered[name] = count
        self.taken.add(made)
        return made


def _unique(names: list[str]) -> list[str]:
    """Return the file's names, made unique where the file repeats or omits them."""
    seen: set[str] = set()
    made = []
    for index, name in enumerate(names):
        unique = name or f"tensor_{index}"
        while unique in seen:
            unique = f"{unique}_{index}"
        seen.add(unique)
        made.append(unique)
    return made


@dataclass(frozen=True)
class Call:
    """One operator of the file, as seen by the function that translates it."""

    builder: Builder
    flat: FlatOperator
    label: str

    @property
    def where(self) -> str:
        return f"{self.builder.source}: node {self.origin}"

    @property
    def origin(self) -> str:
        return f"'{brief(self.label)}' ({self.flat.code})"

    def error(self, what: str, hint: str = "") -> BuildError:
        return BuildError(self.where, what, hint)

    def option(self, name: str, default: int = 0) -> int:
        """Return a number from the operator's options."""
        value = self.any_option(name)
        return default if value is None else int(value)

    def any_option(self, name: str) -> Any:
        """Return a field of the options; None if the file has other options or none."""
        options = self.flat.options
        if options is None or not hasattr(options, name):
            return None
        return guarded(self.builder.source, getattr(options, name))

    def has(self, position: int) -> bool:
        inputs = self.flat.inputs
        return position < len(inputs) and inputs[position] >= 0

    def index(self, position: int) -> int:
        if not self.has(position):
            raise self.error(f"input {position} is missing")
        return self.flat.inputs[position]

    def tensor(self, position: int, empty: bool = False) -> Tensor:
        """Return an input as a tensor of the graph, constant or computed.

        empty  whether it may have no elements
        """
        made = self._tensor(self.index(position), position)
        if not made.size and not empty:
            raise self.error(f"reads '{made.name}', which has no elements")
        return made

    def _tensor(self, index: int, position: int) -> Tensor:
        builder = self.builder
        if index in builder.known:
            return builder.known[index]
        if not builder.is_constant(index):
            name = builder.names[index]
            raise self.error(f"reads '{name}' before it is computed")
        value = self.constant(position)
        tensor = builder.typed(index, builder.model.tensors[index].shape)
        builder.known[index] = builder.add(tensor, value)
        return builder.known[index]

    def settled(self, position: int) -> bool:
        """Return True if the value of an input is known."""
        index, builder = self.index(position), self.builder
        made = builder.known.get(index)
        known = made is not None and made.name in builder.constants
        return known or builder.is_constant(index)

    def constant(self, position: int) -> Array:
        """Return the value of an input, which must be known."""
        index, builder = self.index(position), self.builder
        name = builder.names[index]
        if builder.is_constant(index):
            return builder.raw_constant(index, self.where)
        made = builder.known.get(index)
        if made is None:
            raise self.error(f"reads '{name}' before it is computed")
        if made.name not in builder.constants:
            model = builder.model
            places = model.tensors[index].kind in ("INT32", "INT64")
            given = places and index in model.inputs
            hint = f"--input-value {name}=..." if given else ""
            raise self.error(f"input '{name}' must be a constant", hint)
        return builder.constants[made.name]

    def held(self, position: int) -> tuple[Tensor, Array]:
        """Return a constant with its type."""
        value, index = self.constant(position), self.index(position)
        made = self.builder.known.get(index)
        return made or self.builder.typed(index, value.shape), value

    def integers(self, position: int) -> tuple[int, ...]:
        """Return a constant list of integers, such as axes."""
        value = self.constant(position)
        if value.dtype.kind != "i" or value.ndim > 2:
            name = self.builder.names[self.index(position)]
            raise self.error(f"'{name}' must be a list of integers")
        return tuple(int(v) for v in value.reshape(-1))

    def integer(self, position: int) -> int:
        """Return a constant single integer, such as an axis."""
        found = self.integers(position)
        if len(found) != 1:
            name = self.builder.names[self.index(position)]
            raise self.error(f"'{name}' holds {len(found)} integers, not 1")
        return found[0]

    def subgraph(self, option: str) -> FlatModel:
        """Return the subgraph with the number in this option; it must not be one that
        contains the operator."""
        number, graphs = self.option(option, -1), self.builder.model.subgraphs
        if not 0 <= number < len(graphs):
            raise self.error(f"calls subgraph {number} of {len(graphs)}")
        if number in (self.builder.model.number, *self.builder.inside):
            raise self.error(f"calls subgraph {number}, which it is part of")
        return graphs[number]

    def output(self, shape: tuple[int, ...], index: int = 0) -> Tensor:
        """Return the tensor for the operator's output with this index."""
        return self.builder.computed(self.flat.outputs[index], shape)

    def declared(self) -> tuple[int, ...]:
        """Return the shape that the file declares for the output."""
        return self.builder.model.tensors[self.flat.outputs[0]].shape

    def emit(
        self,
        op: str,
        inputs: tuple[str, ...],
        attrs: Mapping[str, Attr],
        shape: tuple[int, ...] | None = None,
        more: tuple[str, ...] = (),
    ) -> None:
        """Add the last node of the operator, which makes its output.

        shape  the output's, if it cannot be inferred
        more   further outputs, which are tensors of the graph
        """
        declared = self.declared() if shape is None else shape
        index = self.flat.outputs[0]
        made = self._node(op, self.label, inputs, self._placed(declared), attrs, more)
        self.builder.known[index] = made

    def between(
        self, op: str, inputs: tuple[str, ...], attrs: Mapping[str, Attr],
        tensor: Tensor, more: tuple[str, ...] = (),
    ) -> Tensor:  # fmt: skip
        """Add an intermediate node; `tensor` gives its type, its scale and a preferred
        name."""
        name = self.builder.fresh(tensor.name)
        wanted = Tensor(name, tensor.shape, tensor.dtype, tensor.quant)
        return self._node(op, name, inputs, wanted, attrs, more)

    def _placed(self, shape: tuple[int, ...]) -> Tensor:
        """Return the output tensor with a shape that is valid for now."""
        return self.output(tuple(max(1, dim) for dim in shape))

    def inferred(self, node: Node) -> tuple[tuple[int, ...], DType]:
        """Return the shape and the type of a node's first output; the output is removed
        from the graph if the operator rejects the node.

        Errors  BuildError that names the operator of the file
        """
        builder = self.builder
        try:
            made, *_ = operator_of(node, builder.graph).infer(node, builder.graph)
        except BuildError as error:
            del builder.tensors[node.output]
            raise BuildError.of(
                Problem(self.where, p.what, p.hint) for p in error.problems
            ) from None
        return made

    def _node(
        self, op: str, label: str, inputs: tuple[str, ...], wanted: Tensor,
        attrs: Mapping[str, Attr], more: tuple[str, ...] = (),
    ) -> Tensor:  # fmt: skip
        """Add a node and its output, with the inferred shape."""
        builder = self.builder
        builder.budget.take_nodes()
        node = Node(op, label, inputs, (wanted.name, *more), attrs)
        builder.tensors[wanted.name] = wanted
        shape, dtype = self.inferred(node)
        if dtype is not wanted.dtype:
            del builder.tensors[wanted.name]
            what = f"'{wanted.name}' is {wanted.dtype.value}, it must be {dtype.value}"
            raise self.error(what)
        made = Tensor(wanted.name, shape, dtype, wanted.quant)
        if made.bytes >= MOST_BYTES:
            del builder.tensors[wanted.name]
            raise self.error(f"'{wanted.name}' of shape {list(shape)} is above 2 GB")
        builder.tensors[wanted.name] = made
        # shapes are arithmetic of whole numbers; weights are left to the passes
        value = None if dtype.is_float else value_of(node, builder.graph)
        if value is None:
            builder.nodes.append(node)
        else:
            builder.constants[wanted.name] = value
        return made
