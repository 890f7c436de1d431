"""What a build promises of each layer without running it: that its sums fit, and
whether its time depends on data.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.bounds.layers import pointers
from pybuild.bounds.timing import timing
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.external import External
from pybuild.ops.conv import conv_parameters, sum_reach
from pybuild.plan.plan import Plan

_SUMMING = ("conv2d", "depthwise_conv2d", "dense")
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class LayerLimits:
    """Of one layer, for any input.

    name        the file's; short: that people read
    sum         the greatest amount of any partial sum in int32; None: it has none of
                weights that are known
    sum_room    how many times as large it might be and fit; None: as above
    data_tests  tests of data in its code, around code without loops
    data_loops  loops that turn as often as data says, and tests of data around loops:
                its time has no bound here; -1: its code is the user's own
    """

    name: str
    short: str
    op: str
    kernel: str
    sum: int | None
    sum_room: float | None
    data_tests: int
    data_loops: int


def layer_limits(plan: Plan) -> tuple[LayerLimits, ...]:
    """Of each step that has a kernel, in the order of the plan."""
    made = []
    for step in plan.steps:
        candidate, node = step.candidate, step.node
        if candidate.func is None:
            continue
        tests, loops = 0, -1
        if not isinstance(candidate.func, External):
            found = timing(candidate.func, candidate.args, pointers(candidate))
            tests, loops = found.short, found.loops
        reach = _sum(node, plan.graph)
        room = None if reach is None else round(_MOST / max(reach, 1), 2)
        about = node.name, plan.graph.called(node), node.op, candidate.func.name
        made.append(LayerLimits(*about, reach, room, tests, loops))
    return tuple(made)


def _sum(node: Node, graph: Graph) -> int | None:
    """Of the layer, or of those that it is made of the greatest."""
    found = []
    for one in node.of or (node,):
        try:
            source = graph.tensor(one.inputs[0]).dtype
        except (KeyError, IndexError, BuildError):
            continue
        if one.op in _SUMMING and source in (DType.INT8, DType.INT16):
            reach = sum_reach(one, graph, conv_parameters(one, graph))
            if reach is not None:
                found.append(int(reach.max(initial=0)))
    return max(found, default=None)
