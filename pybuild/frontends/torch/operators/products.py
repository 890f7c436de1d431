"""Products of tensors by a formula, norms of vectors, differences."""

from __future__ import annotations

import math

import numpy as np

from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Ref


def einsum(w: Writer, call: Call) -> None:
    names = [ref.name for ref in call.get("tensors")]
    w.give("Einsum", *names, equation=str(call.get("equation")))


def outer(w: Writer, call: Call) -> None:
    a, b = call.tensor("self"), call.tensor("vec2")
    w.give("Mul", w.reshape(a, (-1, 1)), w.reshape(b, (1, -1)))


def vector_norm(w: Writer, call: Call) -> None:
    """linalg_vector_norm, norm: the root of squares, a sum, the most or the least."""
    x, order = call.tensor("self"), call.get("ord", call.get("p", 2))
    rank, dims = w.rank(x), call.get("dim")
    given: tuple[int, ...] = () if dims is None else call.ints("dim")
    axes = w.ints([w.axis(d, rank) for d in given] or range(rank))
    keep = int(bool(call.get("keepdim", False)))
    if order == 2:
        total = w.op("ReduceSum", w.op("Mul", x, x), axes, keepdims=keep)
        w.give("Sqrt", total)
        return
    kinds = {1: "ReduceSum", math.inf: "ReduceMax", -math.inf: "ReduceMin"}
    if order not in kinds:
        raise call.invalid(f"a norm of order {order} is not supported", "1, 2 or inf")
    w.give(kinds[order], w.op("Abs", x), axes, keepdims=keep)


def weight_norm(w: Writer, call: Call) -> None:
    """g * v / |v|: of weights, which do not change."""
    v, g = (w.known(call.tensor(name)) for name in ("v", "g"))
    if v is None or g is None:
        raise call.invalid("its weights are computed by the model")
    dim = int(call.get("dim", 0))
    axes = tuple(a for a in range(v.ndim) if a != dim % v.ndim or dim == -1)
    norm = np.sqrt((v.astype(np.float64) ** 2).sum(axes, keepdims=True))
    made = g.astype(np.float64) * v.astype(np.float64) / norm
    w.constants[call.outputs[0]] = made.astype(v.dtype)


def diff(w: Writer, call: Call) -> None:
    """The difference of each element and the one before it."""
    x = call.tensor("self")
    if call.get("n", 1) != 1 or w.kind(x) == "bool":
        raise call.invalid("only first-order differences of numbers are supported")
    axis = w.axis(int(call.get("dim", -1)), w.rank(x))
    parts = [x]
    before, after = call.get("prepend"), call.get("append")
    if isinstance(before, Ref):
        parts.insert(0, before.name)
    if isinstance(after, Ref):
        parts.append(after.name)
    size = sum(w.shape(part)[axis] for part in parts)
    whole = w.op("Concat", *parts, axis=axis) if len(parts) > 1 else x
    ends = ((1, size), (0, size - 1))
    later, sooner = (
        w.op("Slice", whole, w.ints([a]), w.ints([b]), w.ints([axis])) for a, b in ends
    )
    w.give("Sub", later, sooner)


PRODUCTS: dict[str, Handler] = {
    "diff": diff, "einsum": einsum, "linalg_vector_norm": vector_norm,
    "norm": vector_norm, "outer": outer, "_weight_norm": weight_norm,
}  # fmt: skip
