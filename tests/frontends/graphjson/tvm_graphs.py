"""Graph JSON as TVM's own tests have it: nodes that name functions. No operators."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]


def null(name: str) -> Node:
    return {"op": "null", "name": name, "inputs": []}


def call(name: str, function: str, inputs: list[list[int]], outputs: int = 1) -> Node:
    attrs = {"func_name": function, "num_inputs": str(len(inputs))}
    attrs |= {"num_outputs": str(outputs), "flatten_data": "0"}
    return {"op": "tvm_op", "name": name, "inputs": inputs, "attrs": attrs}


def graph(
    nodes: list[Node],
    arguments: list[int],
    heads: list[list[int]],
    shapes: list[list[int]],
    storage: list[int] | None = None,
    types: list[str] | None = None,
) -> dict[str, Any]:
    """A whole file; without `storage` every value has its own."""
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + int(node.get("attrs", {}).get("num_outputs", "1")))
    count = len(shapes)
    return {
        "nodes": nodes,
        "arg_nodes": arguments,
        "node_row_ptr": rows,
        "heads": heads,
        "attrs": {
            "dltype": ["list_str", types or ["float32"] * count],
            "storage_id": ["list_int", storage or list(range(count))],
            "shape": ["list_shape", shapes],
        },
    }


def simple(function: str = "myadd", shape: list[int] | None = None) -> dict[str, Any]:
    """x, y and one function of both."""
    nodes = [null("x"), null("y"), call("add", function, [[0, 0], [1, 0]])]
    return graph(nodes, [0, 1], [[2, 0]], [shape or [4]] * 3)


def simplex() -> dict[str, Any]:
    """A + B on one device, minus C on another."""
    nodes = [
        null("A"), null("B"), call("add", "elemwise_add", [[0, 0], [1, 0]]),
        call("__copy_add_to_sub", "__copy", [[2, 0]]), null("C"),
        call("sub", "elemwise_sub", [[3, 0], [4, 0]]),
    ]  # fmt: skip
    top = graph(nodes, [0, 1, 4], [[5, 0, 0]], [[4]] * 6, storage=[3, 4, 0, 1, 5, 2])
    top["attrs"]["device_index"] = ["list_int", [2, 2, 2, 1, 1, 1]]
    return top


def duplex(devices: bool = True) -> dict[str, Any]:
    """A + B on one device, minus C on another, plus D on the first again."""
    nodes = [
        null("A"), null("B"), call("add1", "elemwise_add", [[0, 0], [1, 0]]),
        call("copy1", "__copy", [[2, 0]]), null("C"),
        call("sub", "elemwise_sub", [[3, 0], [4, 0]]),
        call("copy2", "__copy", [[5, 0]]), null("D"),
        call("add2", "elemwise_add", [[6, 0], [7, 0]]),
    ]  # fmt: skip
    top = graph(nodes, [0, 1, 4, 7], [[8, 0, 0]], [[4]] * 9,
                storage=[4, 5, 0, 1, 6, 2, 0, 7, 3])  # fmt: skip
    if devices:
        top["attrs"]["device_index"] = ["list_int", [2, 2, 2, 1, 1, 1, 2, 2, 2]]
    top["attrs"]["dtype"] = ["list_int", [0] * 9]
    return top
