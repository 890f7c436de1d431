"""Writes a graph as graph JSON and a parameter blob: what graph executors read, plus
everything else that we know. Operators go into attributes, which other readers ignore.
"""

from __future__ import annotations

import json
from typing import Any

from pybuild.errors import BuildError, Problem
from pybuild.frontends.graphjson.read import FACTS, FACTS_VERSION
from pybuild.frontends.graphjson.resolve import OWN
from pybuild.frontends.graphjson.values import encode, quant_facts
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.function import CALL
from pybuild.params.blob import write_blob


def dump(graph: Graph) -> tuple[str, bytes]:
    """Return the JSON text and the parameter blob of a graph. A value that the graph
    gives no storage gets its own; a call of a user's function has that function's name
    and no `op`.

    Errors  BuildError for attributes that cannot be encoded
    """
    sources = _sources(graph)
    nodes: list[dict[str, Any]] = [_input(name) for name in sources]
    entries = {name: (index, 0) for index, name in enumerate(sources)}
    tensors = [graph.tensor(name) for name in sources]
    found: list[Problem] = []
    for node in graph.nodes:
        for output, name in enumerate(node.outputs):
            entries[name] = (len(nodes), output)
            tensors.append(graph.tensor(name))
        nodes.append(_operator(graph, node, entries, found))
    if found:
        raise BuildError.of(found)
    rows = [0]
    for item in nodes:
        rows.append(rows[-1] + int(item.get("attrs", {}).get("num_outputs", "1")))
    top = {
        "nodes": nodes,
        "arg_nodes": list(range(len(sources))),
        "heads": [[*entries[name], 0] for name in graph.outputs],
        "attrs": _lists(graph, tensors, _devices(graph, sources)),
        "node_row_ptr": rows,
        "metadata": {FACTS: _facts(graph, sources)},  # last: others stop reading here
    }
    return _text(top), write_blob(graph.constants, graph.source)


def _sources(graph: Graph) -> list[str]:
    """Inputs, then constants in the order in which nodes first read them."""
    read = [name for node in graph.nodes for name in node.inputs]
    constants = [name for name in read if name in graph.constants]
    constants += sorted(graph.constants)
    return list(dict.fromkeys([*graph.inputs, *constants]))


def _input(name: str) -> dict[str, Any]:
    return {"op": "null", "name": name, "inputs": []}


def _operator(
    graph: Graph,
    node: Node,
    entries: dict[str, tuple[int, int]],
    found: list[Problem],
) -> dict[str, Any]:
    reads = [name for name in node.inputs if name]
    attrs = {
        "func_name": node.op,
        "num_inputs": str(len(reads)),
        "num_outputs": str(len(node.outputs)),
        "flatten_data": "0",
        "op": node.op,
        "outputs": _json(list(node.outputs)),
    }
    plain = node.attrs
    if node.op == CALL:
        attrs["func_name"] = node.attrs["function"].name
        attrs["flatten_data"] = "1" if node.attrs["flat"] else "0"
        del attrs["op"]
        plain = {}
    quants = [quant_facts(graph.tensor(name).quant) for name in node.outputs]
    if any(quants):
        attrs["quant"] = _json(quants)
    absent = [place for place, name in enumerate(node.inputs) if not name]
    if absent:
        attrs["absent"] = _json(absent)
    for key in sorted(plain):
        try:
            attrs[key] = encode(plain[key])
        except TypeError as error:
            what = f"the attribute '{key}' is a {error}, which has no text"
            found.append(Problem(graph.where(node), what))
        if key in OWN:
            what = f"the attribute '{key}' has a name that the format uses"
            found.append(Problem(graph.where(node), what))
    inputs = [[*entries[name], 0] for name in reads]
    return {"op": "tvm_op", "name": node.name, "inputs": inputs, "attrs": attrs}


def _devices(graph: Graph, sources: list[str]) -> list[int]:
    """Return the device of each entry; a constant is on the device that first reads
    it."""
    readers = graph.consumers()
    found = [
        readers[name][0].device
        if name in graph.constants and readers[name]
        else graph.homes.get(name, 0)
        for name in sources
    ]
    return found + [node.device for node in graph.nodes for _ in node.outputs]


def _is_planned(graph: Graph) -> bool:
    return bool(graph.storage) and graph.storage.keys() >= graph.tensors.keys()


def _lists(graph: Graph, tensors: list[Tensor], devices: list[int]) -> dict[str, Any]:
    blocks = list(range(len(tensors)))
    if _is_planned(graph):
        blocks = [graph.storage[tensor.name] for tensor in tensors]
    lists: dict[str, Any] = {
        "dltype": ["list_str", [t.dtype.value for t in tensors]],
        "storage_id": ["list_int", blocks],
        "shape": ["list_shape", [list(t.shape) for t in tensors]],
    }
    if any(devices):
        lists["device_index"] = ["list_int", devices]
    if graph.lazy:
        lists["lazy_init_input"] = ["list_str", list(graph.lazy)]
    return lists


def _facts(graph: Graph, sources: list[str]) -> dict[str, Any]:
    quants = {name: quant_facts(graph.tensor(name).quant) for name in sources}
    more: dict[str, Any] = {} if _is_planned(graph) else {"storage": "free"}
    more["parameters"] = dict(sorted(graph.parameters.items()))
    return {
        "version": FACTS_VERSION,
        "name": graph.name,
        **more,
        "quant": {name: facts for name, facts in quants.items() if facts},
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text(top: dict[str, Any]) -> str:
    """Return the JSON text with one node a line, so that two files can be compared."""
    nodes = ",\n    ".join(_json(node) for node in top["nodes"])
    rest = {key: value for key, value in top.items() if key != "nodes"}
    lines = [f'  "nodes": [\n    {nodes}\n  ]' if nodes else '  "nodes": []']
    lines += [f'  "{key}": {_json(value)}' for key, value in rest.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
