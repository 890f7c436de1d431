"""add, sub and mul on vectors: four elements at a time, 16 in a turn where rows are
whole sixteens. Of integers a proven form where there is one, else the rule itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT16,
    Const,
    Expr,
    Var,
    const,
    i32,
    load,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.real_vectors import MVE, real_vectors
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    CORRECT4,
    EVEN4,
    LINE4,
    MORE4,
    MULHI4,
    NARROW4,
    TIMES4,
    words_at,
)
from pybuild.kernels.epilogues.affine import Affine, of_products
from pybuild.kernels.epilogues.affine_add import AffineAdd, affine_add
from pybuild.kernels.epilogues.exact_add import exact_add
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.epilogues.one_rule import one_rule
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.mve.eltwise_exact import ExactProduct, ExactSum, Sloped
from pybuild.kernels.mve.eltwise_float import OPERATIONS, Reals
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.eltwise import (
    AddParameters,
    MulParameters,
    PreluParameters,
    add_parameters,
    mul_parameters,
    prelu_parameters,
)
from pybuild.records import dataclass
from pybuild.targets.target import Target

LANES = 4
TURN = 16  # elements


@dataclass(frozen=True)
class Row:
    """The innermost loop: elements, and whether each operand moves along it."""

    size: int
    a: bool
    b: bool

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        rest = "rest" if self.size % LANES else ""
        return "_".join(p for p in (f"by{self.step}", rest) if p)

    @property
    def step(self) -> int:
        return TURN if self.size % TURN == 0 else LANES


_Pointers = tuple[Expr, Expr, Expr]


@dataclass(frozen=True)
class Vectors:
    """A layer on vectors: what distinguishes its code, how it ends, and what makes a
    row of it."""

    key: str
    words: str
    bind: Callable[[Builder], Callable[[Builder, Expr, _Pointers], None]]


def vectors(
    node: Node, graph: Graph, target: Target, row: Row, limits: int
) -> Vectors | None:
    """None where the core has none, or the layer no form for them.

    limits  the pointer of a float layer's ends
    """
    dtype = graph.tensor(node.output).dtype
    if "mve" not in target.features or row.size < LANES:
        return None
    if dtype is FLOAT32:
        return _reals(node, row, limits) if real_vectors(target) is MVE else None
    if dtype not in (INT8, INT16):
        return None
    found: _Way | None
    if node.op == "prelu":
        found = _sloped(prelu_parameters(node, graph))
    elif node.op == "mul":
        found = _product(mul_parameters(node, graph), dtype)
    else:
        found = _sum(add_parameters(node, graph), dtype)
    if found is None:
        return None
    values, key, words = found
    kind = "" if dtype is INT8 else "s16_"
    return Vectors(f"{kind}{row.key}_{key}", words, partial(_bound, row, values))


_Values = Callable[
    [Builder], "Sum | Product | ExactSum | ExactProduct | Sloped | Reals"
]
_Way = tuple[_Values, str, str]  # what distinguishes its code, and that in words


def _reals(node: Node, row: Row, limits: int) -> Vectors | None:
    operation = OPERATIONS.get(node.op)
    if operation is None:
        return None
    finish = FloatClamp(*clamp_of(node))
    values = partial(Reals, operation=operation, finish=finish, limits=const(limits))
    key = f"f32_{row.key}_{finish.key}".rstrip("_")
    return Vectors(key, finish.words, partial(_bound, row, values))


def _product(made: MulParameters, dtype: DType) -> _Way | None:
    end = of_products(made) if dtype is INT8 else None
    if end is not None:
        return partial(Product, made=made, end=end), end.key, end.words
    reach = 255**2 if dtype is INT8 else 1 << 30
    rule = one_rule(made.rounding, made.multiplier, made.shift, reach)
    if rule is None:
        return None
    kind = f"exact_{rule.rule or 'none'}{'_up' * (rule.left > 0)}"
    words = f"the product requantised, {rule.words}"
    return partial(ExactProduct, made=made, rule=rule, dtype=dtype), kind, words


def _sloped(made: PreluParameters) -> _Way | None:
    above = one_rule(made.rounding, *made.above, 255)
    below = one_rule(made.rounding, *made.below, 255**2)
    if above is None or below is None:
        return None
    up = "_up" * (above.left > 0)
    kind = f"exact_{above.rule or 'none'}{up}_{below.rule or 'none'}"
    words = f"both sides of a value, of which one is 0, and their sum; {below.words}"
    return partial(Sloped, made=made, above=above, below=below), kind, words


def _sum(made: AddParameters, dtype: DType) -> _Way | None:
    cheap, limits = None, (made.low, made.high)
    if dtype is INT8:
        cheap = affine_add(made)
    if cheap is not None:
        clamped = "" if limits == (-128, 127) else "_clamped"
        sums = partial(Sum, cheap=cheap, limits=limits)
        return sums, f"{cheap.key}{clamped}", cheap.words
    exact = exact_add(made, dtype)
    if exact is None:
        return None
    return partial(ExactSum, made=made, exact=exact), exact.key, exact.words


def _bound(
    row: Row, values: _Values, k: Builder
) -> Callable[[Builder, Expr, _Pointers], None]:
    arithmetic = values(k)
    return lambda k, size, pointers: innermost(k, row, size, pointers, arithmetic)


class Sum:
    """The bound values of an AffineAdd: y of four elements of a and b."""

    def __init__(self, k: Builder, cheap: AffineAdd, limits: tuple[int, int]) -> None:
        self.k = k
        self.a_factor = k.arg("a_factor", cheap.a_factor)
        self.b_factor = k.arg("b_factor", cheap.b_factor)
        self.offset = k.arg("offset", cheap.offset)
        self.shift, self.base = cheap.shift, cheap.base
        if cheap.base is None:
            self.low, self.high = _limits(k, limits)
            return
        self.after = k.arg("base", cheap.base)
        self.low, self.high = (
            k.arg(name, limit - cheap.base)
            for name, limit in zip(("low", "high"), limits, strict=True)
        )

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        k = self.k
        if a is not None:
            self.fixed = k.let("a_term", ALL4(i32(a) * self.a_factor + self.offset))
            return
        self.factors = k.let("a_factors", ALL4(self.a_factor))
        self.add = self.offset
        if b is not None:
            self.add = k.let("b_term", i32(b) * self.b_factor + self.offset)

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        total: Expr = LINE4(a, self.factors, self.add) if a is not None else self.fixed
        if b is not None:
            total = MORE4(total, b, self.b_factor)
        if self.base is None:
            return NARROW4(total, self.shift, self.low, self.high)
        total = EVEN4(total, self.shift, (1 << self.shift - 1) - 1)
        held = NARROW4(total, self.shift, self.low, self.high)
        return ADD4(held, self.after)


class Product:
    """The bound values of a mul and its end: y of four elements of a and b."""

    def __init__(self, k: Builder, made: MulParameters, end: Affine) -> None:
        self.k, self.end = k, end
        self.a_zero = k.arg("a_less", -made.a_zero)
        unit = 1 << FRACTION
        self.unit, self.b_zero = unit, k.arg("b_less", -unit * made.b_zero)
        self.offset = k.arg("offset", int(end.offsets[0]))
        self.multiplier = k.arg("multiplier", int(end.multipliers[0]))
        below = 0 if end.below is None else int(end.below[0])
        self.below = k.arg("below", below)
        self.base: Expr = const(0)
        if end.base:
            self.base = k.arg("base", end.base)
        self.low, self.high = _limits(k, (end.low, end.high))

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        k = self.k
        self.multipliers = k.let("multipliers", ALL4(self.multiplier))
        if self.end.below is not None:
            self.plus = k.let("plus", ALL4(self.offset))
            self.minus = k.let("minus", ALL4(self.below))
        if a is not None:
            self.left = k.let("a_term", ALL4(i32(a) + self.a_zero))
        if b is not None:
            scaled = i32(b) * self.unit + self.b_zero
            self.right: Expr = k.let("b_term", ALL4(scaled))
        else:
            self.units = k.let("units", ALL4(self.unit))

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        left: Expr = ADD4(a, self.a_zero) if a is not None else self.left
        right = LINE4(b, self.units, self.b_zero) if b is not None else self.right
        if self.end.below is None:
            scaled: Expr = LINE4(left, right, self.offset)
        else:
            total = self.k.let("product", TIMES4(left, right))
            scaled = CORRECT4(total, self.plus, self.minus)
        value = MULHI4(scaled, self.multipliers)
        if not isinstance(self.base, Const):
            value = ADD4(value, self.base)
        return NARROW4(value, self.end.shift, self.low, self.high)


def _limits(k: Builder, limits: tuple[int, int]) -> tuple[Expr, Expr]:
    if limits == (-128, 127):
        return const(-128), const(127)
    return k.arg("low", limits[0]), k.arg("high", limits[1])


def innermost(
    k: Builder,
    row: Row,
    size: Expr,
    pointers: _Pointers,
    arithmetic: Sum | Product | ExactSum | ExactProduct | Sloped | Reals,
) -> None:
    """One row. The last elements are computed first: the output may lie where an
    operand is, and the last vector reaches back into the one before."""
    y, a, b = pointers
    arithmetic.row(None if row.a else load(a), None if row.b else load(b))

    read = arithmetic.load if isinstance(arithmetic, Reals) else words_at

    def four(a: Expr, b: Expr) -> Expr:
        return arithmetic.four(read(a) if row.a else None, read(b) if row.b else None)

    end, rest = size, row.size % LANES > 0
    if rest:
        begin = k.let("begin", size - LANES)
        last = k.let("last", four(offset(a, begin), offset(b, begin)))
        end = size - size % LANES
    to = k.let("to", y)
    moving: list[Var] = [to]
    if row.a:
        a = k.let("a_from", a)
        moving.append(a)
    if row.b:
        b = k.let("b_from", b)
        moving.append(b)
    with k.loop("j", end, 0, row.step):
        for at in range(0, row.step, LANES):
            k.store(to, at, four(offset(a, at), offset(b, at)))
        for pointer in moving:
            k.assign(pointer, offset(pointer, row.step))
    if rest:
        k.store(y, begin, last)
