"""Document + parameters -> Graph: the nodes that say which operator they are.

Our own writer says it in attrs.op; knows no library of functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.frontends.graphjson.document import COPY, NOP, Document, Entry, Item
from pybuild.frontends.graphjson.values import decode, parse_json, quant_of
from pybuild.graph import Attr, Graph, Node, Quant, Tensor, verify
from pybuild.ops import OPERATORS
from pybuild.ops.interpret import check_types
from pybuild.ops.signatures import SIGNATURES, misfits

# attributes of a node that are not those of its operator
OWN = (
    "func_name", "num_inputs", "num_outputs", "flatten_data",
    "op", "outputs", "quant", "absent",
)  # fmt: skip
# functions that every graph executor has
_RESERVED = {NOP: "reshape", COPY: "copy"}
_DO_NOT_FIT = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip


def to_graph(document: Document, params: Mapping[str, Array]) -> Graph:
    """The graph; inputs that `params` has are its constants, other names are left.

    Errors  BuildError with every node that names no operator, and all that is wrong
    """
    found: list[Problem] = list(_missing_operators(document))
    names = _entry_names(document, found)
    tensors = _tensors(document, names, found)
    nodes = []
    for item in document.items:
        operator = operator_of(item)
        if operator in OPERATORS and not item.is_input:
            nodes.append(_node(document, item, operator, names, found))
    inputs = {document.items[n].name: document.items[n] for n in document.inputs}
    constants = {n: v for n, v in params.items() if n in inputs}
    graph = Graph(
        name=str(document.facts.get("name") or PurePath(document.source).stem),
        source=document.source,
        nodes=tuple(nodes),
        tensors=tensors,
        inputs=tuple(n for n in inputs if n not in constants),
        outputs=tuple(names[document.entry_of(head)] for head in document.heads),
        constants=constants,
    )
    found += _parameter_problems(document, graph, inputs)
    found += [Problem(graph.where(n), what) for n in graph.nodes for what in misfits(n)]
    if found:
        raise BuildError.of(found)
    verify(graph)
    found = [p for node in graph.nodes for p in _type_problems(graph, node)]
    if found:
        raise BuildError.of(found)
    return graph


def operator_of(item: Item) -> str:
    """The operator that a node names; "" for a function of somebody's library."""
    return item.attrs.get("op", _RESERVED.get(item.function, ""))


def _missing_operators(document: Document) -> Iterator[Problem]:
    """One finding for all functions, and one for each operator that is not ours."""
    items = [item for item in document.items if not item.is_input]
    functions = sorted({item.function for item in items if not operator_of(item)})
    if functions:
        nodes = [item.name for item in items if not operator_of(item)]
        what = f"{len(nodes)} nodes ({_some(nodes)}) have no 'attrs.op' and call "
        what += f"functions: {_some(functions)}"
        hint = "this version of pybuild reads no function libraries; write the file "
        hint += "with pybuild, or add 'op' and the operator's attributes to the nodes"
        yield Problem(document.source, what, hint)
    for item in items:
        name = operator_of(item)
        if name and name not in OPERATORS:
            known = f"one of {', '.join(sorted(OPERATORS))}"
            what = f"the operator '{name}' does not exist"
            yield Problem(document.where(item), what, known)
        if item.attrs.get("flatten_data") == "1" and name:
            what = "'attrs.flatten_data' is \"1\", but operators have shapes"
            yield Problem(document.where(item), what, 'write "0"')


def _some(names: list[str], most: int = 12) -> str:
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])


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
    names = _decoded(document, item, "outputs", text, found)
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
    """The facts of the quantisation of each output of a node."""
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


def _node(
    document: Document,
    item: Item,
    operator: str,
    names: list[str],
    found: list[Problem],
) -> Node:
    attrs: dict[str, Attr] = {}
    if "op" in item.attrs:  # the reserved functions have no attributes of ours
        for key in sorted(item.attrs.keys() - set(OWN)):
            attrs[key] = _decoded(document, item, key, item.attrs[key], found)
    reads = [names[document.entry_of(reference)] for reference in item.inputs]
    absent = _decoded(document, item, "absent", item.attrs.get("absent", "[]"), found)
    for place in _places(document, item, absent, found):
        reads.insert(place, "")
    outputs = tuple(names[item.first : item.first + item.outputs])
    device = document.entries[item.first].device
    return Node(operator, item.name, tuple(reads), outputs, attrs, device)


def _places(
    document: Document, item: Item, absent: Attr, found: list[Problem]
) -> tuple[int, ...]:
    """Where among the inputs of a node one is left out, in order."""
    signature = SIGNATURES[operator_of(item)]
    most = range(signature.least, min(signature.most, len(item.inputs) + 8))
    good = isinstance(absent, tuple) and all(place in most for place in absent)
    if not good or tuple(sorted(set(absent))) != absent:
        what = "'attrs.absent' does not list places of inputs that may be absent"
        found.append(Problem(document.where(item), what))
        return ()
    return tuple(absent)


def _decoded(
    document: Document, item: Item, key: str, text: str, found: list[Problem]
) -> Attr:
    try:
        return decode(text)
    except ValueError as error:
        found.append(Problem(document.where(item), f"'attrs.{key}' {error}"))
        return None


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
    """What infer() says of a node, also when it did not expect such a one."""
    try:
        return check_types(replace(graph, nodes=(node,)))
    except _DO_NOT_FIT as error:
        what = f"its attributes do not fit its tensors ({error or 'no reason known'})"
        return [Problem(graph.where(node), what)]
