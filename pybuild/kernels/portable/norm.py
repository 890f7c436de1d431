"""norm of int8 and int16: by the integer steps of ops/norm.py, row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT32,
    INT64,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import MULHI_ADD_ROUND, SATURATE8, SATURATE16
from pybuild.kernels.base.operands import elementwise_operands, offer
from pybuild.kernels.math.reciprocal import SPARE_BITS
from pybuild.ops.norm import (
    ROOT_FIRST,
    ROOT_SLOPE,
    ROOT_STEPS,
    NormParameters,
    norm_parameters,
)
from pybuild.targets.target import Target

_A = Var("a", INT32)


def _root() -> Intrin:
    """1 / sqrt(a) as `inverse_root` of ops/norm.py."""

    def product(x: Expr, y: Expr, bits: int) -> Expr:
        return i32((i64(x) * i64(y)) >> const(bits, INT64))

    lets: list[tuple[Var, Expr]] = []

    def let(name: str, value: Expr) -> Var:
        made = Var(name, INT32)
        lets.append((made, value))
        return made

    r = let("r0", const(ROOT_FIRST) - product(_A, const(ROOT_SLOPE), 32))
    for turn in range(1, ROOT_STEPS + 1):
        square = let(f"s{turn}", product(product(_A, r, 31), r, 29))
        r = let(f"r{turn}", product(r, const(3 << 29) - square, 30))
    doc = "1 / sqrt(a) in Q2.29; a in Q0.31, at least a quarter: three Newton steps."
    return Intrin("crt_inverse_root", (_A,), r, tuple(lets), doc=doc)


INVERSE_ROOT = _root()


def norm(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for norm.

    Errors  BuildError for scales too far apart
    """
    made = norm_parameters(node, graph)
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    operands = elementwise_operands(replace(node, inputs=node.inputs[:1]), graph)
    kind = "less its mean, over its deviation" if made.centred else "over its root mean"
    doc = told(
        f"y = each row {kind}, times a factor of each element, {x.dtype.value}",
        "row by row, each twice: its sums, which are exact; its elements",
    )
    name = f"norm_{'s8' if x.dtype is INT8 else 's16'}" + "_rms" * (not made.centred)
    k = Builder(name, doc)
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", operands.numbers[0], x.dtype)
    factors = k.row("factors", operands.after, INT32)
    offsets = k.row("offsets", operands.after + 1, INT32)
    lines = y.size // made.count // (operands.images * operands.bands)
    rows, count = k.arg("rows", lines), k.arg("count", made.count)
    zero, bits = k.arg("x_zero", made.x_zero), k.arg("bits", made.bits)
    # an argument holds 32 bits
    upper, lower = (k.arg("extra", n) for n in divmod(made.extra, 1 << 31))
    extra = k.let("epsilon", (i64(upper) << const(31, INT64)) + i64(lower))
    with k.loop("r", rows) as r:
        line = k.let("line", offset(source, r * count))
        out = k.let("out", offset(to, r * count))
        total, root, lift = _of_row(k, made, line, (count, zero, extra))
        with k.loop("c", count) as c:
            centred = count * (i32(load(line, c)) - zero) - total
            p = k.let("p", MULHI_ADD_ROUND(centred * lift, root, const(0)))
            scaled = MULHI_ADD_ROUND(p, load(factors, c), load(offsets, c))
            held = SATURATE8 if y.dtype is INT8 else SATURATE16
            k.store(out, c, cast(held(scaled >> bits), y.dtype))
    tables = (
        Packed("factors", np.asarray(made.factors, np.int32), order="of each element"),
        Packed("offsets", np.asarray(made.offsets, np.int32), order="of each element"),
    )
    cost = 22 * y.size + 120 * (y.size // made.count)
    over = (0,) if node.inputs[0] not in graph.constants else ()
    return [offer(k, operands, tables=tables, in_place=over, cost=cost)]


def _of_row(
    k: Builder, made: NormParameters, line: Expr, numbers: tuple[Expr, Expr, Expr]
) -> tuple[Expr, Expr, Expr]:
    """Its total, and what 1 / sqrt(spread) is: a number, and a power of 2.

    numbers  elements of a row, zero point, what is added to the spread
    """
    count, zero, extra = numbers
    total: Expr = const(0)
    sums = k.let("total", total) if made.centred else None
    squares = k.let("squares", const(0, INT64))
    with k.loop("c", count) as c:
        q = k.let("q", i32(load(line, c)) - zero)
        if sums is not None:
            k.assign(sums, sums + q)
        k.assign(squares, squares + i64(q) * i64(q))
    spread: Expr = i64(count) * squares
    if sums is not None:
        total = sums
        spread = spread - i64(sums) * i64(sums)
    spread = (spread << i64(k.arg("more", made.more))) + extra
    spread = k.let("spread", spread)
    high = k.let("high", i32(spread >> const(31, INT64)))
    part = select(high > 0, high, i32(spread & const((1 << 31) - 1, INT64)))
    length = select(high > 0, const(62), const(31)) - SPARE_BITS(part)
    half = k.let("half", (length + 1) >> 1)
    up, down = maximum(31 - 2 * half, 0), maximum(2 * half - 31, 0)
    a = k.let("a", i32((spread << i64(up)) >> i64(down)))
    room = k.arg("room", made.room + made.more // 2)
    left = k.let("left", minimum(room - half, 30))
    root = k.let("root", INVERSE_ROOT(a) >> maximum(0 - left, const(0)))
    return total, root, k.let("lift", const(1) << maximum(left, const(0)))
