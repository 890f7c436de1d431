"""IF and WHILE: one branch is chosen or both are computed; loops are unrolled. A
condition known at build time decides. A computed condition selects between the results
of both branches or, for up to as many iterations as the user allows, between an
iteration's values and those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.draft.builder import Builder, Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.reader.flat import FlatModel
from pybuild.ir.graph import Tensor

MOST_TURNS = 4096
_HINT = "--max-turns N says how many there are at most; all are written out"
# adds the operators of a subgraph's builder; given by what owns the table of them
Walk = Callable[[Builder], None]


def _called(
    call: Call, graph: FlatModel, given: Sequence[Tensor], walk: Walk
) -> list[Tensor]:
    """Return the outputs of a subgraph for these inputs; its operators are added to the
    graph."""
    outer = call.builder
    outer.budget.take_nodes(1 + len(graph.tensors) // 8)  # each gets a name
    inside = Builder.within(outer, graph)
    if len(graph.inputs) != len(given):
        raise call.error(f"gives {len(given)} inputs to {len(graph.inputs)}")
    flow = Flow(call)
    for index, x in zip(graph.inputs, given, strict=True):
        flat = inside.typed(index, x.shape)
        if flat.dtype is not x.dtype:
            what = f"'{x.name}' is {x.dtype.value}, its subgraph wants "
            raise call.error(what + flat.dtype.value)
        same = flat.quant == x.quant or inside.has_twin(index)
        inside.known[index] = x if same else flow.node("copy", [x], like=flat)
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


def composite(call: Call, walk: Walk) -> None:
    """Import a composite operator through the subgraph in which the file spells it
    out."""
    flow = Flow(call)
    graph = call.subgraph("DecompositionSubgraphIndex")
    _given(call, flow, _called(call, graph, flow.args(), walk))


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
    before = _held(call.builder)
    yes = _called(call, sides[0], given, walk)
    held = _held(call.builder)
    _restore(call.builder, before)
    no = _called(call, sides[1], given, walk)
    _given(call, flow, _chosen(flow, condition, yes, no))
    _merge(flow, condition, held)


def _chosen(
    flow: Flow, condition: Tensor, yes: Sequence[Tensor], no: Sequence[Tensor]
) -> list[Tensor]:
    """Select `yes` where the condition holds, else `no`."""
    made = []
    for a, b in zip(yes, no, strict=False):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            what = f"its branches give {list(a.shape)} and {list(b.shape)}"
            raise flow.call.error(what, "of one type and shape, or a known condition")
        once = flow.reshape(condition, ())
        made.append(flow.map("where", once, flow.plain(a), flow.plain(b)))
    return made


def _held(builder: Builder) -> dict[str, Tensor | None]:
    """Return the current tensor of every variable; None: its value from before the
    run."""
    return {name: variable.now for name, variable in builder.variables.items()}


def _restore(builder: Builder, held: dict[str, Tensor | None]) -> None:
    for name, variable in builder.variables.items():
        variable.now = held.get(name) or variable.state


def _merge(flow: Flow, condition: Tensor, yes: dict[str, Tensor | None]) -> None:
    """Give variables the value in `yes` if the condition holds, else keep their current
    one."""
    for name, variable in flow.builder.variables.items():
        sides = yes.get(name) or variable.state, variable.now
        like = sides[0] or sides[1]
        if like is None or sides[0] is sides[1]:
            continue
        if None in sides:
            wanted = replace(like, name=flow.builder.fresh(name or "variable"))
            variable.state = flow.builder.add(wanted)
        a, b = (side or variable.state or like for side in sides)
        if (a.shape, a.dtype, a.quant) != (b.shape, b.dtype, b.quant):
            raise flow.call.error(f"its branches assign two types to '{name}'")
        (made,) = _chosen(flow, condition, [a], [b])
        variable.now = flow.node("map", [made], {"fn": "copy"}, like=a)


def while_(call: Call, walk: Walk) -> None:
    """Unroll the loop while the condition is known to hold; with a computed condition,
    as many times as the user's limit."""
    flow, most = Flow(call), call.builder.max_turns
    carried, computed = flow.args(), 0
    condition, body = (call.subgraph(f"{n}SubgraphIndex") for n in ("Cond", "Body"))
    alive: Tensor | None = None
    for _ in range(MOST_TURNS + 1):
        going = _called(call, condition, carried, walk)
        if len(going) != 1:
            raise call.error(f"its condition has {len(going)} outputs, not 1")
        value = flow.known(going[0])
        if value is None and not most:
            what = "its number of turns is not known at build time"
            raise call.error(what, _HINT)
        alive = going[0] if value is None else alive
        if (value is not None and not value.all()) or computed == most > 0:
            _given(call, flow, carried)
            return
        before = _held(call.builder)
        made = _called(call, body, carried, walk)
        if alive is not None:
            computed += 1
            after = _held(call.builder)
            _restore(call.builder, before)
            made = _chosen(flow, alive, made, carried)
            _merge(flow, alive, after)
        carried = made
    raise call.error(f"has more than {MOST_TURNS} turns")
