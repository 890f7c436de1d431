"""The limits that a build reports of each layer without running it: whether its sums
fit, whether its time and addresses depend on data, and the estimated most instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.bounds.layers import pointers
from pybuild.bounds.timing import Timing, timing
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import FLOAT32, Func
from pybuild.ir.loop_verify import operands, statements, walked
from pybuild.kernels.base.external import External
from pybuild.ops.conv import conv_parameters, sum_reach
from pybuild.plan.plan import Plan
from pybuild.records import dataclass
from pybuild.select.core_prices import PRICES
from pybuild.select.prices import price
from pybuild.targets.target import Target

_SUMMING = ("conv2d", "depthwise_conv2d", "dense")
_MOST = (1 << 31) - 1


@dataclass(frozen=True)
class LayerLimits:
    """The limits of one layer, for any input.

    name        the file's; short: that people read
    sum         the greatest amount of any partial sum in int32; None: it has none of
                weights that are known
    sum_room    how many times as large it might be and fit; None: as above
    data_tests  tests of data in its code, around code without loops
    data_loops  loops that turn as often as data says, and tests of data around loops:
                its time has no bound here; -1: its code is the user's own
    data_places  loads and stores whose address data says; 0: any input leads to the
                same addresses; -1: as above
    instructions  at most, as estimated by the core's prices; None: it has none, data
                has a say in a loop, or floats are the compiler's functions
    """

    name: str
    short: str
    op: str
    kernel: str
    sum: int | None
    sum_room: float | None
    data_tests: int
    data_loops: int
    data_places: int
    instructions: int | None


def layer_limits(plan: Plan, targets: Sequence[Target]) -> tuple[LayerLimits, ...]:
    """The limits of each step that has a kernel, in the order of the plan."""
    made = []
    for step in plan.steps:
        candidate, node = step.candidate, step.node
        if candidate.func is None:
            continue
        found, most = Timing(0, -1, -1), None
        if not isinstance(candidate.func, External):
            found = timing(candidate.func, candidate.args, pointers(candidate))
            if _is_timed(candidate.func, found, targets[step.device]):
                most = price(candidate, targets[step.device]).instructions
        reach = _sum(node, plan.graph)
        room = None if reach is None else round(_MOST / max(reach, 1), 2)
        about = node.name, plan.graph.called(node), node.op, candidate.func.name
        data = found.short, found.loops, found.places
        made.append(LayerLimits(*about, reach, room, *data, most))
    return tuple(made)


def _is_timed(func: Func, found: Timing, target: Target) -> bool:
    """True if prices say how long it takes at most; of a test of data they take the
    longer way."""
    if found.loops or target.name not in PRICES:
        return False
    return not target.float_calls or not any(
        inner.type is FLOAT32
        for stmt in statements(func.body)
        for given in operands(stmt)
        for inner in walked(given)
    )


def _sum(node: Node, graph: Graph) -> int | None:
    """The greatest sum of the layer, or of the layers that it was made from."""
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
