"""The cheapest mix of int8, int16 and float layers that loses no more than allowed."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ops import OPERATORS
from pybuild.quantisation.draft import Draft, Made
from pybuild.quantisation.measure import Wanted
from pybuild.quantisation.transformer import is_move

TOO_MUCH = "in int8 it costs more accuracy than --max-loss"


def loss(want: Wanted, made: Made) -> float:
    """The share of samples that was right and is now wrong; without labels, the root
    mean square of the outputs' error relative to the outputs.
    """
    got = made.measured
    if want.right is None or got.right is None:
        return got.outputs.share
    return (want.right - got.right) / want.samples.count


def cheapest_mix(draft: Draft, want: Wanted, kept: dict[str, str], most: float) -> Made:
    """Layers become float, first those that take away most error for their cost, until
    the loss is within `most`; then, dearest first, int8 again or int16 where that
    still holds.

    Time    runs the samples once for each layer, and up to three times more for each
            that becomes float on the way
    """
    made = draft.made(want, kept)
    if loss(want, made) <= most:
        return made
    layers = [
        node
        for node in draft.graph.nodes
        if node.output in made.scheme.integers and not is_move(node, draft.graph)
    ]
    gains = {node.output: _gain(draft, want, kept, made, node) for node in layers}
    order = sorted(layers, key=lambda node: -gains[node.output])
    chosen: list[Node] = []
    for node in order:
        chosen.append(node)
        made = draft.made(want, _with(kept, chosen))
        if loss(want, made) <= most:
            break
    wide: list[Node] = []
    for node in sorted(chosen, key=lambda n: -cost(n, draft.graph)):
        fewer = [other for other in chosen if other is not node]
        for more in ([], [node]):
            names = [n.output for n in (*wide, *more)]
            tried = draft.made(want, _with(kept, fewer), names)
            if loss(want, tried) <= most:
                chosen, wide, made = fewer, [*wide, *more], tried
                break
    return made


def _gain(
    draft: Draft, want: Wanted, kept: dict[str, str], made: Made, node: Node
) -> float:
    """The output error that a layer removes if it alone is float, per cost."""
    alone = draft.made(want, _with(kept, [node]))
    less = made.measured.outputs.noise - alone.measured.outputs.noise
    return less / cost(node, draft.graph)


def _with(kept: dict[str, str], nodes: list[Node]) -> dict[str, str]:
    return {**kept, **{node.output: TOO_MUCH for node in nodes}}


def cost(node: Node, graph: Graph) -> int:
    """The cost of a float layer: its multiply-accumulates, or else its elements."""
    work = OPERATORS[node.op].macs(node, graph)
    return max(1, work, graph.tensor(node.output).size)
