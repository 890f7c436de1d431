"""add, sub, mul, prelu with broadcasting: int8, int16, float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT16,
    Expr,
    binary,
    cast,
    const,
    i32,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import SATURATE8
from pybuild.kernels.base.operands import (
    Operands,
    elementwise_operands,
    inner_shape,
    offer,
    short,
)
from pybuild.kernels.dsp.eltwise import add4, mul4
from pybuild.kernels.dsp.eltwise_exact import exact4, mul16, prelu4
from pybuild.kernels.epilogues.affine import products
from pybuild.kernels.epilogues.affine_add import AffineAdd, affine_add
from pybuild.kernels.epilogues.affine_end import rounded_sum
from pybuild.kernels.epilogues.by_channel import (
    ScalarFinish,
    scalar_epilogue,
    starts_at_zero,
)
from pybuild.kernels.epilogues.by_channel import table as scalar_table
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.eltwise_loops import (
    FOUR,
    Arithmetic,
    Axis,
    Innermost,
    in_a_turn,
    innermost,
    join,
    loops,
)
from pybuild.kernels.mve import eltwise as eltwise_mve
from pybuild.kernels.portable.eltwise import exact_add, multiplied, sloped
from pybuild.kernels.rvv import eltwise as eltwise_rvv
from pybuild.ops.eltwise import (
    AddParameters,
    MulParameters,
    add_parameters,
    mul_parameters,
    prelu_parameters,
)
from pybuild.records import dataclass
from pybuild.targets.target import Target

SYMBOL = {"add": "+", "sub": "-", "mul": "*", "prelu": "where it is below 0, times"}


def eltwise(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for add, sub, mul and prelu.

    Errors  BuildError if scales are so far apart that int32 could overflow
    """
    operands = elementwise_operands(node, graph)
    y = graph.tensor(node.output)
    a, b = (graph.tensor(name) for name in node.inputs)
    rank = len(y.shape)
    shapes = [inner_shape(t, operands, rank) for t in (y, a, b)]
    axes = join(*shapes)
    shape = "".join(axis.key for axis in axes)
    found = []
    for form in forms(node, graph, target, axes[-1], operands.after):
        name = f"{node.op}_{form.kind}_{shape}_{form.key}".rstrip("_")
        k = _kernel(name, axes, operands, y.dtype, form)
        found.append(_offer(k, node, graph, operands, form.each))
    return found


@dataclass(frozen=True)
class Form:
    """One way to write the innermost loop: `kind` and `key` say what distinguishes its
    code, `turn` and `words` say it to readers of the C; `bind` binds its arguments;
    each: about what an element takes.
    """

    kind: str
    key: str
    turn: str
    words: str
    bind: Callable[[Builder], Innermost]
    each: int


def forms(
    node: Node, graph: Graph, target: Target, last: Axis, limits: int
) -> list[Form]:
    """The ways for a target, the fastest last.

    last    the innermost loop; `limits`: the pointer of a float layer's ends
    """
    dtype = graph.tensor(node.output).dtype
    is_float = dtype is FLOAT32
    made = [_float(node, limits)] if is_float else _integers(node, graph, target)
    found = []
    for maker, mark, words in made:
        turn = "one element at a time"
        if mark.startswith("dsp"):
            turn = f"{in_a_turn(last.size)} elements in a turn, then the rest"
            mark += f"_by{in_a_turn(last.size)}" + "_tail" * (last.size % FOUR > 0)

        def plain(k: Builder, maker: _Maker = maker) -> Innermost:
            return partial(innermost, arithmetic=maker(k))

        each = 6 if is_float else 10
        found.append(Form(short(dtype), mark, turn, words, plain, each))
    row = eltwise_mve.Row(last.size, last.a, last.b)
    vectors = eltwise_mve.vectors(node, graph, target, row, limits)
    if vectors is not None:

        def on_vectors(k: Builder) -> Innermost:
            turn = vectors.bind(k)
            return lambda k, _, size, pointers: turn(k, size, pointers)

        turn = f"{row.step} elements in a turn; the last vector reaches back"
        found.append(Form("mve", vectors.key, turn, vectors.words, on_vectors, 3))
    some = eltwise_rvv.on_vectors(node, graph, target, last)
    if some is not None:
        turn = "a vector of elements at a time"
        found.append(Form("rvv", some.key, turn, some.words, some.bind, 1))
    return found


def _kernel(
    name: str,
    axes: Sequence[Axis],
    operands: Operands,
    dtype: DType,
    form: Form,
) -> Builder:
    """The loops around the innermost one, which the form makes."""
    sign = SYMBOL[name.split("_", 1)[0]]
    moves = {"e": "both operands move", "a": "right stays", "b": "left stays"}
    loops_ = f"{len(axes)} loop{'s' * (len(axes) > 1)}, of the innermost "
    order = f"{loops_}{moves[axes[-1].key]}: {form.turn}"
    what = f"y = left {sign} right, {dtype.value}"
    k = Builder(name, told(what, order, form.words))
    to = k.row("y", 0, dtype, writable=True)
    first, second = operands.numbers
    rows = (k.row("left", first, dtype), k.row("right", second, dtype))
    sizes = [k.arg(f"size{depth}", axis.size) for depth, axis in enumerate(axes)]
    loops(k, tuple(zip(axes, sizes, strict=True)), (to, *rows), form.bind(k))
    return k


def _offer(
    k: Builder, node: Node, graph: Graph, operands: Operands, each: int
) -> Candidate:
    """each: about what an element takes"""
    y = graph.tensor(node.output)
    tables = limits_of(node, graph)
    over = tuple(
        position
        for position, name in enumerate(node.inputs)
        if name not in graph.constants and graph.tensor(name).bytes == y.bytes
    )
    return offer(k, operands, tables=tables, in_place=over, cost=y.size * each)


_Maker = Callable[[Builder], Arithmetic]
_Way = tuple[_Maker, str, str]  # what distinguishes its code, and how that ends


def _limits(node: Node) -> FloatClamp:
    low, high = node.attrs.get("clamp") or (None, None)
    return FloatClamp(low, high)


def limits_of(node: Node, graph: Graph) -> tuple[Packed, ...]:
    """The ends of a float layer, where it has some."""
    is_float = graph.tensor(node.output).dtype is FLOAT32
    return _limits(node).tables() if is_float else ()


def _float(node: Node, pointer: int) -> _Way:
    symbol, limits = SYMBOL[node.op], _limits(node)

    def make(k: Builder) -> Arithmetic:
        finish = limits.bind(k, const(pointer))

        def y(a: Expr, b: Expr) -> Expr:
            if node.op == "prelu":
                a = k.let("x", a)
                return select(a < 0.0, a * b, a)
            return finish.apply(binary(symbol, a, b), 0)

        return Arithmetic(lambda a: a, lambda b: b, y)

    return make, limits.key, limits.words


def _integers(node: Node, graph: Graph, target: Target) -> list[_Way]:
    """The plain way, and four at a time where there is one."""
    dtype, where = graph.tensor(node.output).dtype, graph.where(node)
    pairs = dtype is INT8 and "dsp" in target.features
    if node.op == "mul":
        product = mul_parameters(node, graph)
        fast = mul4(product) if pairs else None
        if dtype is INT8 and target.sums and not pairs:
            fast = _proven(product, target)
        if dtype is INT16 and "dsp" in target.features:
            fast = mul16(product)
        plain = multiplied(product, dtype, where)
    elif node.op == "prelu":
        slopes = prelu_parameters(node, graph)
        fast = prelu4(slopes) if pairs else None
        plain = sloped(slopes, where)
    else:
        made = add_parameters(node, graph)
        fast = add4(made) if pairs else None
        if fast is None and "dsp" in target.features:
            fast = exact4(made, dtype)
        plain = _add(made, dtype, where)
    return [plain] if fast is None else [plain, fast]


def _proven(made: MulParameters, target: Target) -> _Way | None:
    """By the cheapest end of a core that multiplies one by one."""
    epilogue = scalar_epilogue(*products(made), target)
    if epilogue is None:
        return None
    values = scalar_table(epilogue, np.zeros(1, np.int64)).array[0]
    values = values if starts_at_zero(epilogue) else values[1:]

    def make(k: Builder) -> Arithmetic:
        a_zero, b_zero = k.arg("a_zero", made.a_zero), k.arg("b_zero", made.b_zero)
        finish = ScalarFinish(k, epilogue)
        row = [k.arg(f"end{i}", int(value)) for i, value in enumerate(values)]
        return Arithmetic(
            lambda a: i32(a) - a_zero,
            lambda b: i32(b) - b_zero,
            lambda a, b: finish.narrow(k, k.let("product", a * b), row),
        )

    return make, f"proven_{epilogue.key}", epilogue.words


def _add(made: AddParameters, dtype: DType, where: str) -> _Way:
    cheap = affine_add(made) if dtype is INT8 else None
    return exact_add(made, dtype, where) if cheap is None else _affine(cheap, made)


def _affine(cheap: AffineAdd, made: AddParameters) -> _Way:
    clamped = (made.low, made.high) != (-128, 127)

    def make(k: Builder) -> Arithmetic:
        a_factor, b_factor = (
            k.arg("a_factor", cheap.a_factor),
            k.arg("b_factor", cheap.b_factor),
        )
        add = k.arg("offset", cheap.offset)
        low = k.arg("low", made.low) if clamped else const(-128)
        high = k.arg("high", made.high) if clamped else const(127)
        scaled = rounded_sum(k, cheap)

        def end(x: Expr) -> Expr:
            held = minimum(maximum(x, low), high) if clamped else SATURATE8(x)
            return cast(held, INT8)

        return Arithmetic(
            lambda a: i32(a) * a_factor + add,
            lambda b: i32(b) * b_factor,
            lambda x, z: end(scaled(x + z)),
        )

    return make, cheap.key + ("_clamped" if clamped else ""), cheap.words
