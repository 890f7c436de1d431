"""Graph JSON text -> Document: whether its parts fit together.

Every inconsistency is found, with its node named. Knows no operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pybuild.dtype import DType
from pybuild.errors import BuildError, Problem
from pybuild.frontends.graphjson.document import (
    FREE,
    Document,
    Entry,
    Item,
    place,
)
from pybuild.frontends.graphjson.storage import storage_problems
from pybuild.frontends.graphjson.text import LISTS, form_problems, parse

FACTS = "pybuild"  # key of what our writer adds in "metadata"
FACTS_VERSION = 1
NUMBERS = ("num_inputs", "num_outputs", "flatten_data")
_MOST_OUTPUTS = 1 << 16
# names of types besides those of DType
_ALIASES = {"uint1": "bool", "int": "int32", "float": "float32"}
_TYPES = {**{d.value: d for d in DType}, **{a: DType(n) for a, n in _ALIASES.items()}}


def read(source: str, data: bytes) -> Document:
    """The document of a graph JSON file.

    source  for messages
    Errors  BuildError with every inconsistency found
    """
    top = parse(source, data)
    found = form_problems(source, top)
    if found:
        raise BuildError.of(found)
    items = _items(top["nodes"])
    lists = {key: value[1] for key, value in top["attrs"].items() if key in LISTS}
    found = [p for i in range(len(items)) for p in _item_problems(source, items, i)]
    found += _row_problems(source, items, top["node_row_ptr"])
    found += _length_problems(source, items, lists)
    found += _boundary_problems(source, items, top["arg_nodes"], top["heads"])
    if found:
        raise BuildError.of(found)
    found = list(_entry_problems(source, items, lists))
    facts = _facts(source, top.get("metadata"), found)
    if found:
        raise BuildError.of(found)
    document = Document(
        source=source,
        items=tuple(items),
        entries=_entries(lists),
        inputs=tuple(top["arg_nodes"]),
        heads=tuple((head[0], head[1]) for head in top["heads"]),
        lazy=tuple(lists.get("lazy_init_input", ())),
        facts=facts,
    )
    found = storage_problems(document)
    if found:
        raise BuildError.of(found)
    return document


def _items(nodes: Sequence[Mapping[str, Any]]) -> list[Item]:
    items, first = [], 0
    for node in nodes:
        attrs = node.get("attrs", node.get("attr", {}))
        outputs = 1 if node["op"] == "null" else _number(attrs.get("num_outputs"), 1)
        inputs = tuple((pair[0], pair[1]) for pair in node["inputs"])
        items.append(Item(node["op"], node["name"], inputs, attrs, first, outputs))
        first += outputs
    return items


def _number(text: str | None, otherwise: int) -> int:
    """Return a small decimal number; _item_problems reports anything else."""
    good = text is not None and text.isascii() and text.isdigit() and len(text) < 9
    number = int(text) if good and text is not None else otherwise
    return number if number <= _MOST_OUTPUTS else otherwise


def _item_problems(source: str, items: Sequence[Item], index: int) -> Iterator[Problem]:
    item = items[index]
    where = place(source, item)
    if item.is_input:
        if item.inputs:
            yield Problem(where, "is an input, but reads other nodes")
        return
    for key in ("func_name", *NUMBERS):
        if key not in item.attrs:
            yield Problem(where, f"has no 'attrs.{key}'")
    for key in NUMBERS:
        text = item.attrs.get(key, "0")
        if _number(text, -1) < 0:
            yield Problem(where, f"'attrs.{key}' is '{text}', no number in range")
    if item.attrs.get("num_outputs") == "0":
        yield Problem(where, "has no outputs")
    if item.attrs.get("flatten_data", "0") not in ("0", "1"):
        yield Problem(where, '\'attrs.flatten_data\' is not "0" or "1"')
    said = _number(item.attrs.get("num_inputs"), len(item.inputs))
    if said != len(item.inputs):
        what = f"'attrs.num_inputs' is {said}, but it reads {len(item.inputs)}"
        yield Problem(where, what)
    for node, output in item.inputs:
        if not 0 <= node < len(items):
            yield Problem(where, f"reads node {node}, which does not exist")
        elif node >= index:
            yield Problem(where, f"reads node {node} ('{items[node].name}') too early")
        elif not 0 <= output < items[node].outputs:
            yield Problem(where, f"reads output {output} of '{items[node].name}'")


def _row_problems(
    source: str, items: Sequence[Item], rows: Sequence[int]
) -> list[Problem]:
    wanted = [item.first for item in items]
    wanted.append(items[-1].first + items[-1].outputs if items else 0)
    if len(rows) != len(wanted):
        what = f"'node_row_ptr' has {len(rows)} numbers for {len(items)} nodes"
        return [Problem(source, what, f"it must have {len(wanted)}")]
    for index, (is_, must) in enumerate(zip(rows, wanted, strict=True)):
        if is_ != must:
            where = place(source, items[index]) if index < len(items) else source
            what = f"'node_row_ptr[{index}]' is {is_}, it must be {must}"
            return [Problem(where, what)]
    return []


def _length_problems(
    source: str, items: Sequence[Item], lists: Mapping[str, Sequence[Any]]
) -> list[Problem]:
    count = sum(item.outputs for item in items)
    return [
        Problem(source, f"'attrs.{key}' has {len(values)} values for {count} outputs")
        for key, values in lists.items()
        if key != "lazy_init_input" and len(values) != count
    ]


def _boundary_problems(
    source: str,
    items: Sequence[Item],
    arguments: Sequence[int],
    heads: Sequence[Sequence[int]],
) -> Iterator[Problem]:
    names: set[str] = set()
    listed: set[int] = set()
    for node in arguments:
        if not 0 <= node < len(items):
            yield Problem(source, f"'arg_nodes' has node {node}, which does not exist")
            continue
        where = place(source, items[node])
        if not items[node].is_input:
            yield Problem(where, "is in 'arg_nodes', but computes")
        if node in listed:
            yield Problem(where, "is in 'arg_nodes' twice")
        elif items[node].name in names:
            yield Problem(where, "another input has the same name")
        listed.add(node)
        names.add(items[node].name)
    for node, item in enumerate(items):
        if item.is_input and node not in listed:
            yield Problem(
                place(source, item), "is an input that 'arg_nodes' leaves out"
            )
    for head in heads:
        if not 0 <= head[0] < len(items):
            yield Problem(source, f"'heads' has node {head[0]}, which does not exist")
        elif not 0 <= head[1] < items[head[0]].outputs:
            where = place(source, items[head[0]])
            yield Problem(where, f"'heads' has its output {head[1]}")


def _entry_problems(
    source: str, items: Sequence[Item], lists: Mapping[str, Sequence[Any]]
) -> Iterator[Problem]:
    for item in items:
        for entry in range(item.first, item.first + item.outputs):
            where, kind = place(source, item), lists["dltype"][entry]
            if kind not in _TYPES:
                hint = f"one of {', '.join(d.value for d in DType)}"
                yield Problem(where, f"the type '{kind}' is not supported", hint)
            shape = lists["shape"][entry]
            if any(dim < 0 for dim in shape):
                yield Problem(where, f"has shape {shape}")
            for key, least in (("storage_id", FREE), ("device_index", 0)):
                number = lists.get(key, [0] * (entry + 1))[entry]
                if number < least:
                    yield Problem(where, f"'attrs.{key}' is {number}")
        devices = lists.get("device_index", [])[item.first : item.first + item.outputs]
        if len(set(devices)) > 1:
            yield Problem(place(source, item), "has outputs on several devices")
    inputs = [item.name for item in items if item.is_input]
    for name in lists.get("lazy_init_input", []):
        if name not in inputs:
            hint = f"inputs are {', '.join(inputs)}"
            what = f"'attrs.lazy_init_input' has '{name}', which is not an input"
            yield Problem(source, what, hint)


def _entries(lists: Mapping[str, Sequence[Any]]) -> tuple[Entry, ...]:
    count = len(lists["shape"])
    return tuple(
        Entry(tuple(shape), _TYPES[kind], storage, device, scope)
        for shape, kind, storage, device, scope in zip(
            lists["shape"],
            lists["dltype"],
            lists.get("storage_id", [FREE] * count),
            lists.get("device_index", [0] * count),
            lists.get("storage_scope", ["global"] * count),
            strict=True,
        )
    )


def _facts(source: str, metadata: Any, found: list[Problem]) -> Mapping[str, Any]:
    """Return the metadata that our writer added; other writers may put anything
    there."""
    facts = metadata.get(FACTS) if isinstance(metadata, dict) else None
    if facts is None:
        return {}
    if not isinstance(facts, dict) or facts.get("version") != FACTS_VERSION:
        what = f"'metadata.{FACTS}' is not of version {FACTS_VERSION}"
        found.append(Problem(source, what))
        return {}
    return facts
