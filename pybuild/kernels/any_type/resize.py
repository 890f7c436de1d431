"""resize_bilinear: four pixels and four weights for each result; int8 on vectors of
four channels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    INT64,
    Expr,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
    pointer_type,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.floats import ADD_REALS4, ALL_REALS4, MUL_REALS4
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.kernels.base.real_vectors import MVE
from pybuild.kernels.base.vectors import (
    ALL4,
    CORRECT4,
    MORE4,
    NARROW4,
    TIMES4,
    words_at,
)
from pybuild.ops.pool import Between, betweens, lerps
from pybuild.records import dataclass
from pybuild.targets.target import Target

_ONE, _BITS = 1024, 20  # of a weight; of a product of two
_HALF = 1 << (_BITS - 1)
LANES = 4
_Channels = Callable[[Builder, Expr, list[Var], list[Var]], None]


def resize_bilinear(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for resize_bilinear."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if x.dtype is FLOAT32:
        vectors = "mve" in target.features and y.shape[3] >= LANES
        return [_of_floats(node, graph, way) for way in (False, True)[: 1 + vectors]]
    ways: list[tuple[str, str, _Channels, int]] = [
        ("", "channel by channel", _one_by_one, 16 if x.dtype is INT8 else 30)
    ]
    channels = y.shape[3]
    if "mve" in target.features and x.dtype is INT8 and channels >= LANES:
        rest = "_rest" if channels % LANES else ""
        ways.append((f"_mve{rest}", "four channels at a time", _fours(rest), 6))
    found = []
    for key, order, code, each in ways:
        name = f"resize_bilinear_{short(x.dtype)}{key}"
        what = f"bilinear between pixels, weights of ten bits, {x.dtype.value}"
        k = Builder(name, told(what, f"pixel by pixel, {order}", "ties away from zero"))
        _write(k, node, graph, code)
        operands = whole_operands(node, graph)
        found.append(offer(k, operands, cost=y.size * each))
    return found


def _of_floats(node: Node, graph: Graph, vectors: bool) -> Candidate:
    """Read positions, in elements of x, and weights from tables; vectors: four channels
    at a time."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    (images, height, width, channels), operands = x.shape, whole_operands(node, graph)
    tables = []
    steps = {"rows": width * channels, "columns": channels}
    for (name, step), lerp in zip(steps.items(), lerps(node, graph), strict=True):
        both = np.stack([lerp.low, lerp.high], 1).astype(np.int32) * step
        order = "elements to the one below and the one above, for each in turn"
        tables.append(Packed(name, both.reshape(-1), order=order))
        order = f"of the upper of the two {name}, for each in turn"
        tables.append(Packed(f"of_{name}", lerp.weight, order=order))
    what = "bilinear between pixels, float32"
    order = "pixel by pixel, upper left, lower left, upper right, lower right"
    order += "; four channels at a time" * vectors
    rest = bool(channels % LANES)
    key = f"_mve{'_rest' * rest}" if vectors else ""
    k = Builder(f"resize_bilinear_f32{key}", told(what, order))
    to: Expr = k.row("y", 0, FLOAT32, writable=True)
    source: Expr = k.row("x", 1, FLOAT32)
    rows, of_rows, columns, of_columns = (
        k.row(table.role, operands.after + at, INT32 if at % 2 == 0 else FLOAT32)
        for at, table in enumerate(tables)
    )
    counts = {"high": y.shape[1], "wide": y.shape[2], "channels": channels}
    high, wide, deep = (k.arg(name, count) for name, count in counts.items())
    one = const(1, FLOAT32)
    to, source = k.let("to", to), k.let("from", source)
    with k.loop("image", k.arg("images", images)):
        with k.loop("oy", high) as oy:
            down = k.let("down", load(of_rows, oy))
            up = k.let("up", one - down)
            upper, lower = (
                k.let(f"line{i}", offset(source, load(rows, oy * 2 + i)))
                for i in (0, 1)
            )
            with k.loop("ox", wide) as ox:
                right = k.let("right", load(of_columns, ox))
                left = k.let("left", one - right)
                pixels: list[tuple[Var, Var, Var]] = []
                for j, wx in enumerate((left, right)):
                    place = k.let(f"column{j}", load(columns, ox * 2 + j))
                    for i, (line, wy) in enumerate(((upper, up), (lower, down))):
                        pixel = k.let(f"pixel{i}{j}", offset(line, place))
                        pixels.append((pixel, wy, wx))
                if vectors:
                    _real_fours(k, deep, to, pixels, rest)
                else:
                    with k.loop("c", deep) as c:
                        parts = [load(p, c) * wy * wx for p, wy, wx in pixels]
                        k.store(to, c, parts[0] + parts[1] + parts[2] + parts[3])
                k.assign(to, offset(to, deep))
        k.assign(source, offset(source, k.arg("pixels", height * width) * deep))
    cost = (5 if vectors else 20) * y.size + 40 * y.size // channels
    return offer(k, operands, tables=tables, cost=cost)


def _real_fours(
    k: Builder, channels: Expr, to: Var, pixels: list[tuple[Var, Var, Var]], rest: bool
) -> None:
    """The same products and sums in four lanes; the last four reach back."""
    weights = {w: k.let("all", ALL_REALS4(w)) for _, *both in pixels for w in both}

    def four(at: Expr) -> None:
        parts = [
            MUL_REALS4(MUL_REALS4(MVE.at(p, at), weights[wy]), weights[wx])
            for p, wy, wx in pixels
        ]
        total: Expr = parts[0]
        for part in parts[1:]:
            total = ADD_REALS4(total, part)
        k.store(to, at, total)

    with k.loop("c", channels - channels % LANES if rest else channels, 0, LANES) as c:
        four(c)
    if rest:
        four(k.let("last", channels - LANES))


@dataclass(frozen=True)
class _Axis:
    """The bound numbers of a Between."""

    scale: Expr
    start: Expr
    last: Expr
    size: Expr

    def at(self, k: Builder, i: Expr, name: str) -> tuple[Var, Var, Var]:
        """Return the positions below and above, and the weight of the position
        above."""
        at = k.let(f"at_{name}", i * self.scale + self.start)
        low = k.let(f"low_{name}", maximum(at >> 10, 0))
        high = k.let(f"high_{name}", minimum((at + (_ONE - 1)) >> 10, self.last))
        weight = k.let(f"weight_{name}", at - low * _ONE)
        return k.let(f"below_{name}", minimum(low, self.last)), high, weight


def _axis(k: Builder, one: Between, name: str) -> _Axis:
    return _Axis(
        k.arg(f"scale_{name}", one.scale),
        k.arg(f"start_{name}", one.start),
        k.arg(f"last_{name}", one.old - 1),
        k.arg(f"size_{name}", one.size),
    )


def _write(k: Builder, node: Node, graph: Graph, code: _Channels) -> None:
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", 1, x.dtype)
    rows, columns = (
        _axis(k, one, name)
        for one, name in zip(betweens(node, graph), "yx", strict=True)
    )
    images, channels = k.arg("images", x.shape[0]), k.arg("channels", x.shape[3])
    row = k.let("row", (columns.last + 1) * channels)
    to = k.let("to", to)
    with k.loop("image", images) as image:
        begin = k.let("begin", image * (rows.last + 1))
        with k.loop("oy", rows.size) as oy:
            low, high, down = rows.at(k, oy, "y")
            upper = k.let("upper", offset(source, (begin + low) * row))
            lower = k.let("lower", offset(source, (begin + high) * row))
            with k.loop("ox", columns.size) as ox:
                low, high, right = columns.at(k, ox, "x")
                pixels = [
                    k.let(f"from{i}", offset(line, column * channels))
                    for i, (line, column) in enumerate(
                        ((upper, low), (upper, high), (lower, low), (lower, high))
                    )
                ]
                both = k.let("both", down * right)
                weights = [
                    k.let("weight0", (_ONE - down) * _ONE - (right * _ONE - both)),
                    k.let("weight1", right * _ONE - both),
                    k.let("weight2", down * _ONE - both),
                    both,
                ]
                code(k, channels, [to, *pixels], weights)
                k.assign(to, offset(to, channels))


def _elem(to: Var) -> DType:
    return pointer_type(to).elem


def _one_by_one(
    k: Builder, channels: Expr, pixels: list[Var], weights: list[Var]
) -> None:
    to, *pixels = pixels
    wide, kind = (i32, INT32) if _elem(to) is INT8 else (i64, INT64)
    with k.loop("c", channels) as c:
        parts = [
            wide(load(pixel, c)) * wide(weight)
            for pixel, weight in zip(pixels, weights, strict=True)
        ]
        total = k.let("total", parts[0] + parts[1] + parts[2] + parts[3])
        bits, sign = const(_BITS, kind), total >> const(8 * kind.bytes - 1, kind)
        k.store(to, c, cast((total + sign + _HALF) >> bits, _elem(to)))


def _fours(rest: str) -> _Channels:
    def code(k: Builder, channels: Expr, pixels: list[Var], weights: list[Var]) -> None:
        first = k.let("first", ALL4(weights[0]))
        half, sign = k.let("half", ALL4(_HALF)), k.let("sign", ALL4(-1))

        def four(at: Expr) -> None:
            to, *others = pixels
            a, b, c, d = (words_at(pixel, at) for pixel in others)
            total: Expr = TIMES4(a, first)
            for part, weight in zip((b, c, d), weights[1:], strict=True):
                total = MORE4(total, part, weight)
            total = CORRECT4(total, half, sign)
            k.store(to, at, NARROW4(total, _BITS, const(-128), const(127)))

        whole = channels - channels % LANES if rest else channels
        with k.loop("c", whole, 0, LANES) as c:
            four(c)
        if rest:
            four(k.let("last", channels - LANES))

    return code
