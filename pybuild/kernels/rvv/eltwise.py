"""add, sub and mul of int8 and int16 on vectors of any length, by forms that are proven
equal to their rules, or by the rules (eltwise_exact.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT16, Expr, i32, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.affine import Affine, of_products
from pybuild.kernels.epilogues.affine_add import AffineAdd, affine_add
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.eltwise_loops import Axis, Innermost, Pointers
from pybuild.kernels.rvv import eltwise_exact
from pybuild.kernels.rvv.eltwise_exact import ExactProduct, ExactSum
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.ops.eltwise import MulParameters, add_parameters, mul_parameters
from pybuild.records import dataclass
from pybuild.targets.target import Target

LEAST = 8  # elements of a row
_v = partial(vectors, 32)  # made when it is first used


@dataclass(frozen=True)
class Vectors:
    """A layer on vectors: what distinguishes its code, how it ends, and what makes a
    row of it."""

    key: str
    words: str
    bind: Callable[[Builder], Innermost]


def on_vectors(node: Node, graph: Graph, target: Target, last: Axis) -> Vectors | None:
    """None where the core has none, or the layer no form for them.

    last  the innermost loop
    """
    elem = graph.tensor(node.output).dtype
    known = elem in (INT8, INT16) and node.op in ("add", "sub", "mul")
    if FEATURE not in target.features or last.size < LEAST or not known:
        return None
    found = _proven(node, graph) if elem is INT8 else None
    if found is None:
        found = eltwise_exact.values(node, graph)
    if found is None:
        return None
    values, key, words = found
    kind = "" if elem is INT8 else "s16_"
    return Vectors(f"{kind}{key}", words, partial(_bound, values, elem))


_Values = Callable[[Builder], "_Sum | _Product | ExactSum | ExactProduct"]


def _proven(node: Node, graph: Graph) -> tuple[_Values, str, str] | None:
    """Of int8: what computes a layer by a cheaper form, if one is proven."""
    if node.op == "mul":
        product = mul_parameters(node, graph)
        end = of_products(product)
        if end is None:
            return None
        return partial(_Product, made=product, end=end), end.key, end.words
    made = add_parameters(node, graph)
    cheap, limits = affine_add(made), (made.low, made.high)
    if cheap is None:
        return None
    clamped = "_clamped" * (limits != (-128, 127))
    values = partial(_Sum, cheap=cheap, limits=limits)
    return values, f"{cheap.key}{clamped}", cheap.words


def _bound(values: _Values, elem: DType, k: Builder) -> Innermost:
    arithmetic = values(k)
    v = arithmetic.v

    def row(k: Builder, axis: Axis, size: Expr, pointers: Pointers) -> None:
        y, *operands = pointers
        moves = (axis.a, axis.b)
        left, right = (
            None if moving else load(x)
            for moving, x in zip(moves, operands, strict=True)
        )
        arithmetic.row(left, right)
        with Steps(k, v, size).each() as (at, n):
            a, b = (
                k.let("x", v.AS_WORDS[elem](offset(x, at), n)) if moving else None
                for moving, x in zip(moves, operands, strict=True)
            )
            k.store(y, at, arithmetic.some(a, b, n), count=n)

    return row


class _Limits:
    """The limits of a layer's values, where they are not those of int8."""

    def __init__(self, k: Builder, limits: tuple[int, int]) -> None:
        self.bound: tuple[Expr, Expr] | None = None
        if limits != (-128, 127):
            low, high = limits
            self.bound = k.arg("low", low), k.arg("high", high)

    def held(self, value: Expr, n: Expr) -> Expr:
        """Bytes held within them."""
        return value if self.bound is None else _v().HOLD(value, *self.bound, n)


class _Sum:
    """The bound values of an AffineAdd: y of some elements of a and b."""

    def __init__(self, k: Builder, cheap: AffineAdd, limits: tuple[int, int]) -> None:
        self.k, self.v = k, _v()
        self.factors = (
            k.arg("a_factor", cheap.a_factor),
            k.arg("b_factor", cheap.b_factor),
        )
        self.offset, self.shift = k.arg("offset", cheap.offset), cheap.shift
        self.base = None if cheap.base is None else k.arg("base", cheap.base)
        self.limits = _Limits(k, limits)

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        start: Expr = self.offset
        for x, factor in zip((a, b), self.factors, strict=True):
            start = start if x is None else start + i32(x) * factor
        self.start = self.k.let("start", start)

    def some(self, a: Expr | None, b: Expr | None, n: Expr) -> Expr:
        """The values of n elements, those of operands that move."""
        given = zip((a, b), self.factors, strict=True)
        first, *others = [(x, factor) for x, factor in given if x is not None]
        total: Expr = _v().PLUS(_v().TIMES(*first, n), self.start, n)
        for x, factor in others:
            total = _v().LINE(x, factor, total, n)
        if self.base is None:
            return self.limits.held(_v().SHIFTED(total, self.shift, n), n)
        rounded = _v().EVEN(total, self.shift, n)
        return self.limits.held(_v().RAISED(rounded, self.base, n), n)


class _Product:
    """The bound values of a mul and its end: y of some elements of a and b."""

    def __init__(self, k: Builder, made: MulParameters, end: Affine) -> None:
        self.k, self.v, self.end = k, _v(), end
        self.less = (k.arg("a_less", -made.a_zero), k.arg("b_less", -made.b_zero))
        self.offset = k.arg("offset", int(end.offsets[0]))
        self.multiplier = k.arg("multiplier", int(end.multipliers[0]))
        self.below: Expr | None = None
        if end.below is not None:
            self.below = k.arg("below", int(end.below[0]))
        self.base = k.arg("base", end.base) if end.base else None
        self.limits = _Limits(k, (end.low, end.high))

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        given = zip((a, b), self.less, strict=True)
        self.fixed = [x if x is None else self.k.let("term", i32(x) + z)
                      for x, z in given]  # fmt: skip

    def some(self, a: Expr | None, b: Expr | None, n: Expr) -> Expr:
        """The values of n elements, those of operands that move."""
        pairs = zip((a, b), self.less, strict=True)
        moving = [_v().PLUS(x, less, n) for x, less in pairs if x is not None]
        alone = [x for x in self.fixed if x is not None]
        if alone:
            total = _v().TIMES(moving[0], alone[0] * (1 << FRACTION), n)
        else:
            total = _v().TIMES(_v().PRODUCTS(*moving, n), 1 << FRACTION, n)
        product = self.k.let("product", total)
        if self.below is not None:
            total = _v().CORRECT(product, self.offset, self.below, n)
        else:
            total = _v().PLUS(product, self.offset, n)
        value = _v().HIGH_ONE(total, self.multiplier, n)
        if self.base is not None:
            value = _v().PLUS(value, self.base, n)
        return self.limits.held(_v().SHIFTED(value, self.end.shift, n), n)
