"""float32 convolution and fully connected layers whose weights are float16 in flash:
the kernels of conv_float.py and conv.py, which widen them as they are read.
"""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import kernels_of, known_halves
from pybuild.kernels.portable import conv_float as blocks
from pybuild.kernels.portable.conv import offer, weighted
from pybuild.kernels.portable.conv_float import bias_of, fastest, pack, suited
from pybuild.kernels.portable.conv_float_code import Layer
from pybuild.ops.base.operator import clamp_of
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
    if not suited(node, graph, window) or not known_halves(node, graph):
        return []
    like = Layer(window, FloatClamp(*clamp_of(node)), 0, 0, halves=True)
    layer = fastest(like, target.float_sums)
    if layer is None:
        return []
    weights = (pack(layer, kernels_of(node, graph)),)
    return [blocks.offer(layer, weights, bias_of(node, graph), rows, calls)]


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
