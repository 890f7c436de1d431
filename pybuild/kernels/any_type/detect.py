"""suppress: selects the best of overlapping boxes, with a pass over all boxes for each
one selected. roi_align: samples the contents of boxes.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    BOOL,
    FLOAT32,
    INT32,
    UINT8,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.nan import GREATER
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.targets.target import Target

_COST = 30
_LIMITS = "the least score, the greatest overlap"


def _share() -> Intrin:
    """Return the intersection over union of two boxes; 0 for boxes without area."""
    a0, a1, a2, a3 = a = tuple(Var(f"a{n}", FLOAT32) for n in range(4))
    b0, b1, b2, b3 = b = tuple(Var(f"b{n}", FLOAT32) for n in range(4))
    first, second, high, wide, both = (
        Var(n, FLOAT32) for n in ("first", "second", "high", "wide", "both")
    )
    zero = const(0.0, FLOAT32)
    lets: tuple[tuple[Var, Expr], ...] = (
        (first, (a2 - a0) * (a3 - a1)),
        (second, (b2 - b0) * (b3 - b1)),
        (high, maximum(minimum(a2, b2) - maximum(a0, b0), zero)),
        (wide, maximum(minimum(a3, b3) - maximum(a1, b1), zero)),
        (both, high * wide),
    )
    empty = select(first <= zero, const(1, BOOL), second <= zero)
    value = select(empty, zero, both / (first + second - both))
    doc = "What two boxes both cover, of what either covers; 0 of one without area."
    return Intrin("crt_share_of_boxes", a + b, value, lets, doc=doc)


SHARE = _share()


def suppress(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """Return the candidates for suppress. Scratch holds a byte for each box: whether it
    may still be selected."""
    scores, y = graph.tensor(node.inputs[1]), graph.tensor(node.output)
    operands = whole_operands(node, graph)
    doc = told(
        "boxes that do not overlap a better one, best first, float32",
        "image by image; for each result all boxes that are left",
    )
    k = Builder("suppress_f32", doc)
    to = k.row("y", 0, INT32, writable=True)
    boxes, all_ = (k.row(n, i, FLOAT32) for n, i in zip(
        ("boxes", "all_scores"), operands.numbers, strict=True))  # fmt: skip
    limits = k.row("limits", operands.after, FLOAT32)
    free = k.row("free", operands.after + 1, UINT8, writable=True)
    least, most = k.let("least", load(limits)), k.let("most", load(limits, 1))
    rows, count = k.arg("rows", scores.shape[0]), k.arg("count", scores.shape[1])
    wanted = k.arg("wanted", y.shape[1])
    with k.loop("r", rows) as r:
        own = k.let("scores", offset(all_, r * count))
        made = k.let("made", offset(to, r * wanted))
        with k.loop("i", count) as i:
            fits = least <= load(own, i)
            k.store(free, i, select(fits, const(1, UINT8), const(0, UINT8)))
        with k.loop("n", wanted) as n:
            best = _best(k, own, free, count)
            k.store(made, n, best)
            with k.when(best >= 0):
                k.store(free, best, const(0, UINT8))
                _drop(k, boxes, free, best, count, most)
    limit = np.asarray([node.attrs["score"], node.attrs["overlap"]], np.float32)
    cost = _COST * scores.size * y.shape[1]
    found = offer(
        k, operands, tables=(Packed("limits", limit, order=_LIMITS),), cost=cost
    )
    return [replace(found, scratch=scores.shape[1])]


def _best(k: Builder, scores: Expr, free: Expr, count: Expr) -> Var:
    """Return the first of the best boxes that may still be selected, or -1."""
    best = k.let("best", const(-1))
    held = k.let("held", 0.0, FLOAT32)
    with k.loop("i", count) as i, k.when(i32(load(free, i)) > 0):
        value = k.let("value", load(scores, i))
        with k.when(select(best < 0, const(1, BOOL), held < value)):
            k.assign(best, i)
            k.assign(held, value)
    return best


def _drop(
    k: Builder, boxes: Expr, free: Expr, best: Expr, count: Expr, most: Expr
) -> None:
    """Marks boxes that overlap this one, so that they are not selected."""
    mine = k.let("mine", offset(boxes, best * 4))
    sides = [k.let(f"side{n}", load(mine, n)) for n in range(4)]
    with k.loop("j", count) as j, k.when(i32(load(free, j)) > 0):
        other = k.let("other", offset(boxes, j * 4))
        share = SHARE(*sides, *(load(other, n) for n in range(4)))
        with k.when(most < share):
            k.store(free, j, const(0, UINT8))


def roi_align(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    mode, centred = str(node.attrs["mode"]), bool(node.attrs["centred"])
    operands = whole_operands(node, graph)
    doc = told(
        f"roi_align, float32: the {'mean' if mode == 'avg' else 'most'} of samples "
        "between pixels in each cell of a box",
        "box by box, channel by channel, cell by cell",
    )
    k = Builder(f"roi_align_{mode}{'_centred' if centred else ''}", doc)
    to = k.row("y", 0, FLOAT32, writable=True)
    kinds = (("x", FLOAT32), ("boxes", FLOAT32), ("image", INT32))
    planes, boxes, image = (
        k.row(name, i, kind)
        for (name, kind), i in zip(kinds, operands.numbers, strict=True)
    )
    scale = k.let("scale", load(k.row("factor", operands.after, FLOAT32)))
    count, channels, *cells = (
        k.arg(name, size)
        for name, size in zip(("boxes", "channels", "rows", "columns"), y.shape,
                              strict=True)
    )  # fmt: skip
    images = k.arg("images", x.shape[0])
    sizes = [k.arg(n, s) for n, s in zip(("height", "width"), x.shape[2:], strict=True)]
    samples = k.arg("samples", int(node.attrs["samples"]))
    with k.loop("r", count) as r:
        box = k.let("box", offset(boxes, r * 4))
        axes = [
            _Axis(k, box, scale, (1 - n, centred), (cells[n], sizes[n]), samples)
            for n in (0, 1)
        ]
        held = maximum(minimum(load(image, r), images - 1), 0)
        first = k.let("first", held * channels)
        with k.loop("c", channels) as c:
            plane = k.let("plane", offset(planes, (first + c) * sizes[0] * sizes[1]))
            made = k.let("made", offset(to, (r * channels + c) * cells[0] * cells[1]))
            with k.loop("i", cells[0]) as i, k.loop("j", cells[1]) as j:
                value = _cell(k, plane, axes, (i, j), mode)
                k.store(made, i * cells[1] + j, value)
    factor = np.asarray([node.attrs["scale"]], np.float32)
    cost = _COST * y.size * max(int(node.attrs["samples"]), 2) ** 2
    return [
        offer(
            k,
            operands,
            tables=(Packed("factor", factor, order="one number"),),
            cost=cost,
        )
    ]


class _Axis:
    """The sample positions of a box on one axis, and their number in a cell."""

    def __init__(
        self, k: Builder, box: Expr, scale: Expr, side: tuple[int, bool],
        sizes: tuple[Expr, Expr], samples: Expr,
    ) -> None:  # fmt: skip
        number, centred = side
        ends = [load(box, number + n) * scale for n in (0, 2)]
        if centred:
            ends = [end - const(0.5, FLOAT32) for end in ends]
        self.k, (self.cells, self.size) = k, sizes
        self.begin = k.let("begin", ends[0])
        span = ends[1] - self.begin
        span = span if centred else maximum(span, const(1.0, FLOAT32))
        self.step = k.let("step", span / cast(self.cells, FLOAT32))
        # of a step that is NaN one sample, which is NaN: integers are made of numbers
        high = minimum(maximum(const(0.0, FLOAT32), self.step), const(32767.0, FLOAT32))
        whole = k.let("whole", cast(high, INT32))
        up = cast(whole, FLOAT32) < high
        more = select(equal(self.step, self.step), select(up, whole + 1, whole), 1)
        self.count = k.let("count", select(samples < 1, more, samples))

    def at(self, cell: Expr, sample: Expr) -> tuple[Expr, list[tuple[Expr, Expr]]]:
        """Return whether a sample is in the image, its two pixels, and their
        weights."""
        k, zero = self.k, const(0.0, FLOAT32)
        part = (cast(sample, FLOAT32) + const(0.5, FLOAT32)) * self.step
        begin = self.begin + cast(cell, FLOAT32) * self.step
        at = k.let("at", begin + part / cast(self.count, FLOAT32))
        below = cast(self.size, FLOAT32) < at
        outside = select(at < const(-1.0, FLOAT32), const(1, BOOL), below)
        last = self.size - 1
        held = k.let("held", minimum(maximum(at, zero), cast(last, FLOAT32)))
        low = k.let("low", cast(maximum(zero, held), INT32))
        rest = k.let("rest", held - cast(low, FLOAT32))
        high = k.let("high", minimum(low + 1, last))
        return outside, [(low, const(1.0, FLOAT32) - rest), (high, rest)]


def _cell(
    k: Builder, plane: Expr, axes: list[_Axis], cell: tuple[Expr, Expr], mode: str
) -> Expr:
    """Return the mean of a cell's samples, or the maximum that one pixel contributes to
    a sample."""
    zero = const(0.0, FLOAT32)
    rows, columns = axes
    total = k.let("total", zero)
    seen = k.let("seen", const(0))
    with k.loop("u", rows.count) as u:
        over, pair = rows.at(cell[0], u)
        above = k.let("above", select(over, const(1), const(0)))
        with k.loop("v", columns.count) as v:
            aside, others = columns.at(cell[1], v)
            outside = select(aside, const(1, BOOL), above > 0)
            taps = [
                load(plane, a * columns.size + b) * (p * q)
                for a, p in pair
                for b, q in others
            ]
            join = (lambda a, b: a + b) if mode == "avg" else GREATER
            value = select(outside, zero, functools.reduce(join, taps))
            first = value if mode == "avg" else select(seen < 1, value, total)
            k.assign(total, total + value if mode == "avg" else GREATER(first, value))
            k.assign(seen, seen + 1)
    if mode == "max":
        return total
    return total / cast(maximum(seen, 1), FLOAT32)
