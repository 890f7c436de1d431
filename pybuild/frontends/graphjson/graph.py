"""Turns a document and its parameters into a graph, for nodes that name their operator.
Our own writer puts it into attrs.op; knows no library of functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import PurePath

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.frontends.graphjson.devices import uncopied
from pybuild.frontends.graphjson.document import FREE, Document, Entry, Item
from pybuild.frontends.graphjson.resolve import (
    attrs_of,
    decoded,
    is_flat,
    missing,
    operator_of,
)
from pybuild.frontends.graphjson.values import parse_json, quant_of
from pybuild.ir.graph import Graph, Node, Quant, Tensor, rest_of, verify
from pybuild.ops import OPERATORS
from pybuild.ops.base.function import CALL
from pybuild.ops.base.functions import Functions
from pybuild.ops.base.signatures import SIGNATURES, misfits
from pybuild.ops.interpret import check_types
from pybuild.records import dataclass

_DO_NOT_FIT = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip


def to_graph(
    document: Document,
    params: Mapping[str, Array],
    library: Functions | None = None,
) -> Graph:
    """Return the graph. Inputs that `params` names become constants; other names in it
    are ignored.

    library  the functions for nodes that name no operator
    Errors   BuildError with every function missing from the library, and all other
             problems
    """
    known = Functions() if library is None else library
    found: list[Problem] = list(missing(document, known))
    names = _entry_names(document, found)
    maker = _Nodes(document, known, names, _tensors(document, names, found), found)
    for item in document.items:
        if not item.is_input and operator_of(item, known) in OPERATORS:
            maker.add(item)
    inputs = {document.items[n].name: document.items[n] for n in document.inputs}
    constants = {n: v for n, v in params.items() if n in inputs}
    graph = Graph(
        name=str(document.facts.get("name") or PurePath(document.source).stem),
        source=document.source,
        nodes=tuple(maker.nodes),
        tensors=maker.tensors,
        inputs=tuple(n for n in inputs if n not in constants),
        outputs=tuple(names[document.entry_of(head)] for head in document.heads),
        constants=constants,
        parameters=_parameters(document, constants, found),
        lazy=document.lazy,
        storage=_storage(document, names),
        homes=_homes(document, names, constants),
    )
    found += _parameter_problems(document, graph, inputs)
    found += [Problem(graph.where(n), what) for n in graph.nodes for what in misfits(n)]
    blamed = {problem.where for problem in found}
    rest = rest_of(graph, blamed)
    found += [p for node in rest.nodes for p in _type_problems(rest, node)]
    if not found:
        verify(graph)
        found += uncopied(graph)
    if found:
        error = BuildError.of(found)
        error.rest = rest_of(rest, {problem.where for problem in found})
        raise error
    return graph


def _parameters(
    document: Document, constants: Mapping[str, Array], found: list[Problem]
) -> dict[str, str]:
    """Return the constants that are parameters, mapped to their names, as our writer
    records them. Files of other writers, such as TVM's, record none: all their
    constants are parameters."""
    said = document.facts.get("parameters", {name: name for name in constants})
    if not isinstance(said, dict) or not all(
        isinstance(name, str) and name for name in said.values()
    ):
        what = "'metadata.pybuild.parameters' is not an object of names"
        found.append(Problem(document.source, what))
        return {}
    return {name: said[name] for name in said if name in constants}


def _storage(document: Document, names: list[str]) -> dict[str, int]:
    """The blocks of the tensors, {} where the file leaves them to the planner."""
    if not document.is_planned:
        return {}
    pairs = zip(names, document.entries, strict=True)
    return {name: e.storage for name, e in pairs if e.storage != FREE}


def _homes(
    document: Document, names: list[str], constants: Mapping[str, Array]
) -> dict[str, int]:
    """Return the devices of inputs and outputs that are not on the CPU."""
    ends = [document.items[node].first for node in document.inputs]
    ends += [document.entry_of(head) for head in document.heads]
    return {
        names[end]: document.entries[end].device
        for end in ends
        if document.entries[end].device and names[end] not in constants
    }


# ---- tensors ------------------------------------------------------------------


def _entry_names(document: Document, found: list[Problem]) -> list[str]:
    """The tensor of each entry: an input's name, `attrs.outputs`, or the node's."""
    taken = {item.name for item in document.items if item.is_input}
    given: dict[int, str] = {}
    for item in document.items:
        if item.is_input:
            given[item.first] = item.name
            continue
        for output, name in enumerate(_output_names(document, item, found)):
            if name in taken or not name:
                what = f"its output '{name}' has the name of another tensor"
                found.append(Problem(document.where(item), what))
            taken.add(name)
            given[item.first + output] = name
    for item in document.items:
        for output in range(item.outputs):
            if item.first + output not in given:
                name = _unused(item.name, output, taken)
                taken.add(name)
                given[item.first + output] = name
    return [given[entry] for entry in range(len(document.entries))]


def _output_names(
    document: Document, item: Item, found: list[Problem]
) -> tuple[str, ...]:
    text = item.attrs.get("outputs")
    if text is None:
        return ()
    names = decoded(document, item, "outputs", text, found)
    good = isinstance(names, tuple) and all(isinstance(n, str) for n in names)
    if not good or len(names) != item.outputs:
        what = f"'attrs.outputs' is not a list of {item.outputs} names"
        found.append(Problem(document.where(item), what))
        return ()
    return tuple(names)


def _unused(name: str, output: int, taken: set[str]) -> str:
    made = f"{name}:{output}" if output or not name else name
    number = 1
    while made in taken:
        made, number = f"{name}:{output}.{number}", number + 1
    return made


def _tensors(
    document: Document, names: list[str], found: list[Problem]
) -> dict[str, Tensor]:
    tensors = {}
    for item in document.items:
        quants = _quants(document, item, found)
        for output, quant in enumerate(quants):
            number = item.first + output
            entry, name = document.entries[number], names[number]
            made = _quant(document, item, entry, quant, found)
            tensors[name] = Tensor(name, entry.shape, entry.dtype, made)
    return tensors


def _quants(document: Document, item: Item, found: list[Problem]) -> list[object]:
    """Return the quantisation of each output of a node."""
    if item.is_input:
        facts = document.facts.get("quant", {})
        return [facts.get(item.name) if isinstance(facts, dict) else facts]
    if "quant" not in item.attrs:
        return [None] * item.outputs
    facts = parse_json(item.attrs["quant"])
    if not isinstance(facts, list) or len(facts) != item.outputs:
        what = f"'attrs.quant' is not a list of {item.outputs} quantisations"
        found.append(Problem(document.where(item), what))
        return [None] * item.outputs
    return facts


def _quant(
    document: Document, item: Item, entry: Entry, facts: object, found: list[Problem]
) -> Quant | None:
    try:
        return quant_of(facts, entry.shape)
    except ValueError as error:
        what = f"its quantisation is wrong: {error}"
        found.append(Problem(document.where(item), what))
        return None


# ---- nodes --------------------------------------------------------------------


@dataclass
class _Nodes:
    """Collects nodes and the types of all tensors."""

    document: Document
    functions: Functions
    names: list[str]
    tensors: dict[str, Tensor]
    found: list[Problem]
    nodes: list[Node] = field(default_factory=list)

    def add(self, item: Item) -> None:
        """The node of an item, between reshapes if its function wants flat tensors."""
        operator = operator_of(item, self.functions)
        if operator == CALL and "op" in item.attrs:
            return
        attrs = attrs_of(self.document, item, self.functions, self.found)
        reads = [self.names[self.document.entry_of(ref)] for ref in item.inputs]
        outputs = self.names[item.first : item.first + item.outputs]
        device = self.document.entries[item.first].device
        flat = is_flat(item) and operator != CALL
        if flat:
            reads = [self._flattened(item, name, device) for name in reads]
        for place in self._places(item, operator):
            reads.insert(place, "")
        made = [self._flat(item, name) for name in outputs] if flat else outputs
        node = Node(operator, item.name, tuple(reads), tuple(made), attrs, device)
        self.nodes.append(node)
        for name, shaped in zip(made, outputs, strict=True):
            if name != shaped:
                self._reshape(item, name, shaped, device)

    def _flattened(self, item: Item, name: str, device: int) -> str:
        made = self._flat(item, name)
        if made != name:
            self._reshape(item, name, made, device)
        return made

    def _flat(self, item: Item, name: str) -> str:
        """Return a reshaped tensor of one dimension, or the tensor itself if it has at
        most one."""
        tensor = self.tensors[name]
        if len(tensor.shape) == 1:
            return name
        made = _unused(f"{name}.flat", 0, set(self.tensors))
        self.tensors[made] = replace(tensor, name=made, shape=(tensor.size,))
        return made

    def _reshape(self, item: Item, source: str, made: str, device: int) -> None:
        name = f"{item.name}.flat"
        node = Node("reshape", name, (source,), (made,), {}, device)
        self.nodes.append(node)

    def _places(self, item: Item, operator: str) -> tuple[int, ...]:
        """The positions of omitted inputs of a node, in order."""
        text = item.attrs.get("absent", "[]")
        absent = decoded(self.document, item, "absent", text, self.found)
        signature = SIGNATURES[operator]
        most = range(signature.least, min(signature.most, len(item.inputs) + 8))
        if operator == CALL:
            most = range(0)
        good = isinstance(absent, tuple) and all(place in most for place in absent)
        if not good or tuple(sorted(set(absent))) != absent:
            what = "'attrs.absent' does not list places of inputs that may be absent"
            self.found.append(Problem(self.document.where(item), what))
            return ()
        return tuple(absent)


# ---- checks -------------------------------------------------------------------


def _parameter_problems(
    document: Document, graph: Graph, inputs: Mapping[str, Item]
) -> Iterator[Problem]:
    for name, value in graph.constants.items():
        tensor = graph.tensors.get(name)
        if tensor is None:
            continue
        if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
            what = f"its parameter is {value.dtype.name}{list(value.shape)}, not "
            what += f"{tensor.dtype.value}{list(tensor.shape)}"
            yield Problem(document.where(inputs[name]), what)
    for name in document.lazy:
        if name in graph.constants:
            what = "is bound late ('lazy_init_input'), but has a parameter"
            yield Problem(document.where(inputs[name]), what)


def _type_problems(graph: Graph, node: Node) -> list[Problem]:
    """The problems that infer() finds in a node, also for unexpected forms."""
    try:
        return check_types(replace(graph, nodes=(node,)))
    except _DO_NOT_FIT as error:
        what = f"its attributes do not fit its tensors ({error or 'no reason known'})"
        return [Problem(graph.where(node), what)]
