"""Graph IR: what a model computes. Frozen values; every pass makes a new Graph.

Knows nothing of files, kernels, memory or what an operator means (see ops/).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError, Problem
from pybuild.records import dataclass
from pybuild.text.short_names import brief, short_names

# int, float, str, bool, or tuples of them
Attr = Any


@dataclass(frozen=True)
class Quant:
    """real = scale * (q - zero_point); several values: one per index of axis."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = (0,)
    axis: int | None = None


@dataclass(frozen=True)
class Tensor:
    """A value: name (unique in the graph), static shape, type, quantisation."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quant: Quant | None = None

    @property
    def size(self) -> int:
        """Elements."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.bytes

    @property
    def scale(self) -> float:
        """The one scale of a tensor quantised as a whole."""
        assert self.quant is not None and len(self.quant.scale) == 1, self.name
        return self.quant.scale[0]

    @property
    def zero_point(self) -> int:
        """The one zero point of a tensor quantised as a whole."""
        assert self.quant is not None and len(self.quant.zero_point) == 1, self.name
        return self.quant.zero_point[0]


_SAID = 24  # characters of a name, and tensors a side in one line
_SAID_TENSORS = 4


def signature(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> str:
    """`image int8[1,8,8,1] -> scores int8[1,10]`: one line, however many there are."""
    return " -> ".join(_listed(tuple(side)) for side in (inputs, outputs))


def _listed(tensors: tuple[Tensor, ...]) -> str:
    said = []
    for tensor in tensors[:_SAID_TENSORS]:
        name = tensor.name
        name = name if len(name) <= _SAID else f"…{name[1 - _SAID :]}"
        said.append(f"{name} {tensor.dtype.value}[{','.join(map(str, tensor.shape))}]")
    left = len(tensors) - len(said)
    return ", ".join([*said, f"{left} more"] if left else said) or "nothing"


@dataclass(frozen=True)
class Node:
    """One operator; inputs are tensor names, "" where an optional one is absent.

    of  of a layer with its end: both; only the plan knows such nodes
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    device: int = 0
    of: tuple[Node, ...] = ()

    @property
    def output(self) -> str:
        return self.outputs[0]

    def with_attrs(self, **attrs: Attr) -> Node:
        return replace(self, attrs={**self.attrs, **attrs})


@dataclass(frozen=True)
class State:
    """The tensor that is kept from run to run.

    next     the tensor that it holds after a run
    initial  before the first run, and after a reset
    in_file  the same in the order and length that the file has; None: as `initial`
    """

    next: str
    initial: Array = field(compare=False, repr=False)
    in_file: Array | None = field(default=None, compare=False, repr=False)

    @property
    def begun(self) -> Array:
        """The value with which a run of the file begins."""
        return self.initial if self.in_file is None else self.in_file


@dataclass(frozen=True)
class Window:
    """The whole of which an input or output has the newest rows: `rows` of `axis`."""

    axis: int
    rows: int


@dataclass(frozen=True)
class Bound:
    """How much of an output holds: along `axis` the first so many as the output `count`
    says; where that is more than there is room for, all.
    """

    axis: int
    count: str


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which they can run, and every tensor they name.

    name     of the model, as C will spell it
    source   file name, for messages
    constants  values of the tensors that are known, by tensor name
    parameters  of these, the ones that users may replace, and the name under which
                they know each: nothing may be concluded from their values
    lazy     inputs that get no memory until they are bound
    storage  memory block of each tensor, where the file says so; tensors of one
             block are never needed at the same time
    homes    device that an input or output is given to or taken from; else the CPU
    state    tensors that are kept from run to run: read, by no node made
    windows  of inputs and outputs that are the newest rows of a stream
    bounded  outputs that have room for more than there may be
    sampled  an input of which samples come a few at a time; "": none. Outputs are
             not written over while it is filled
    origins  node, or what a node makes -> its name and operator in the file
    fixed    inputs of the file that are constants, for what runs the file itself
    signatures  of a file that has several: the one that this is, then the others
    renamed  inputs and outputs -> their names in the file, where the user chose others
    removed  channels of layers that are constant, and bytes of constants without them
    """

    name: str
    source: str
    nodes: tuple[Node, ...]
    tensors: Mapping[str, Tensor]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    lazy: tuple[str, ...] = ()
    storage: Mapping[str, int] = field(default_factory=dict)
    homes: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, State] = field(default_factory=dict)
    windows: Mapping[str, Window] = field(default_factory=dict)
    bounded: Mapping[str, Bound] = field(default_factory=dict)
    sampled: str = ""
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    fixed: Mapping[str, Array] = field(default_factory=dict, compare=False)
    signatures: tuple[str, ...] = field(default=(), compare=False)
    renamed: Mapping[str, str] = field(default_factory=dict, compare=False)
    removed: tuple[int, int] = field(default=(0, 0), compare=False)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    @functools.cached_property
    def short(self) -> Mapping[str, str]:
        """Name of each layer and tensor -> the one that people read."""
        layers = [(node.name, node.output) for node in self.nodes if node.outputs]
        tensors = [name for name in self.tensors if name not in self.constants]
        return short_names(layers, tensors, self.constants)

    def shown(self, text: str) -> str:
        """A name for people; of what belongs to a layer or tensor, "NAME (scratch)",
        with the rest.
        """
        head, rest = text, ""
        while head and head not in self.short:
            head = head.rpartition(" ")[0]
            rest = text[len(head) :]
        return self.short[head] + rest if head else text

    def called(self, node: Node) -> str:
        """The one of a layer; where the file's layer is several nodes, by output."""
        makes = self._makers.get(node.name, node.outputs)
        alone = not node.outputs or node.outputs == makes
        return self.shown(node.name if alone else node.output)

    @functools.cached_property
    def _makers(self) -> Mapping[str, tuple[str, ...]]:
        """Name of a layer -> outputs of the node that has it alone or makes it."""
        found: dict[str, tuple[str, ...]] = {}
        for node in self.nodes:
            if node.name not in found or node.name in node.outputs:
                found[node.name] = node.outputs
        return found

    def is_called(self, name: str, node: Node) -> bool:
        """True if a user's name, short or the file's, is the layer's or an output's."""
        own = (node.name, *node.outputs)
        return name in own or name in (self.called(node), *map(self.shown, own))

    def meant(self, texts: Iterable[str], among: Iterable[str]) -> list[str]:
        """Names of the file for names that users gave, which may be short; what is
        not among them stays.
        """
        known = list(among)
        full = {self.shown(name): name for name in known} | {n: n for n in known}
        return [full.get(text, text) for text in texts]

    def where(self, node: Node) -> str:
        """The place of a node in the file, for messages."""
        names = (node.name, *node.outputs)
        own = f"'{brief(node.name)}' ({node.op})"
        told = next((self.origins[n] for n in names if n in self.origins), own)
        return f"{self.source}: node {told}"

    def known(self, name: str) -> bool:
        """True if the value of a tensor is fixed for ever."""
        return name in self.constants and name not in self.parameters

    def producers(self) -> dict[str, Node]:
        """Tensor name -> the node that makes it."""
        return {out: node for node in self.nodes for out in node.outputs}

    def consumers(self) -> dict[str, list[Node]]:
        """Tensor name -> the nodes that read it, in order, once per use."""
        users: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    users[name].append(node)
        return users

    @property
    def warm_runs(self) -> int:
        """The number of runs after which a stream has seen its whole window; 0: it is
        not a stream."""
        each = [(w.rows, self.tensor(n).shape[w.axis]) for n, w in self.windows.items()
                if n in self.inputs]  # fmt: skip
        return max((-(-rows // count) for rows, count in each), default=0)

    @property
    def is_placed(self) -> bool:
        """True if it says itself which device computes what."""
        return bool(self.homes) or any(node.device for node in self.nodes)

    def locations(self) -> dict[str, int]:
        """Tensor name -> the device that has it in its memory; not of constants."""
        given = (*self.inputs, *self.state)
        found = {name: self.homes.get(name, 0) for name in given}
        return found | {o: node.device for node in self.nodes for o in node.outputs}

    def crossings(self) -> dict[str, tuple[int, int]]:
        """Output of each copy between devices -> (from, to)."""
        at = self.locations()
        return {
            node.output: (at[node.inputs[0]], node.device)
            for node in self.nodes
            if node.op == "copy" and at.get(node.inputs[0], node.device) != node.device
        }

    def dump(self) -> str:
        """A stable text of the whole graph; constants as shapes."""
        lines = [f"graph {self.name}"]
        for role, names in (("input", self.inputs), ("output", self.outputs)):
            lines += [f"{role} {_type_text(self.tensors[name])}" for name in names]
        for name, state in self.state.items():
            lines.append(f"state {_type_text(self.tensors[name])} <- {state.next}")
        lines += [f"sampled {self.sampled}"] if self.sampled else []
        for node in self.nodes:
            attrs = " ".join(f"{k}={node.attrs[k]!r}" for k in sorted(node.attrs))
            reads = ", ".join(_role(n, self) + (n or "-") for n in node.inputs)
            makes = ", ".join(_type_text(self.tensors[n]) for n in node.outputs)
            where = f" on device {node.device}" if node.device else ""
            lines.append(f"{makes} = {node.op}({reads}) {attrs}".rstrip() + where)
        return "\n".join(lines) + "\n"


def _role(name: str, graph: Graph) -> str:
    if name in graph.parameters:
        return "param "
    return "const " if name in graph.constants else ""


def _type_text(tensor: Tensor) -> str:
    dims = ",".join(map(str, tensor.shape))
    quant = ""
    if tensor.quant is not None:
        quant = f" q({len(tensor.quant.scale)}, {tensor.quant.scale[0]:.9g}"
        quant += f", {tensor.quant.zero_point[0]})"
    return f"{tensor.name}: {tensor.dtype.value}[{dims}]{quant}"


def verify(graph: Graph) -> None:
    """Checks that every tensor is defined once and before use, and that constants fit
    their tensors.

    Errors  BuildError with every inconsistency found
    """
    found: list[Problem] = []
    known = set(graph.inputs) | set(graph.constants) | set(graph.state)
    for node in graph.nodes:
        for name in node.inputs:
            if name and name not in known:
                found.append(
                    Problem(graph.where(node), f"reads '{name}' before it exists")
                )
        for name in node.outputs:
            if name in known:
                found.append(Problem(graph.where(node), f"defines '{name}' again"))
            if name not in graph.tensors:
                found.append(Problem(graph.where(node), f"'{name}' has no type"))
            known.add(name)
    found += _verify_boundary(graph, known)
    if found:
        raise BuildError.of(found)


def _verify_boundary(graph: Graph, known: set[str]) -> list[Problem]:
    found = []
    for name in graph.outputs:
        if name not in known:
            found.append(Problem(graph.source, f"output '{name}' is never computed"))
    if graph.sampled and graph.sampled not in graph.inputs:
        found.append(Problem(graph.source, f"'{graph.sampled}' is not an input"))
    for name, state in graph.state.items():
        if state.next not in known:
            what = f"state '{name}' becomes '{state.next}', which is never computed"
            found.append(Problem(graph.source, what))
    for name in sorted(known - set(graph.tensors)):
        found.append(Problem(graph.source, f"tensor '{name}' has no type"))
    for name in sorted(graph.parameters.keys() - graph.constants.keys()):
        found.append(Problem(graph.source, f"parameter '{name}' has no value"))
    for name, value in graph.constants.items():
        tensor = graph.tensors.get(name)
        if tensor is None:
            continue
        if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
            what = f"constant '{name}' is {value.dtype.name}{list(value.shape)}, "
            what += f"its tensor {tensor.dtype.value}{list(tensor.shape)}"
            found.append(Problem(graph.source, what))
    for name, tensor in graph.tensors.items():
        if any(dim < 0 for dim in tensor.shape):
            found.append(Problem(graph.source, f"'{name}' has a dynamic shape"))
    return found


def rest_of(graph: Graph, blamed: Collection[str] = ()) -> Graph:
    """The sound part of a graph with problems; missing tensors become inputs.

    blamed  where() of nodes that have one
    """
    nodes = tuple(
        node
        for node in graph.nodes
        if graph.where(node) not in blamed
        and all(n in graph.tensors for n in (*node.inputs, *node.outputs) if n)
    )
    made = dict.fromkeys(name for node in nodes for name in node.outputs)
    read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
    constants = {n: v for n, v in graph.constants.items() if n in read}
    return Graph(
        graph.name,
        graph.source,
        nodes,
        {name: graph.tensors[name] for name in (*read, *made)},
        tuple(name for name in read if name not in made and name not in constants),
        tuple(name for name in made if name not in read),
        constants,
        origins=graph.origins,
    )
