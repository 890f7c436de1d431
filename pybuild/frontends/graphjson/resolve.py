"""Finds the operator of a node, with its attributes, or reports that there is none.

In this order: `attrs.op`, which our writer adds; the functions that every executor
has; a library of functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pybuild.errors import Problem
from pybuild.frontends.graphjson.document import Document, Item
from pybuild.frontends.graphjson.values import decode
from pybuild.ir.graph import Attr
from pybuild.ops import OPERATORS
from pybuild.ops.base.function import CALL
from pybuild.ops.base.functions import RESERVED, Functions
from pybuild.records import dataclass

# attributes of a node that are not those of its operator
OWN = (
    "func_name", "num_inputs", "num_outputs", "flatten_data",
    "op", "outputs", "quant", "absent",
)  # fmt: skip


@dataclass(frozen=True)
class Meaning:
    """The operator or function that a node computes; op "": unknown."""

    op: str
    attrs: Mapping[str, Attr]


def operator_of(item: Item, library: Functions) -> str:
    """Return the operator of a node; "" for a function that is not in the library."""
    if "op" in item.attrs:
        return item.attrs["op"]
    found = library.by_name.get(item.function)
    return RESERVED.get(item.function, (found.op or CALL) if found else "")


def attrs_of(
    document: Document, item: Item, library: Functions, found: list[Problem]
) -> dict[str, Attr]:
    """The attributes of a node whose operator is known."""
    if "op" in item.attrs:
        keys = sorted(item.attrs.keys() - set(OWN))
        return {k: decoded(document, item, k, item.attrs[k], found) for k in keys}
    if item.function in RESERVED:
        return {}
    function = library.by_name[item.function]
    if function.op:
        return dict(function.attrs)
    return {"function": function, "flat": is_flat(item)}


def is_flat(item: Item) -> bool:
    """True if the function wants every tensor with one dimension."""
    flat = item.attrs.get("flatten_data") == "1"
    return flat and item.function not in RESERVED


def decoded(
    document: Document, item: Item, key: str, text: str, found: list[Problem]
) -> Attr:
    """Return an attribute's decoded value; None, and a problem, if it is not JSON."""
    try:
        return decode(text)
    except ValueError as error:
        found.append(Problem(document.where(item), f"'attrs.{key}' {error}"))
        return None


def missing(document: Document, library: Functions) -> Iterator[Problem]:
    """Yield the problems of unknown functions and operators."""
    items = [item for item in document.items if not item.is_input]
    callers: dict[str, list[str]] = {}
    for item in items:
        if not operator_of(item, library):
            callers.setdefault(item.function, []).append(item.name)
    if callers and not library.by_name:
        nodes = [item.name for item in items if not operator_of(item, library)]
        what = f"{len(nodes)} nodes ({_some(nodes)}) have no 'attrs.op' and call "
        what += f"functions: {_some(sorted(callers))}"
        hint = "give functions= with a pybuild.function for each, or add 'op' and "
        yield Problem(document.source, what, hint + "its attributes to the nodes")
    elif callers:
        for name, nodes in callers.items():
            what = f"the function '{name}', which {_some(nodes)} call"
            what += "s" if len(nodes) == 1 else ""
            hint = f"the library has {library.known()}"
            yield Problem(document.source, f"{what}, is not in the library", hint)
    for item in items:
        name = item.attrs.get("op", "")
        if name and (name not in OPERATORS or name == CALL):
            known = f"one of {', '.join(sorted(OPERATORS.keys() - {CALL}))}"
            what = f"the operator '{name}' does not exist"
            yield Problem(document.where(item), what, known)


def _some(names: list[str], most: int = 12) -> str:
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return ", ".join([*names[:most], *more])
