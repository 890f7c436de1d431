"""Two weights in a word on cores that multiply one by one: one product, two sums.

For layers of small weights, as those of 4 bits, whose sums stay within int16. Twice
the flash of int8: for `--optimise speed`.
"""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.scalar import conv as conv_block
from pybuild.targets.target import Target


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """conv_block's kernel, with the sums of two output channels in one."""
    return conv_block.candidates(node, graph, target, window, rows, calls, paired=True)
