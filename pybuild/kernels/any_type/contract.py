"""matmul and conv in any type and number of axes: one sum in a register at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import BOOL, Expr, cast, const, offset, select
from pybuild.kernels.any_type.elements import computed, memory, read, wrapping, write
from pybuild.kernels.any_type.map import Axis, form, join, nest
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.ops.contract import sizes_of
from pybuild.targets.target import Target

_COST = 6


def _sum_type(dtype: DType) -> DType:
    """Return the type of sums; integers wrap, as in ONNX Runtime."""
    return computed(dtype) if dtype.is_float else wrapping(dtype)


def matmul(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the candidates for matmul of tensors that are not quantised."""
    a, b = (graph.tensor(n) for n in node.inputs)
    y, sizes = graph.tensor(node.output), sizes_of(node, graph)
    outer = scaled(join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]]), sizes.each)
    operands = whole_operands(node, graph)
    kind = _sum_type(y.dtype)
    doc = told(
        f"y = a @ b of each pair of matrices, {y.dtype.value}",
        "row by row, column by column, one sum at a time; b is read "
        + ("along its rows" if sizes.transposed else "down its columns"),
    )
    mark = "_transposed" * sizes.transposed
    k = Builder(f"matmul_{short(y.dtype)}{mark}_{form(outer)}", doc)
    pointers = [
        k.row("y", 0, memory(y.dtype), writable=True),
        k.row("a", operands.numbers[0], memory(a.dtype)),
        k.row("b", operands.numbers[1], memory(b.dtype)),
    ]
    each = (sizes.rows, sizes.columns, sizes.depth)
    m, n, inner = (k.arg(w, s) for w, s in zip("mnk", each, strict=True))

    def body(at: Sequence[Expr], index: Sequence[Expr]) -> None:
        to, left, right = (
            k.let(w, offset(p, i))
            for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
        )
        with k.loop("r", m) as r, k.loop("c", n) as c:
            total = k.let("total", const(0, kind))
            with k.loop("d", inner) as d:
                x = cast(read(left, r * inner + d, a.dtype), kind)
                place = c * inner + d if sizes.transposed else d * n + c
                w = cast(read(right, place, b.dtype), kind)
                k.assign(total, total + x * w)
            write(k, to, r * n + c, cast(total, computed(y.dtype)), y.dtype)

    nest(k, outer, pointers, body)
    return [offer(k, operands, cost=_COST * y.size * sizes.depth)]


def scaled(axes: Sequence[Axis], units: tuple[int, ...]) -> tuple[Axis, ...]:
    """The axes with steps in elements, for indices of whole matrices."""
    return tuple(
        Axis(x.size, tuple(s * u for s, u in zip(x.steps, units, strict=True)))
        for x in axes
    )


class _Window:
    """One spatial axis: its numbers as arguments of the kernel."""

    def __init__(
        self, k: Builder, node: Node, shapes: Sequence[Sequence[int]], n: int
    ) -> None:
        x, w, y = (shape[2 + n] for shape in shapes)
        self.x, self.w, self.y = (
            k.arg(f"{name}{n}", s) for name, s in (("in", x), ("kernel", w), ("out", y))
        )
        self.stride = k.arg(f"stride{n}", node.attrs["strides"][n])
        self.dilation = k.arg(f"dilation{n}", node.attrs["dilations"][n])
        self.before = k.arg(f"pad{n}", node.attrs["pads"][n][0])


def conv(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for conv."""
    x, w = (graph.tensor(n) for n in node.inputs)
    y = graph.tensor(node.output)
    rank, groups = len(x.shape) - 2, int(node.attrs["groups"])
    operands = whole_operands(node, graph)
    kind = _sum_type(y.dtype)
    doc = told(
        f"convolution over {rank} axes, channels first, {y.dtype.value}",
        "output by output, one sum at a time: channel by channel, tap by tap, only "
        "those on the input",
    )
    k = Builder(f"conv{rank}d_{short(y.dtype)}", doc)
    to = k.row("y", 0, memory(y.dtype), writable=True)
    source = k.row("x", operands.numbers[0], memory(x.dtype))
    weights = k.row("w", operands.numbers[1], memory(w.dtype))
    images, group = k.arg("images", x.shape[0]), k.arg("groups", groups)
    depth, outs = k.arg("depth", w.shape[1]), k.arg("outs", w.shape[0] // groups)
    windows = [_Window(k, node, (x.shape, w.shape, y.shape), n) for n in range(rank)]
    plane = _product(k, "plane", [v.x for v in windows])
    taps = _product(k, "taps", [v.w for v in windows])
    made = _product(k, "made", [v.y for v in windows])
    with k.loop("n", images) as n, k.loop("g", group) as g, k.loop("o", outs) as o:
        channel = k.let("channel", g * outs + o)
        begin = k.let("begin", offset(to, (n * group * outs + channel) * made))
        seen = k.let("seen", offset(source, (n * group + g) * depth * plane))
        filter_ = k.let("filter", offset(weights, channel * depth * taps))

        def one(place: Expr, starts: Sequence[Expr]) -> None:
            total = k.let("total", const(0, kind))
            with k.loop("d", depth) as d:
                image = k.let("image", offset(seen, d * plane))
                part = k.let("part", offset(filter_, d * taps))

                def tap(at: Expr, tap_at: Expr) -> None:
                    value = cast(read(image, at, x.dtype), kind)
                    weight = cast(read(part, tap_at, w.dtype), kind)
                    k.assign(total, total + value * weight)

                _taps(k, windows, starts, (const(0), const(0)), tap)
            write(k, begin, place, cast(total, computed(y.dtype)), y.dtype)

        _places(k, windows, (), const(0), one)
    return [offer(k, operands, cost=_COST * y.size * w.size // w.shape[0])]


def _product(k: Builder, name: str, sizes: Sequence[Expr]) -> Expr:
    total: Expr = const(1)
    for size in sizes:
        total = total * size
    return k.let(name, total) if len(sizes) > 1 else total


def _places(
    k: Builder,
    windows: Sequence[_Window],
    starts: tuple[Expr, ...],
    place: Expr,
    body: Callable[[Expr, Sequence[Expr]], None],
) -> None:
    """Loop over every output; yield the start of its window on each axis."""
    if len(starts) == len(windows):
        body(place, starts)
        return
    window = windows[len(starts)]
    with k.loop("p", window.y) as p:
        start = k.let("start", p * window.stride - window.before)
        inner = k.let("out", place * window.y + p)
        _places(k, windows, (*starts, start), inner, body)


def _taps(
    k: Builder,
    windows: Sequence[_Window],
    starts: Sequence[Expr],
    at: tuple[Expr, Expr],
    body: Callable[[Expr, Expr], None],
) -> None:
    """Loop over every tap of a window that lies inside the input."""
    if not windows:
        body(*at)
        return
    window = windows[0]
    with k.loop("t", window.w) as t:
        where = k.let("where", starts[0] + t * window.dilation)
        inside = select(where < 0, const(0, BOOL), where < window.x)
        with k.when(inside):
            image = k.let("image_at", at[0] * window.x + where)
            tap = k.let("tap_at", at[1] * window.w + t)
            _taps(k, windows[1:], starts[1:], (image, tap), body)
