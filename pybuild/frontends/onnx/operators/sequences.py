"""Lists of tensors and optional values, as exporters write them. Their elements are
known at build time, so they are only names, and nothing of them remains in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.errors import BuildError
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.frontends.onnx.reader.op import Op


def _given(flow: Flow) -> list[str]:
    """Return the tensors of the list that the node reads."""
    name = flow.op.input(0)
    if name not in flow.draft.lists:
        raise flow.op.invalid(f"input '{name}' is not a list of tensors")
    return list(flow.draft.lists[name])


def _make(flow: Flow, tensors: Sequence[str]) -> None:
    flow.draft.lists[flow.op.output] = tuple(tensors)


def _place(flow: Flow, index: int, places: int) -> int:
    """Return the list index that an input gives; the last one if the input is
    absent."""
    at = int(flow.value(index, "position").reshape(())) if flow.has(index) else -1
    if not -places <= at < places:
        raise flow.op.invalid(f"place {at} of {places} in a list")
    return at % places


@flowing
def construct(flow: Flow) -> None:
    _make(flow, flow.args())


@flowing
def split(flow: Flow) -> None:
    """Split into pieces of the given sizes, or of one size with a smaller last piece.
    Without sizes, pieces are single rows, whose axis is dropped unless keepdims is set.
    """
    op, x = flow.op, flow.arg(0)
    shape = list(flow.shape(x))
    axis = flow.axis(op.integer("axis", 0), len(shape))
    size, drop = shape[axis], False
    if not flow.has(1):
        ends: list[int] = list(range(1, size + 1))
        drop = not op.integer("keepdims", 1)
    elif flow.value(1, "split").ndim == 0:
        each = int(flow.value(1, "split"))
        if each < 1:
            raise op.invalid(f"pieces of {each}")
        ends = [*range(each, size, each), size]
    else:
        ends = np.cumsum(flow.value(1, "split")).tolist()
        if min((0, *flow.value(1, "split"))) < 0 or ends[-1:] != [size]:
            raise op.invalid(f"its pieces do not fit {shape}")
    pieces = []
    for start, end in zip([0, *ends], ends, strict=False):
        piece = flow.slice(x, axis, start, end)
        kept = [*shape[:axis], *shape[axis + 1 :]]
        pieces.append(flow.reshape(piece, kept) if drop else piece)
    _make(flow, pieces)


@flowing
def at(flow: Flow) -> None:
    given = _given(flow)
    flow.give(given[_place(flow, 1, len(given))])


@flowing
def insert(flow: Flow) -> None:
    """Insert before an index; at the end without an index, or with one just past the
    last."""
    given = _given(flow)
    place = len(given)
    if flow.has(2) and int(flow.value(2, "position").reshape(())) != place:
        place = _place(flow, 2, len(given))
    _make(flow, [*given[:place], flow.arg(1), *given[place:]])


@flowing
def erase(flow: Flow) -> None:
    given = _given(flow)
    place = _place(flow, 1, len(given))
    _make(flow, [*given[:place], *given[place + 1 :]])


@flowing
def length(flow: Flow) -> None:
    flow.give(flow.const(np.asarray(len(_given(flow)), np.int64)))


@flowing
def concat(flow: Flow) -> None:
    """Joins the tensors along an axis, which may be a new one."""
    op, given = flow.op, _given(flow)
    if not given:
        raise op.invalid("its list is empty")
    new = bool(op.integer("new_axis", 0))
    shape = flow.shape(given[0])
    axis = flow.axis(op.integer("axis", 0), len(shape) + new)
    if new:
        wide = (*shape[:axis], 1, *shape[axis:])
        given = [flow.reshape(name, wide) for name in given]
    flow.give(flow.concat(given, axis))


@flowing
def optional(flow: Flow) -> None:
    """Make an optional value of a tensor or a list; without an input it is empty."""
    if flow.has(0):
        flow.give(flow.arg(0))
    else:
        flow.draft.nothing.add(flow.op.output)


@flowing
def has_element(flow: Flow) -> None:
    there = flow.has(0) and flow.op.input(0) not in flow.draft.nothing
    flow.give(flow.const(np.asarray(there)))


@flowing
def get_element(flow: Flow) -> None:
    if flow.op.input(0) in flow.draft.nothing:
        raise flow.op.invalid(f"there is no value in '{flow.op.input(0)}'")
    flow.give(flow.arg(0))


def no_reader(draft: Draft, op: Op) -> BuildError | None:
    """Return an error if a node cannot read a list or an empty optional that it is
    given; else None."""
    given = [name for name in op.inputs if name and draft.no_tensor(name)]
    if not given or op.kind in {*SEQUENCES, "Identity", "If", "Loop"}:
        return None
    kind = "a list of tensors" if given[0] in draft.lists else "an empty optional"
    return op.invalid(f"input '{given[0]}' is {kind}")


SEQUENCES: dict[str, Handler] = {
    "ConcatFromSequence": concat,
    "Optional": optional,
    "OptionalGetElement": get_element,
    "OptionalHasElement": has_element,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": construct,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SplitToSequence": split,
}
