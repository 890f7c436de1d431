"""A graph JSON file as plain values: nodes, entries, storage ids. Knows no operator: a
node is a function name with string attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from pybuild.dtype import DType
from pybuild.records import dataclass

NOP = "__nop"
# storage id of an entry that the planner may place
FREE = -1

# (node, output of it)
Reference = tuple[int, int]


@dataclass(frozen=True)
class Entry:
    """One output of one node.

    storage  number of the memory block that it lies in, or FREE
    device   index into the table of devices
    """

    shape: tuple[int, ...]
    dtype: DType
    storage: int
    device: int = 0
    scope: str = "global"

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes


@dataclass(frozen=True)
class Item:
    """One node; `first` is the number of its first entry."""

    op: str
    name: str
    inputs: tuple[Reference, ...]
    attrs: Mapping[str, str]
    first: int
    outputs: int

    @property
    def is_input(self) -> bool:
        return self.op == "null"

    @property
    def function(self) -> str:
        """The name of the function that computes the node; "" for an input."""
        return self.attrs.get("func_name", "")

    @property
    def is_view(self) -> bool:
        """True if its output is its input's memory."""
        return self.function == NOP


@dataclass(frozen=True)
class Document:
    """A consistent graph JSON file.

    inputs  nodes, in the order of the executor's inputs; weights among them
    lazy    names of the inputs that get no memory before they are bound
    facts   what our writer adds: the model's name, quantisation of inputs, and
            "storage": "free" where the ids are not a plan but one for each entry
    """

    source: str
    items: tuple[Item, ...]
    entries: tuple[Entry, ...]
    inputs: tuple[int, ...]
    heads: tuple[Reference, ...]
    lazy: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def where(self, item: Item) -> str:
        """The place of a node for messages: `FILE: node 'NAME' (FUNCTION)`."""
        return place(self.source, item)

    @property
    def is_planned(self) -> bool:
        """True if the file plans memory: its storage ids must be followed."""
        given = any(entry.storage != FREE for entry in self.entries)
        return given and self.facts.get("storage") != "free"

    def entry_of(self, reference: Reference) -> int:
        return self.items[reference[0]].first + reference[1]


def place(source: str, item: Item) -> str:
    """`FILE: node 'NAME' (FUNCTION)`"""
    return f"{source}: node '{item.name}' ({item.function or item.op})"
