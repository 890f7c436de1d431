"""The front end and the writer of graph JSON, TVM's format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pybuild.dtype import Array
from pybuild.frontends.graphjson.document import Document, Entry, Item
from pybuild.frontends.graphjson.graph import to_graph
from pybuild.frontends.graphjson.read import read
from pybuild.frontends.graphjson.write import dump
from pybuild.ir.graph import Graph
from pybuild.ops.base.functions import AnyFunctions, library_of
from pybuild.params.budget import Budget
from pybuild.params.files import read_arrays

__all__ = ["Document", "Entry", "Item", "dump", "load", "read", "to_graph"]


def load(
    path: str,
    data: bytes,
    params: bytes | Mapping[str, Array] | None,
    functions: AnyFunctions = None,
) -> Graph:
    """Return the graph of a graph JSON file.

    path    for messages; its stem names the model unless the file does
    params  arrays by name, or the bytes of a parameter file of any kind; they become
            constants, those that the graph does not name are passed over
    functions  what nodes call that do not say which operator they are
    Errors  BuildError with every finding
    """
    source = PurePath(path).with_suffix(".params").name
    arrays = read_arrays(params, source) if isinstance(params, bytes) else params or {}
    document = read(path, data)
    Budget(path, 0).take_nodes(len(document.items))
    return to_graph(document, arrays, library_of(functions))
