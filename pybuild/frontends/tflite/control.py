"""IF and WHILE: branches chosen or both computed, turns written out one by one.

A condition that is known at build time decides; one that is computed chooses between
what both branches give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.builder import Builder, Call
from pybuild.frontends.tflite.flat import FlatModel
from pybuild.frontends.tflite.flow import Flow
from pybuild.graph import Tensor

MOST_TURNS = 4096
# adds the operators of a subgraph's builder; given by what owns the table of them
Walk = Callable[[Builder], None]


def _called(
    call: Call, graph: FlatModel, given: Sequence[Tensor], walk: Walk
) -> list[Tensor]:
    """The outputs of a subgraph on these inputs, its operators added to the graph."""
    outer = call.builder
    inside = Builder.within(outer, graph)
    if len(graph.inputs) != len(given):
        raise call.error(f"gives {len(given)} inputs to {len(graph.inputs)}")
    for index, x in zip(graph.inputs, given, strict=True):
        flat = inside.typed(index, x.shape)
        if flat.dtype is not x.dtype:
            what = f"'{x.name}' is {x.dtype.value}, its subgraph wants "
            raise call.error(what + flat.dtype.value)
        inside.known[index] = x
    walk(inside)
    if inside.problems:
        raise BuildError.of(inside.problems)
    made = []
    for index in graph.outputs:
        if index not in inside.known and inside.is_constant(index):
            value = inside.raw_constant(index)
            inside.known[index] = inside.add(inside.typed(index, value.shape), value)
        if index not in inside.known:
            raise call.error(f"its subgraph never computes '{inside.names[index]}'")
        made.append(inside.known[index])
    return made


def _given(call: Call, flow: Flow, made: Sequence[Tensor]) -> None:
    if len(made) != len(call.flat.outputs):
        what = f"its subgraph has {len(made)} outputs, not {len(call.flat.outputs)}"
        raise call.error(what)
    for index, x in enumerate(made):
        flow.give(flow.node("copy", [x]), index)


def if_(call: Call, walk: Walk) -> None:
    flow = Flow(call)
    condition, *given = flow.args()
    if condition.dtype is not DType.BOOL or condition.size != 1:
        raise call.error(f"'{condition.name}' is not one bool")
    sides = [call.subgraph(f"{n}SubgraphIndex") for n in ("Then", "Else")]
    value = flow.known(condition)
    if value is not None:
        side = sides[0] if bool(value.reshape(-1)[0]) else sides[1]
        _given(call, flow, _called(call, side, given, walk))
        return
    yes, no = (_called(call, side, given, walk) for side in sides)
    once, chosen = flow.reshape(condition, ()), []
    for a, b in zip(yes, no, strict=False):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            what = f"its branches give {list(a.shape)} and {list(b.shape)}"
            raise call.error(what, "of one type and shape, or a known condition")
        chosen.append(flow.map("where", once, flow.plain(a), flow.plain(b)))
    _given(call, flow, chosen)


def while_(call: Call, walk: Walk) -> None:
    """Turns while the condition is known to hold."""
    flow = Flow(call)
    carried = flow.args()
    graphs = [call.subgraph(f"{n}SubgraphIndex") for n in ("Cond", "Body")]
    for _ in range(MOST_TURNS + 1):
        going = _called(call, graphs[0], carried, walk)
        if len(going) != 1:
            raise call.error(f"its condition has {len(going)} outputs, not 1")
        value = flow.known(going[0])
        if value is None:
            hint = "let only constants and its own counter decide"
            raise call.error("its number of turns is not known at build time", hint)
        if not bool(np.all(value)):
            _given(call, flow, carried)
            return
        carried = _called(call, graphs[1], carried, walk)
    raise call.error(f"has more than {MOST_TURNS} turns")
