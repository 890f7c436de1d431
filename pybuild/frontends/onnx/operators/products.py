"""MatMul, Gemm, Einsum and Det of anything."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing


@flowing
def matmul(flow: Flow) -> None:
    a, b = flow.args()
    flow.give(product(flow, a, b))


def product(flow: Flow, a: str, b: str) -> str:
    """numpy's matmul: a row on the left and a column on the right may be vectors."""
    left, right = flow.rank(a) == 1, flow.rank(b) == 1
    a = flow.reshape(a, (1, *flow.shape(a))) if left else a
    b = flow.reshape(b, (*flow.shape(b), 1)) if right else b
    made = flow.matmul(a, b)
    shape = list(flow.shape(made))
    if right:
        shape.pop()
    if left:
        shape.pop(-1 if right else -2)
    return flow.reshape(made, shape)


@flowing
def gemm(flow: Flow) -> None:
    op, a, b = flow.op, flow.arg(0), flow.arg(1)
    a = flow.transpose(a, (1, 0)) if op.integer("transA", 0) else a
    b = flow.transpose(b, (1, 0)) if op.integer("transB", 0) else b
    made = flow.scaled(flow.matmul(a, b), float(op.attrs.get("alpha", 1.0)))
    if flow.has(2):
        made = flow.add(
            made, flow.scaled(flow.arg(2), float(op.attrs.get("beta", 1.0)))
        )
    flow.give(made)


@flowing
def einsum(flow: Flow) -> None:
    """Every operand in the order of all letters, multiplied, then summed."""
    text = str(flow.op.attrs["equation"]).replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    names = flow.args()
    pairs = [(n, t) for n, t in zip(names, terms, strict=True) if "..." in t]
    open_axes = [flow.rank(n) - len(t.replace("...", "")) for n, t in pairs]
    ellipsis = max(open_axes, default=0)
    dots = "".join(chr(ord("\u0391") + i) for i in range(ellipsis))
    full = []
    for name, term in zip(names, terms, strict=True):
        own = flow.rank(name) - len(term.replace("...", ""))
        full.append(term.replace("...", dots[len(dots) - own :] if own else ""))
    if arrow:
        out = right.replace("...", dots)
    else:
        letters = "".join(full)
        out = dots + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1 and c not in dots)
        )
    inner = sorted(set("".join(full)) - set(out))
    order = [*out, *inner]
    made = ""
    for name, term in zip(names, full, strict=True):
        wide = _spread(flow, name, term, order)
        made = flow.mul(made, wide) if made else wide
    axes = range(len(out), len(order))
    flow.give(flow.reduce("sum", made, axes, False) if inner else made)


def _spread(flow: Flow, x: str, term: str, order: Sequence[str]) -> str:
    """Axes named by letters in another order; a letter twice: the diagonal."""
    while len(set(term)) < len(term):
        letter = next(c for c in term if term.count(c) > 1)
        first = term.index(letter)
        second = term.index(letter, first + 1)
        rest = [i for i in range(len(term)) if i not in (first, second)]
        x = flow.transpose(x, (first, second, *rest))
        size = flow.shape(x)[0]
        x = flow.reshape(x, (size * size, *flow.shape(x)[2:]))
        x = flow.taken(x, np.arange(size) * (size + 1), 0)
        term = letter + "".join(term[i] for i in rest)
    known = [c for c in order if c in term]
    x = flow.transpose(x, [term.index(c) for c in known])
    sizes = iter(flow.shape(x))
    return flow.reshape(x, [next(sizes) if c in term else 1 for c in order])


@flowing
def determinant(flow: Flow) -> None:
    """By rows and their minors; for matrices of up to 4 rows."""
    x = flow.arg(0)
    shape = flow.shape(x)
    size = shape[-1]
    if size > 4:
        raise flow.op.invalid(f"of {size} rows is not supported", "4 are")
    last = len(shape) - 1

    def element(i: int, j: int) -> str:
        row = flow.slice(x, last - 1, i, i + 1)
        return flow.slice(row, last, j, j + 1)

    total = ""
    for order in itertools.permutations(range(size)):
        term = element(0, order[0])
        for i in range(1, size):
            term = flow.mul(term, element(i, order[i]))
        turns = sum(a > b for a, b in itertools.combinations(order, 2))
        fn = "subtract" if turns % 2 else "add"
        total = flow.map(fn, total, term) if total else term
    flow.give(flow.reshape(total, shape[:-2]))


PRODUCTS: dict[str, Handler] = {"Det": determinant, "Einsum": einsum}
