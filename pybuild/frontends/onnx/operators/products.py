"""MatMul, Gemm, Einsum and Det in any type and rank."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np

from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators import dense
from pybuild.frontends.onnx.operators.elements import Handler, either, flowing
from pybuild.records import dataclass


@flowing
def matmul(flow: Flow) -> None:
    a, b = flow.args()
    flow.give(product(flow, a, b))


MATMUL = either(dense.matmul, matmul)


def product(flow: Flow, a: str, b: str) -> str:
    """Return numpy's matmul: the left operand may be a row vector, the right one a
    column."""
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


@dataclass(frozen=True)
class _Term:
    """An operand of an Einsum; each letter names one of its axes."""

    name: str
    letters: str


@flowing
def einsum(flow: Flow) -> None:
    """Contract two operands at a time. A letter that no later operand has is summed at
    once, so that two matrices become a matrix product."""
    terms, out = _terms(flow)
    made = terms[0]
    for count, term in enumerate(terms[1:], 2):
        later = out + "".join(other.letters for other in terms[count:])
        made = _joined(flow, made, term, later)
    made = _summed(flow, made, out)
    flow.give(flow.transpose(made.name, [made.letters.index(c) for c in out]))


def _terms(flow: Flow) -> tuple[list[_Term], str]:
    """Return the operands and the letters of the result; "..." gets letters of its
    own."""
    text = str(flow.op.attrs["equation"]).replace(" ", "")
    left, arrow, right = text.partition("->")
    names, given = flow.args(), left.split(",")
    if len(names) != len(given):
        raise flow.op.invalid(f"equation {text!r} has {len(given)} terms")
    counts = [
        flow.rank(name) - len(term.replace("...", ""))
        for name, term in zip(names, given, strict=True)
    ]
    for name, term, more in zip(names, given, counts, strict=True):
        if more < 0 or (more and "..." not in term):
            raise flow.op.invalid(f"{term!r} does not name the axes of {name}")
    dots = "".join(chr(ord("\u0391") + i) for i in range(max(counts)))
    full = [
        term.replace("...", dots[len(dots) - more :])
        for term, more in zip(given, counts, strict=True)
    ]
    letters = "".join(full)
    once = sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1)
    out = right.replace("...", dots) if arrow else dots + "".join(once)
    if len(set(out)) < len(out) or not set(out) <= set(letters):
        raise flow.op.invalid(f"equation {text!r} makes axes that it does not have")
    terms = map(_diagonal, itertools.repeat(flow), names, full)
    return list(terms), out


def _diagonal(flow: Flow, x: str, letters: str) -> _Term:
    """Take the diagonal of axes that share a letter."""
    while len(set(letters)) < len(letters):
        letter = next(c for c in letters if letters.count(c) > 1)
        first = letters.index(letter)
        second = letters.index(letter, first + 1)
        rest = [i for i in range(len(letters)) if i not in (first, second)]
        x = flow.transpose(x, (first, second, *rest))
        size = flow.shape(x)[0]
        x = flow.reshape(x, (size * size, *flow.shape(x)[2:]))
        x = flow.taken(x, np.arange(size) * (size + 1), 0)
        letters = letter + "".join(letters[i] for i in rest)
    return _Term(x, letters)


def _summed(flow: Flow, term: _Term, kept: str) -> _Term:
    """Sum the operand over its letters that are not in `kept`."""
    axes = [i for i, c in enumerate(term.letters) if c not in kept]
    if not axes:
        return term
    left = "".join(c for c in term.letters if c in kept)
    return _Term(flow.reduce("sum", term.name, axes, False), left)


def _joined(flow: Flow, a: _Term, b: _Term, later: str) -> _Term:
    """Return the product of two operands, summed over common letters not needed
    later."""
    a, b = _without_ones(flow, a, b), _without_ones(flow, b, a)
    a, b = _summed(flow, a, b.letters + later), _summed(flow, b, a.letters + later)
    sizes = {**_sizes(flow, a), **_sizes(flow, b)}
    both = [c for c in a.letters if c in b.letters]
    inner = [c for c in both if c not in later]
    outer = [c for c in both if c in later]
    rows = [c for c in a.letters if c not in both]
    columns = [c for c in b.letters if c not in both]
    letters = "".join((*outer, *rows, *columns))
    shape = [sizes[c] for c in letters]
    if not inner:
        wide = [_spread(flow, term, letters) for term in (a, b)]
        return _Term(flow.mul(*wide), letters)

    def matrices(term: _Term, *groups: list[str]) -> str:
        """Group the axes; each group becomes one axis."""
        perm = [term.letters.index(c) for group in groups for c in group]
        counts = [math.prod(sizes[c] for c in group) for group in groups]
        full = counts if outer else counts[1:]
        return flow.reshape(flow.transpose(term.name, perm), full)

    left, right = matrices(a, outer, rows, inner), matrices(b, outer, inner, columns)
    made = flow.draft.fresh(f"{flow.op.output}.product")
    op = replace(flow.op, name=made, inputs=(left, right), outputs=(made,), attrs={})
    MATMUL(flow.draft, op)
    return _Term(flow.reshape(made, shape), letters)


def _sizes(flow: Flow, term: _Term) -> dict[str, int]:
    return dict(zip(term.letters, flow.shape(term.name), strict=True))


def _without_ones(flow: Flow, a: _Term, b: _Term) -> _Term:
    """Drop axes of one element that broadcast against the other operand."""
    mine, other = _sizes(flow, a), _sizes(flow, b)
    left = [c for c in a.letters if mine[c] != 1 or other.get(c, 1) == 1]
    return _Term(flow.reshape(a.name, [mine[c] for c in left]), "".join(left))


def _spread(flow: Flow, term: _Term, letters: str) -> str:
    """Order the axes by these letters; missing letters become axes of one element."""
    known = [c for c in letters if c in term.letters]
    x = flow.transpose(term.name, [term.letters.index(c) for c in known])
    sizes = _sizes(flow, term)
    return flow.reshape(x, [sizes.get(c, 1) for c in letters])


@flowing
def determinant(flow: Flow) -> None:
    """Computes the determinant by rows and their minors; for matrices of up to 4
    rows."""
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
