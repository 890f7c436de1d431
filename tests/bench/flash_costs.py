"""What weights and all tables of kernels take in flash, beside the int8 weights and a
bias of 4 bytes for each channel, as a table. For `./dev bench`."""

from __future__ import annotations

import math

import pybuild
from pybuild.ir.graph import Graph
from pybuild.library import Library
from tests.bench.costs import Row, Table
from tests.conftest import model_path
from tests.fieldnets.nets import NETS, net

TARGETS = ("cortex-m4", "cortex-m55", "generic")
REAL = ("kws", "vww", "ic", "ad")
MOST = 1.02
# position of the channels in the shape of weights
_CHANNELS = {"conv2d": 0, "dense": 0, "depthwise_conv2d": -1, "conv2d_transpose": 0}


def least(graph: Graph) -> int:
    """Bytes of weights, and of a bias for each of their channels; of weights that
    layers share once."""
    shapes = {
        node.inputs[1]: (graph.tensor(node.inputs[1]).shape, _CHANNELS[node.op])
        for node in graph.nodes
        if node.op in _CHANNELS and node.inputs[1] in graph.constants
    }
    return sum(math.prod(shape) + 4 * shape[axis] for shape, axis in shapes.values())


def taken(library: Library) -> int:
    """Bytes of what the kernels read of flash."""
    return sum(one.array.nbytes for one in library.tables.constants)


def flash() -> Table:
    files = {f"{name}_int8": model_path(f"{name}_int8.tflite") for name in REAL}
    found: dict[str, pybuild.Model] = {n: pybuild.load(p) for n, p in files.items()}
    found |= {name: pybuild.load(net(name).file) for name in NETS}
    rows: list[Row] = []
    for name, model in found.items():
        for target in TARGETS:
            made = model.build(name="net", target=target)
            own, have = least(made.plan.graph), taken(made)
            rows.append((name, target, own, have, f"{have / own:.3f}",
                         have <= MOST * own))  # fmt: skip
    says = (
        "Bytes of weights and of all tables of the kernels, step tables not among "
        f"them, and how many times the int8 weights and 4 bytes a channel; {MOST} is "
        "asked for."
    )
    columns = ("net", "target", "weights, 4 a channel", "flash", "times", "held")
    return Table("Flash of weights and tables", says, columns, tuple(rows))
