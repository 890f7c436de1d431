"""If, Loop and Scan: one branch is chosen or both are computed; loops are unrolled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing

# of a graph attribute on tensors: the names of its outputs
Import = Callable[[Flow, Any, Sequence[str]], list[str]]
MOST_TURNS = 4096


def _if(flow: Flow, imported: Import) -> None:
    condition, attrs = flow.arg(0), flow.op.attrs
    value = flow.known(condition)
    if value is not None:
        side = "then_branch" if bool(value.reshape(-1)[0]) else "else_branch"
        for index, name in enumerate(imported(flow, attrs[side], ())):
            flow.give(name, index)
        return
    yes, no = (imported(flow, attrs[f"{s}_branch"], ()) for s in ("then", "else"))
    once = flow.reshape(condition, ())
    for index, (a, b) in enumerate(zip(yes, no, strict=True)):
        flow.give(_either(flow, once, a, b), index)


def _either(flow: Flow, condition: str, a: str, b: str) -> str:
    """Select `a` if the condition holds, else `b`; for lists, element by element."""
    draft = flow.draft
    if draft.no_tensor(a) or draft.no_tensor(b):
        pair = draft.lists.get(a), draft.lists.get(b)
        if None in pair or len(pair[0] or ()) != len(pair[1] or ()):
            draft.needed(flow.op, flow.op.input(0), "condition")
        made = zip(pair[0] or (), pair[1] or (), strict=True)
        name = draft.fresh(f"{flow.op.output}.list")
        draft.lists[name] = tuple(_either(flow, condition, x, y) for x, y in made)
        return name
    if flow.shape(a) != flow.shape(b):
        what = f"its branches give {list(flow.shape(a))} and {list(flow.shape(b))}"
        draft.needed(flow.op, flow.op.input(0), "condition")
        raise flow.op.invalid(what)
    return flow.map("where", condition, a, b)


def _loop(flow: Flow, imported: Import) -> None:
    body, op = flow.op.attrs["body"], flow.op
    turns = MOST_TURNS
    if flow.has(0):
        turns = int(flow.value(0, "trip count").reshape(-1)[0])
    going = flow.const(True)
    if flow.has(1):
        flow.value(1, "condition")
        going = flow.arg(1)
    carried = [flow.plain(n) for n in op.inputs[2:]]
    rows: list[list[str]] = [[] for _ in op.outputs[len(carried) :]]
    count = 0
    while count < turns and bool(flow.draft.needed(op, going, "condition").all()):
        if count == MOST_TURNS:
            raise op.invalid("its number of turns is not known")
        number = flow.const(np.asarray(count, np.int64))
        going, *rest = imported(flow, body, [number, going, *carried])
        carried = rest[: len(carried)]
        for row, made in zip(rows, rest[len(carried) :], strict=False):
            row.append(flow.reshape(made, (1, *flow.shape(made))))
        count += 1
    for index, name in enumerate(carried):
        flow.give(name, index)
    for index, row in enumerate(rows, len(carried)):
        if not row:
            raise op.invalid("its outputs have no elements")
        flow.give(flow.concat(row, 0), index)


def _scan(flow: Flow, imported: Import) -> None:
    op = flow.op
    body, count = op.attrs["body"], op.integer("num_scan_inputs", 1)
    names = [flow.plain(n) for n in op.inputs if n]
    states, inputs = names[: len(names) - count], names[len(names) - count :]
    old = op.opset < 9
    axes = op.integers("scan_input_axes", (int(old),) * count)
    back = op.integers("scan_input_directions", op.integers("directions", (0,) * count))
    outs = len(body.output) - len(states)
    made_axes = op.integers("scan_output_axes", (int(old),) * outs)
    made_back = op.integers("scan_output_directions", (0,) * outs)
    if old and (op.input(0) or flow.shape(inputs[0])[0] != 1):
        raise op.invalid("version 8 of Scan is supported for a batch of one")
    if old:
        states = [flow.reshape(s, flow.shape(s)[1:]) for s in states]
    rows: list[list[str]] = [[] for _ in range(outs)]
    turns = flow.shape(inputs[0])[axes[0] % flow.rank(inputs[0])]
    for turn in range(turns):
        given = []
        for x, axis, backward in zip(inputs, axes, back, strict=True):
            at = turns - 1 - turn if backward else turn
            along = axis % flow.rank(x)
            part = flow.slice(x, along, at, at + 1)
            gone = {0, along} if old else {along}
            shape = [d for i, d in enumerate(flow.shape(part)) if i not in gone]
            given.append(flow.reshape(part, shape))
        made = imported(flow, body, [*states, *given])
        states = made[: len(states)]
        for row, name in zip(rows, made[len(states) :], strict=True):
            row.append(name)
    for index, name in enumerate(states):
        flow.give(flow.reshape(name, (1, *flow.shape(name))) if old else name, index)
    for index, row in enumerate(rows):
        ordered = row[::-1] if made_back[index] else row
        rank = flow.rank(ordered[0]) + 1 + old
        axis = made_axes[index] % rank
        wide = []
        for name in ordered:
            shape = [1, *flow.shape(name)] if old else list(flow.shape(name))
            wide.append(flow.reshape(name, (*shape[:axis], 1, *shape[axis:])))
        flow.give(flow.concat(wide, axis), len(states) + index)


def handlers(imported: Import) -> dict[str, Handler]:
    """Return the handlers of If, Loop and Scan; `imported` adds the nodes of a
    subgraph."""
    bodies = {"If": _if, "Loop": _loop, "Scan": _scan}
    return {
        kind: flowing(functools.partial(body, imported=imported))
        for kind, body in bodies.items()
    }
