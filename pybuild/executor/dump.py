"""The results of a debug run: a table, and files in a folder, named as TVM names them.

Knows rows of facts, no instance.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pybuild.dtype import Array
from pybuild.files.say import say
from pybuild.host.ndarray import Device
from pybuild.ir.graph import Graph, Tensor
from pybuild.ops.base.function import CALL
from pybuild.package.folder import write_file
from pybuild.params.blob import write_blob
from pybuild.records import dataclass

GRAPH_FILE = "_tvmdbg_graph_dump.json"
TENSORS_FILE = "output_tensors.params"
TRACE_FILE = "_tvmdbg_execution_trace.json"
_HEADS = (
    "Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs",
    "Measurements(us)",
)  # fmt: skip


@dataclass(frozen=True)
class DebugNode:
    """An input, a parameter, or a layer as it was built.

    op      "param" for what is given
    inputs  names of the nodes that it reads
    step    of the plan; -1: nothing had to be computed
    short   another name of a layer, for people
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]
    step: int = -1
    short: str = ""


def debug_nodes(
    graph: Graph,
    given: Sequence[Tensor],
    steps: Mapping[str, int],
    functions: Mapping[str, str],
) -> tuple[DebugNode, ...]:
    """The inputs and parameters, then the layers in the order in which they run.

    steps      of the plan, by the first output
    functions  that nodes of a graph JSON call, by the node's name
    """
    makers = {name: node.name for node in graph.nodes for name in node.outputs}
    nodes = [DebugNode(t.name, "param", (), (t,)) for t in given]
    for node in graph.nodes:
        reads = tuple(makers.get(name, name) for name in node.inputs if name)
        made = tuple(graph.tensor(name) for name in node.outputs)
        step = steps.get(node.output, -1)
        short = graph.called(node)
        own = node.attrs["function"].name if node.op == CALL else node.op
        op = functions.get(node.name, own)
        nodes.append(DebugNode(node.name, op, reads, made, step, short))
    return tuple(nodes)


def functions_of(graph_json: str) -> dict[str, str]:
    """The function that each node of a graph JSON calls, by the node's name.

    Errors  ValueError for another text
    """
    try:
        nodes = json.loads(graph_json)["nodes"]
        calls = [node for node in nodes if node["op"] != "null"]
        return {node["name"]: node["attrs"]["func_name"] for node in calls}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"the text is not a graph JSON ({error})") from None


def key_of(nodes: Sequence[DebugNode], index: int, output: int) -> str:
    """A unique key of an output, whatever the names of the nodes."""
    return f"{nodes[index].name}____topo-index:{index}____output-num:{output}"


def table(
    nodes: Sequence[DebugNode], times: Sequence[Sequence[float]], by_time: bool
) -> str:
    """A row for each output of each layer; times: seconds of each node's repeats.

    by_time  longest first, and the sum in a last row
    """
    means = [sum(t) / len(t) if t else 0.0 for t in times]
    total = sum(means)
    layers = [i for i, node in enumerate(nodes) if node.op != "param"]
    if by_time:
        layers.sort(key=lambda i: -means[i])
    rows = [_HEADS, tuple("-" * len(head) for head in _HEADS)]
    for i in layers:
        share = 100 * means[i] / total if total else 0.0
        for output, tensor in enumerate(nodes[i].outputs):
            name = nodes[i].name + (f":{output}" if output else "")
            spent = f"{means[i] * 1e6:.3f}", f"{share:.3f}"
            shape = "(" + ", ".join(map(str, tensor.shape)) + ")"
            counts = str(len(nodes[i].inputs)), str(len(nodes[i].outputs))
            all_ = "[" + ", ".join(f"{t * 1e6:.3f}" for t in times[i]) + "]"
            rows.append((name, nodes[i].op, *spent, shape, *counts, all_))
    if by_time:
        rows.append(("Total_time", "-", f"{total * 1e6:.3f}", *"-----"))
    widths = [max(len(row[c]) for row in rows) + 2 for c in range(len(_HEADS))]
    lines = ("".join(f"{c:<{w}}" for c, w in zip(r, widths, strict=True)) for r in rows)
    return "\n".join(lines)


def trace(nodes: Sequence[DebugNode], times: Sequence[Sequence[float]]) -> str:
    """The nodes one after the other, as a trace for chrome://tracing."""
    events: list[dict[str, Any]] = []
    now = 0.0
    for node, spent in zip(nodes, times, strict=True):
        for phase in "BE":
            name = {"name": node.name, "ph": phase}
            events.append({"ts": now, "tid": 1, "pid": 1, **name})
            now += (sum(spent) / len(spent) if spent and phase == "B" else 0.0) * 1e6
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})


def described(nodes: Sequence[DebugNode]) -> list[dict[str, Any]]:
    """The nodes with producers' names, operators, types and shapes."""
    return [
        {
            "name": node.name,
            "op": node.op,
            "inputs": list(node.inputs),
            "attrs": {"T": f"type: {node.outputs[0].dtype.value}"},
            "shape": list(node.outputs[0].shape),
        }
        for node in nodes
    ]


def graph_dump(nodes: Sequence[DebugNode], given: int, heads: Sequence[Any]) -> str:
    """given: how many nodes are inputs or parameters; heads: node and output"""
    rows = [0]
    for node in nodes:
        rows.append(rows[-1] + len(node.outputs))
    tensors = [tensor for node in nodes for tensor in node.outputs]
    attrs = {
        "dltype": ["list_str", [tensor.dtype.value for tensor in tensors]],
        "shape": ["list_shape", [list(tensor.shape) for tensor in tensors]],
        "storage_id": ["list_int", list(range(len(tensors)))],
    }
    top = {
        "nodes": described(nodes),
        "arg_nodes": list(range(given)),
        "node_row_ptr": rows,
        "heads": heads,
        "attrs": attrs,
    }
    return json.dumps(top, indent=4)


class DebugResult:
    """The results that scripts ask a debug executor for, as in tvm's debug_datum.

    times, tensors  of the last run; empty before one
    """

    def __init__(self, nodes: Sequence[DebugNode]) -> None:
        self._nodes = nodes
        self.times: Sequence[Sequence[float]] = [() for _ in nodes]
        self.tensors: Mapping[str, Array] = {}

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        return described(self._nodes)

    def get_graph_node_shapes(self) -> list[list[int]]:
        return [list(tensor.shape) for n in self._nodes for tensor in n.outputs]

    def get_graph_node_dtypes(self) -> list[str]:
        return [tensor.dtype.value for n in self._nodes for tensor in n.outputs]

    def get_output_tensors(self) -> dict[str, Array]:
        """The tensors of the last run, by the keys of the file."""
        return dict(self.tensors)

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        return table(self._nodes, self.times, sort_by_time)

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        say(self.get_debug_result(sort_by_time))


class Folder:
    """The folder for the files of one module.

    root  None: a new temporary folder
    """

    def __init__(self, root: str | Path | None, device: Device) -> None:
        self.root = Path(root or tempfile.mkdtemp(prefix="tvmdbg_"))
        name = f"_tvmdbg_device_{device.type.upper()}_{device.device_id}"
        self.path = self.root / name
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chmod(self.path, 0o700)

    def write(self, file: str, content: str | bytes) -> None:
        write_file(self.path / file, content)

    def write_tensors(self, tensors: Mapping[str, Array]) -> None:
        self.write(TENSORS_FILE, write_blob(tensors, TENSORS_FILE))

    def remove(self) -> None:
        """Removes the folder with everything in it."""
        shutil.rmtree(self.root, ignore_errors=True)
