"""The front end of graph JSON, TVM's format, and its writer."""

from __future__ import annotations

from pathlib import PurePath

from pybuild.frontends.graphjson.document import Document, Entry, Item
from pybuild.frontends.graphjson.graph import to_graph
from pybuild.frontends.graphjson.read import read
from pybuild.frontends.graphjson.write import dump
from pybuild.graph import Graph
from pybuild.params.files import read_arrays

__all__ = ["Document", "Entry", "Item", "dump", "load", "read", "to_graph"]


def load(path: str, data: bytes, params: bytes | None) -> Graph:
    """The graph of a graph JSON file whose nodes say which operators they are.

    path    for messages; its stem names the model unless the file does
    params  a parameter file of any kind, usually the blob beside it; its arrays
            become constants, those that the graph does not name are passed over
    Errors  BuildError with every finding
    """
    source = PurePath(path).with_suffix(".params").name
    arrays = {} if params is None else read_arrays(params, source)
    return to_graph(read(path, data), arrays)
