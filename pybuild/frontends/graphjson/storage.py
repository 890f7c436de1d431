"""Checks that the storage ids of a document can hold their values as long as they are
needed.

An input keeps its memory to itself; a result is not written over before its last use;
a view lies where its input does and is no larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pybuild.errors import Problem
from pybuild.frontends.graphjson.document import FREE, Document, Item
from pybuild.records import dataclass

_FOREVER = 1 << 62


@dataclass(frozen=True)
class _Use:
    """The lifetime of a value in memory: from the node that makes it to its last
    reader.

    root  the entry that first held the value; views share it
    """

    entry: int
    node: int
    last: int
    root: int


def storage_problems(document: Document) -> list[Problem]:
    """A problem for every two values that overlap in memory and time, or differ in
    kind."""
    uses = _uses(document)
    by_storage: dict[int, list[_Use]] = {}
    for use in uses:
        number = document.entries[use.entry].storage
        if number != FREE:
            by_storage.setdefault(number, []).append(use)
    found = [
        Problem(document.where(item), what)
        for item in document.items
        for what in _view_problems(document, item)
    ]
    return found + [
        Problem(document.where(document.items[later.node]), what)
        for number, sharers in by_storage.items()
        for later, what in _conflicts(document, number, sharers)
    ]


def _uses(document: Document) -> list[_Use]:
    """Return the use of each entry, in order; a view keeps its source alive."""
    roots = _roots(document)
    last: dict[int, int] = {}
    for index, item in enumerate(document.items):
        for entry in range(item.first, item.first + item.outputs):
            last[roots[entry]] = max(last.get(roots[entry], -1), index)
        for reference in item.inputs:
            last[roots[document.entry_of(reference)]] = index
    for reference in document.heads:
        last[roots[document.entry_of(reference)]] = _FOREVER
    for node in document.inputs:
        last[document.items[node].first] = _FOREVER
    return [
        _Use(entry, index, last[roots[entry]], roots[entry])
        for index, item in enumerate(document.items)
        for entry in range(item.first, item.first + item.outputs)
    ]


def _roots(document: Document) -> Mapping[int, int]:
    """Map each entry to the entry whose value it shares in memory."""
    roots: dict[int, int] = {}
    for item in document.items:
        for entry in range(item.first, item.first + item.outputs):
            roots[entry] = entry
        if _is_shared_view(document, item):
            roots[item.first] = roots[document.entry_of(item.inputs[0])]
    return roots


def _is_plain_view(item: Item) -> bool:
    return item.is_view and len(item.inputs) == 1 and item.outputs == 1


def _is_shared_view(document: Document, item: Item) -> bool:
    if not _is_plain_view(item):
        return False
    shown = document.entries[document.entry_of(item.inputs[0])]
    return document.entries[item.first].storage in (shown.storage, FREE)


def _view_problems(document: Document, item: Item) -> Iterator[str]:
    """The problems of a `__nop`, which writes nothing."""
    if not _is_plain_view(item):
        return
    name = document.items[item.inputs[0][0]].name
    shown = document.entries[document.entry_of(item.inputs[0])]
    entry = document.entries[item.first]
    if entry.bytes != shown.bytes:
        yield f"shows '{name}', {shown.bytes} bytes, as {entry.bytes} bytes"
    if entry.storage not in (shown.storage, FREE) and shown.storage != FREE:
        what = f"shows '{name}' of storage {shown.storage}, but lies in "
        yield f"{what}storage {entry.storage}"


def _conflicts(
    document: Document, number: int, sharers: list[_Use]
) -> Iterator[tuple[_Use, str]]:
    """Yield the conflicts of each value with others in the same memory."""
    busy: list[_Use] = []  # not yet read for the last time
    first = document.entries[sharers[0].entry]
    for use in sharers:
        entry = document.entries[use.entry]
        shares = f"shares storage {number} with '{_name(document, sharers[0])}'"
        if entry.device != first.device:
            yield use, f"{shares}, on device {entry.device} and {first.device}"
        elif entry.scope != first.scope:
            yield use, f"{shares}, in scope '{entry.scope}' and '{first.scope}'"
        busy = [other for other in busy if other.last >= use.node]
        for other in busy:
            if other.root != use.root:
                yield use, _overwrites(document, number, other)
                break
        if document.items[use.node].is_input and use is not sharers[0]:
            yield use, f"is an input, but {shares}"
        busy.append(use)


def _overwrites(document: Document, number: int, other: _Use) -> str:
    what = f"writes over '{_name(document, other)}' (storage {number})"
    item = document.items[other.node]
    if item.name in document.lazy and item.is_input:
        return f"{what}, an input that is bound late"
    if item.is_input:
        return f"{what}, an input"
    if other.last == _FOREVER:
        return f"{what}, an output"
    return f"{what}, which '{document.items[other.last].name}' reads"


def _name(document: Document, use: _Use) -> str:
    return document.items[use.node].name
