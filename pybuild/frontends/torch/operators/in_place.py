"""Writes into a tensor, or into a view of a part of it: from there on, readers of the
tensor read the new values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Program, Ref

# the same elements in another form: what was written goes back by a Reshape
_FORMS = ("squeeze", "unflatten", "unsqueeze", "view", "view_as")
# the tensor itself, if its type is the same
_ITSELF = ("alias", "detach", "dropout", "feature_dropout", "to", "type_as")
# a view or a copy: it depends on strides
_UNSURE = ("contiguous", "flatten", "reshape", "reshape_as")
_TURNS = ("permute", "t", "transpose", "swapaxes", "swapdims")
_PARTS = ("slice", "select", "narrow")
# whose elements are others' in a way that is not followed
_OTHERS = (
    "as_strided", "chunk", "diagonal", "expand", "expand_as", "split",
    "split_with_sizes", "unbind", "tensor_split", "unfold", "broadcast_to", "movedim",
    "real", "imag",
)  # fmt: skip
_VIEWS = (*_FORMS, *_ITSELF, *_UNSURE, *_TURNS, *_PARTS, *_OTHERS)
_HINT = "save exported.run_decompositions({}), which has no such operators"


def is_in_place(call: Call) -> bool:
    """Return True for add_, but not for __and__."""
    name = call.target.split(".")[1] if "." in call.target else ""
    return name.endswith("_") and not name.endswith("__")


def changed_in_place(program: Program) -> set[str]:
    """Return the tensors into which calls write, directly or through views."""
    makers = {name: call for call in program.calls for name in call.outputs}
    found = set()
    for call in program.calls:
        x = call.args.get("self", call.args.get("input"))
        if is_in_place(call) and isinstance(x, Ref):
            found.add(_views_of(makers, program.kinds, x.name)[1])
    return found


def written(w: Writer, call: Call) -> None:
    """After a call that changes its first tensor, redirect all names of the changed
    tensors.

    Errors  BuildError if another view of the tensor is read afterwards
    """
    x, value = call.tensor("self", "input"), w.name(call.outputs[0])
    makers = w.makers()
    views, base = _views_of(makers, w.kinds, x)
    for view in views:
        if _kind(view) in _OTHERS or int(view.get("step", 1)) != 1:
            what = f"it changes a view of a tensor in place ({_kind(view)})"
            raise call.invalid(what, _HINT)
    chain = {view.outputs[0] for view in views}
    if stale := _read_later(w, call, base, {*chain, base, call.outputs[0]}):
        what = f"it changes a tensor of which '{stale}' may be another view"
        raise call.invalid(what, _HINT)
    w.aliases[x] = value
    for view in views:  # from the inner one out
        whole = view.tensor("self", "input")
        value = _back(w, view, whole, value)
        w.kinds[value], w.shapes[value] = w.kind(whole), w.shape(whole)
        w.aliases[whole] = value


def _kind(call: Call) -> str:
    name = call.target.split(".")[1] if "." in call.target else ""
    return name.removesuffix("_")


def _is_view(call: Call, kinds: Mapping[str, str]) -> bool:
    kind = _kind(call)
    if kind in _ITSELF:
        x = call.tensor("self", "input")
        return kinds.get(x) == kinds.get(call.outputs[0])
    return kind in _VIEWS


def _views_of(
    makers: Mapping[str, Call], kinds: Mapping[str, str], x: str
) -> tuple[list[Call], str]:
    """Return the views that lead from x to the base tensor that certainly holds its
    elements, and that tensor."""
    found = []
    while (maker := makers.get(x)) is not None and _is_view(maker, kinds):
        if _kind(maker) in _UNSURE:
            break
        found.append(maker)
        x = maker.tensor("self", "input")
    return found, x


def _read_later(w: Writer, call: Call, base: str, own: set[str]) -> str:
    """Return a tensor that may be another view of the base, made before this call and
    read after it; or ""."""
    makers, calls = w.makers(), w.program.calls
    while (maker := makers.get(base)) is not None and _is_view(maker, w.kinds):
        base = maker.tensor("self", "input")
    at, views = next(i for i, one in enumerate(calls) if one is call), {base}
    for one in calls[:at]:
        source = one.args.get("self", one.args.get("input"))
        if isinstance(source, Ref) and source.name in views and _is_view(one, w.kinds):
            views |= set(one.outputs)
    stale = views - own
    reads = [v for one in calls[at + 1 :] if any(one.outputs) for v in _reads(one)]
    return next((n for n in [*reads, *w.program.outputs] if n in stale), "")


def _reads(call: Call) -> Iterator[str]:
    for value in call.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Ref):
                yield one.name


def _back(w: Writer, view: Call, whole: str, value: str) -> str:
    """Return the whole tensor with a view's new values written back."""
    kind, shape = _kind(view), w.shape(whole)
    if kind in _ITSELF:
        return value
    if kind in _FORMS:
        return w.reshape(value, shape)
    rank = len(shape)
    if kind in _TURNS:
        if kind == "permute":
            perm = [w.axis(d, rank) for d in view.ints("dims")]
        else:
            perm = [*range(rank)]
            a, b = (w.axis(n, rank) for n in turned_axes(view))
            perm[a], perm[b] = perm[b], perm[a]
        return w.op("Transpose", value, perm=[int(i) for i in np.argsort(perm)])
    axis = w.axis(int(view.get("dim", 0)), rank)
    size = shape[axis]
    if kind == "select":
        start = int(view.get("index")) % size
        stop, value = start + 1, w.op("Unsqueeze", value, w.ints([axis]))
    elif kind == "narrow":
        start = int(view.get("start"))
        stop = start + int(view.get("length"))
    else:
        start, stop, _ = slice(view.get("start"), view.get("end")).indices(size)
    parts = [value]
    for begin, end, place in ((0, start, 0), (stop, size, len(parts) + 1)):
        if begin < end:
            given = (w.ints([n]) for n in (begin, end, axis))
            parts.insert(place, w.op("Slice", whole, *given))
    return w.op("Concat", *parts, axis=axis) if len(parts) > 1 else value


def turned_axes(call: Call) -> tuple[int, int]:
    """Return the two axes that are exchanged."""
    names = (("dim0", "axis0"), ("dim1", "axis1"))
    a, b = (
        next((call.args[n] for n in pair if n in call.args), default)
        for pair, default in zip(names, (0, 1), strict=True)
    )
    return int(a), int(b)


def fill(number: float | None) -> Handler:
    """Return a handler that fills the tensor's shape with one value: the given one, or
    a number or tensor of the call."""

    def handler(w: Writer, call: Call) -> None:
        x = call.tensor("self")
        value = call.get("value", 0) if number is None else number
        if isinstance(value, Ref):
            name = w.as_kind(value.name, w.kind(x))
        else:
            name = w.const(value, w.kind(x))
        w.give("Expand", name, w.ints(w.shape(x)))

    return handler


IN_PLACE: dict[str, Handler] = {"fill": fill(None), "zero": fill(0)}
