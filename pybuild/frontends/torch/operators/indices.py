"""Operators that read or replace elements by their indices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Ref

# torch's word for how a value meets what is there -> ONNX's
_REDUCED = {
    "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max",
    "amin": "min",
}  # fmt: skip


def embedding(w: Writer, call: Call) -> None:
    w.give("Gather", call.tensor("weight"), call.tensor("indices"), axis=0)


def gather(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    w.give("GatherElements", x, call.tensor("index"), axis=axis)


def index_select(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    w.give("Gather", x, call.tensor("index"), axis=axis)


def index(w: Writer, call: Call) -> None:
    """x[:, rows], by one tensor; or by several for consecutive axes from the first."""
    x, given = call.tensor("self"), call.get("indices")
    at = [i for i, one in enumerate(given) if isinstance(one, Ref)]
    names = [given[i].name for i in at]
    if any(w.kind(name) == "bool" for name in names):
        raise call.invalid("an index of booleans is not supported", "use torch.where")
    if len(at) == 1:
        w.give("Gather", x, names[0], axis=at[0])
        return
    if at != list(range(len(at))):
        raise call.invalid("this order of indices is not supported", "index_select")
    shape = np.broadcast_shapes(*(w.shape(name) for name in names))
    w.give("GatherND", x, _places(w, names, shape))


# ---- a part by another ----------------------------------------------------------


def slice_scatter(w: Writer, call: Call) -> None:
    """Emit x with a slice of it replaced."""
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim", 0)), w.rank(x))
    size = w.shape(x)[axis]
    start, stop, step = slice(call.get("start"), call.get("end"),
                              call.get("step")).indices(size)  # fmt: skip
    if step != 1:
        _put(w, x, axis, w.ints(range(start, stop, step)), call.tensor("src"))
        return
    _replaced(w, x, axis, (start, stop), call.tensor("src"))


def select_scatter(w: Writer, call: Call) -> None:
    """Emit x with one row of it replaced."""
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    at = int(call.get("index")) % w.shape(x)[axis]
    part = w.op("Unsqueeze", call.tensor("src"), w.ints([axis]))
    _replaced(w, x, axis, (at, at + 1), part)


def _replaced(w: Writer, x: str, axis: int, rows: tuple[int, int], part: str) -> None:
    size, (start, stop) = w.shape(x)[axis], rows
    parts = [part]
    if start:
        first = [w.ints([n]) for n in (0, start, axis)]
        parts.insert(0, w.op("Slice", x, *first))
    if stop < size:
        parts.append(w.op("Slice", x, *(w.ints([n]) for n in (stop, size, axis))))
    w.give("Concat", *parts, axis=axis)


def _put(
    w: Writer, x: str, axis: int, rows: str, values: str, reduction: str = "none"
) -> None:
    """Emit x[..., rows, ...] = values along one axis; values broadcast."""
    rank = w.rank(x)
    count = int(np.prod(w.shape(rows)))
    shape = list(w.shape(x))
    shape[axis] = count
    wide = w.op("Expand", values, w.ints(shape))
    row = [count if i == axis else 1 for i in range(rank)]
    at = w.op("Expand", w.reshape(w.as_kind(rows, "int64"), row), w.ints(shape))
    w.give("ScatterElements", x, at, wide, axis=axis, reduction=reduction)


def index_copy(w: Writer, call: Call) -> None:
    """Emit x with rows along one axis replaced, as for a cache of keys and values."""
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    _put(w, x, axis, call.tensor("index"), call.tensor("source"))


def index_add(w: Writer, call: Call) -> None:
    x, source, alpha = call.tensor("self"), call.tensor("source"), call.get("alpha", 1)
    axis = w.axis(int(call.get("dim")), w.rank(x))
    if alpha != 1:
        source = w.op("Mul", source, w.const(alpha, w.kind(x)))
    _put(w, x, axis, call.tensor("index"), source, "add")


def index_fill(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    _put(w, x, axis, call.tensor("index"), _value(w, call, "value", w.kind(x)))


def _value(w: Writer, call: Call, name: str, kind: str) -> str:
    """Return a number or tensor argument of the call, in a type."""
    value = call.get(name)
    if isinstance(value, Ref):
        return w.as_kind(value.name, kind)
    return w.const(value, kind)


def index_put(w: Writer, call: Call) -> None:
    """x[..., rows] = values by one tensor along any axis, or by several for consecutive
    axes from the first; x[mask] = value."""
    x, given = call.tensor("self"), call.get("indices")
    values, reduction = call.tensor("values"), "none"
    if call.get("accumulate", False):
        reduction = "add"
    at = [i for i, one in enumerate(given) if isinstance(one, Ref)]
    names = [given[i].name for i in at]
    if any(w.kind(name) == "bool" for name in names):
        _masked(w, call, names, values)
        return
    if len(at) == 1 and w.rank(names[0]) < 2:
        _put(w, x, at[0], names[0], values, reduction)
        return
    if at != list(range(len(at))):
        raise call.invalid("this order of indices is not supported", "index_copy_")
    shape = np.broadcast_shapes(*(w.shape(name) for name in names))
    rows = _places(w, names, shape)
    wide = w.op("Expand", values, w.ints([*shape, *w.shape(x)[len(at) :]]))
    w.give("ScatterND", x, rows, wide, reduction=reduction)


def _places(w: Writer, names: Sequence[str], shape: tuple[int, ...]) -> str:
    """Return indices stacked in the last axis, as GatherND and ScatterND need them."""
    wide = []
    for name in names:
        one = w.op("Expand", w.as_kind(name, "int64"), w.ints(shape))
        wide.append(w.op("Unsqueeze", one, w.ints([-1])))
    return w.op("Concat", *wide, axis=-1)


def _masked(w: Writer, call: Call, names: Sequence[str], values: str) -> None:
    """Write one value wherever a mask over the first axes is true."""
    x = call.tensor("self")
    if len(names) > 1 or np.prod(w.shape(values)) != 1 or call.get("accumulate", False):
        what = "a mask of booleans is supported alone, with one value"
        raise call.invalid(what, "torch.where")
    count, rank = w.rank(names[0]), w.rank(x)
    mask = w.op("Unsqueeze", names[0], w.ints(range(count, rank)))
    w.give("Where", mask if rank > count else names[0], w.reshape(values, ()), x)


def scatter(word: str) -> Handler:
    """Return a handler that writes each element of `src`, or one value, at the given
    index.

    word    how values are joined with the old ones, unless the call says it
    """

    def handler(w: Writer, call: Call) -> None:
        x, index = call.tensor("self"), call.tensor("index")
        axis = w.axis(int(call.get("dim")), w.rank(x))
        reduce = str(call.get("reduce", word))
        if reduce and (reduce not in _REDUCED or call.get("include_self") is False):
            what = f"reduce='{reduce}' with these arguments is not supported"
            raise call.invalid(what, ", ".join(map(repr, _REDUCED)))
        shape, name = w.shape(index), "src" if "src" in call.args else "value"
        given, part = call.get(name), _value(w, call, name, w.kind(x))
        if name == "value":
            part = w.op("Expand", part, w.ints(shape))
        elif w.shape(given.name) != shape:
            axes = range(len(shape))
            ends = (w.ints([0 for _ in axes]), w.ints(shape), w.ints(axes))
            part = w.op("Slice", part, *ends)
        attrs = {"axis": axis, "reduction": _REDUCED.get(reduce, "none")}
        w.give("ScatterElements", x, w.as_kind(index, "int64"), part, **attrs)

    return handler


INDICES: dict[str, Handler] = {
    "embedding": embedding, "gather": gather, "index": index, "index_add": index_add,
    "index_copy": index_copy, "index_fill": index_fill, "index_put": index_put,
    "index_select": index_select, "scatter": scatter(""), "scatter_add": scatter("add"),
    "scatter_reduce": scatter(""), "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
}  # fmt: skip
