"""float32 convolution and fully connected layers whose weights are float16 in flash:
the kernels of conv_float.py and conv.py, which widen them as they are read.
"""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.weights import known_halves
from pybuild.kernels.portable import conv_float
from pybuild.kernels.portable.conv import offer, weighted
from pybuild.targets.target import Target


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of blocks of sums that suit a layer: none, or one."""
    if not known_halves(node, graph):
        return []
    return conv_float.offers(node, graph, target, window, rows, calls, halves=True)


def plain(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernel that any layer may have, also of groups, if its weights are such."""
    if not known_halves(node, graph):
        return []
    layer, tables = weighted(node, graph, window, target, halves=True)
    return [offer(layer, rows, tables, calls, target)]
