"""mean over any axes: int8 and int16 with requantisation, and float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp import pool as pool_dsp
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.epilogues.requantise import check_reach, requant, scaler
from pybuild.kernels.layers.pool import Layer, Reduction
from pybuild.kernels.mve import pool as pool_mve
from pybuild.kernels.portable.row_sums import accumulated, takes_rows
from pybuild.kernels.rvv import pool as pool_rvv
from pybuild.kernels.rvv import row_sums
from pybuild.ops.reduce import mean_parameters
from pybuild.records import dataclass
from pybuild.targets.target import Target

BLOCK = 16  # means that are summed together where they lie side by side


@dataclass(frozen=True)
class Axis:
    """Joined axes of the input; `step` in elements, of x and of y."""

    size: int
    reduced: bool
    x_step: int
    y_step: int


def join(shape: Sequence[int], reduced: Sequence[int]) -> tuple[Axis, ...]:
    """Fewest axes, kept and reduced ones in turn."""
    kinds: list[tuple[int, bool]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        kind = axis in reduced
        if kinds and kinds[-1][1] == kind:
            size *= kinds.pop()[0]
        kinds.append((size, kind))
    axes = []
    for depth, (size, kind) in enumerate(kinds):
        inner = kinds[depth + 1 :]
        y_step = math.prod(s for s, r in inner if not r)
        axes.append(Axis(size, kind, math.prod(s for s, _ in inner), y_step))
    return tuple(axes) or (Axis(1, False, 1, 1),)


def mean(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for mean.

    Errors  BuildError where an int32 sum could overflow
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    axes = join(x.shape, node.attrs["axes"])
    form = "".join("r" if axis.reduced else "k" for axis in axes)
    operands = whole_operands(node, graph)
    epilogue = _float(x, node) if y.dtype is FLOAT32 else _whole(node, graph)
    name = f"mean_{short(y.dtype)}_{form}{epilogue.key}"
    what = f"mean over {sum(axis.reduced for axis in axes)} joined axes"
    sums = f"{BLOCK} means at a time" if not axes[-1].reduced else "mean by mean"
    order = f"{sums}, from the first to the last; x in its own order"
    doc = told(f"{what}, {y.dtype.value}", order, epilogue.words)
    k = Builder(name, doc)
    start, finish = epilogue.bind(k)
    _Writer(k, axes, y.dtype, start, finish).write(operands.numbers[0])
    cost = 4 * x.size + 20 * y.size
    found = [offer(k, operands, cost=cost)]
    layer = _as_average(node, graph, axes)
    vectors = None if layer is None else _on_vectors(node, graph, target, layer)
    if vectors is not None:
        found.append(offer(vectors, operands, cost=x.size + 2 * y.size))
    if layer is not None and pool_dsp.suits(layer, target):
        pairs = pool_dsp.kernel(
            layer, epilogue.reduction, (f"mean_dsp{epilogue.key}", epilogue.words)
        )
        found.append(offer(pairs, operands, cost=2 * x.size + 20 * y.size))
    kept = [a for a in range(1, len(x.shape)) if a not in node.attrs["axes"]]
    if takes_rows(x, y) and all(x.shape[a] == 1 for a in kept if a < 3):
        found.append(_by_rows(name, x, y, epilogue, cost, target))
    return found


def _as_average(node: Node, graph: Graph, axes: Sequence[Axis]) -> Layer | None:
    """Means that lie side by side are an average over a window of one row."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    form = [axis.reduced for axis in axes[-2:]]
    if y.dtype is not DType.INT8 or form != [True, False] or x.name in graph.constants:
        return None
    count, channels = axes[-2].size, axes[-1].size
    images = y.size // channels
    window = Window(count * images, images, channels, channels, 1, count, count)
    layer = Layer(window, True, FloatClamp(None, None), None, None, True)
    return layer if len(axes) <= 3 else None


def _on_vectors(
    node: Node, graph: Graph, target: Target, layer: Layer
) -> Builder | None:
    families = (one for one in (pool_mve, pool_rvv) if one.suits(layer, target))
    family = next(families, None)
    if family is None:
        return None
    end = pool_mve.scaled_mean(mean_parameters(node, graph))
    return family.kernel(layer, end) if end is not None else None


@dataclass(frozen=True)
class _Epilogue:
    """The start value of a sum, and its epilogue."""

    key: str
    words: str
    start: float
    bind: Callable[[Builder], tuple[Expr, Callable[[Expr], Expr]]]

    def reduction(self, k: Builder, pointer: Expr) -> Reduction:
        """The same of an average; there are no tables at the pointer."""
        start, finish = self.bind(k)
        return Reduction(
            start=lambda _: start,
            add=lambda total, cell: total + cell,
            end=lambda total, _: finish(total),
        )


def _float(x: Tensor, node: Node) -> _Epilogue:
    count = math.prod(x.shape[a] for a in node.attrs["axes"])

    def bind(k: Builder) -> tuple[Expr, Callable[[Expr], Expr]]:
        divisor = cast(k.arg("count", count), FLOAT32)
        return const(0.0, FLOAT32), lambda total: total / divisor

    return _Epilogue("", "divided by the count", 0.0, bind)


def _whole(node: Node, graph: Graph) -> _Epilogue:
    made, y = mean_parameters(node, graph), graph.tensor(node.output)
    check_reach(
        graph.where(node), made.rounding, made.multiplier, made.shift,
        (y.dtype.high - y.dtype.low) * made.count,
    )  # fmt: skip
    limits = (made.low, made.high)
    rule = requant(
        made.rounding, made.multiplier, made.shift, limits, made.y_zero, y.dtype
    )
    first = -made.count * made.x_zero

    def bind(k: Builder) -> tuple[Expr, Callable[[Expr], Expr]]:
        start = k.arg("start", first)
        bound = scaler(k, rule, 0)
        return start, lambda total: bound.apply(total, 0)

    return _Epilogue(f"_{rule.key}", rule.words, first, bind)


def _by_rows(
    name: str, x: Tensor, y: Tensor, epilogue: _Epilogue, cost: int, target: Target
) -> Candidate:
    """The same, each row as it comes."""

    def finish(k: Builder, pointer: Expr) -> Callable[[Expr], Expr]:
        return epilogue.bind(k)[1]

    def add(total: Expr, value: Expr) -> Expr:
        return total + value

    start = epilogue.start
    made = accumulated(name, (x, y), start, add, finish, (), cost, target)
    return row_sums.on_vectors(made, x, target)


class _Writer:
    """The loops of one kernel: over kept axes, and inside over reduced ones."""

    def __init__(
        self,
        k: Builder,
        axes: Sequence[Axis],
        elem: DType,
        start: Expr,
        finish: Callable[[Expr], Expr],
    ) -> None:
        self.k, self.elem, self.start, self.finish = k, elem, start, finish
        self.total = FLOAT32 if elem.is_float else INT32
        sizes = [k.arg(f"size{i}", axis.size) for i, axis in enumerate(axes)]
        steps = [
            k.arg(f"x_step{i}", axis.x_step) if axis.x_step > 1 else const(1)
            for i, axis in enumerate(axes)
        ]
        pairs = list(zip(sizes, steps, strict=True))
        self.side_by_side = None if axes[-1].reduced else pairs[-1][0]
        outer = axes if self.side_by_side is None else axes[:-1]
        self.reduced = [p for p, a in zip(pairs, outer, strict=False) if a.reduced]
        self.kept = [
            (size, step, k.arg(f"y_step{i}", a.y_step) if a.y_step > 1 else const(1))
            for i, ((size, step), a) in enumerate(zip(pairs, outer, strict=False))
            if not a.reduced
        ]
        if self.side_by_side is not None:
            self.sums = k.array("sums", self.total, BLOCK)

    def write(self, source: int) -> None:
        y = self.k.row("y", 0, self.elem, writable=True)
        self._kept(self.kept, self.k.row("x", source, self.elem), y)

    def _kept(self, axes: Sequence[tuple[Expr, Expr, Expr]], x: Expr, y: Expr) -> None:
        k = self.k
        if not axes:
            if self.side_by_side is None:
                self._one(x, y)
            else:
                self._block(x, y, self.side_by_side)
            return
        size, x_step, y_step = axes[0]
        with k.loop("i", size) as i:
            x_next = k.let("x_part", offset(x, i * x_step))
            y_next = k.let("y_part", offset(y, i * y_step))
            self._kept(axes[1:], x_next, y_next)

    def _one(self, x: Expr, y: Expr) -> None:
        k = self.k
        total = k.let("total", self.start)

        def add(at: Expr) -> None:
            k.assign(total, total + cast(load(at), self.total))

        self._reduced(self.reduced, x, add)
        k.store(y, 0, self.finish(total))

    def _block(self, x: Expr, y: Expr, width: Expr) -> None:
        """Neighbouring means together: memory is read in its own order."""
        k, sums = self.k, self.sums
        with k.loop("first", width, 0, BLOCK) as first:
            count = k.let("in_block", minimum(width - first, BLOCK))
            with k.loop("j", count) as j:
                k.store(sums, j, self.start)

            def add(at: Expr) -> None:
                with k.loop("j", count) as j:
                    value = cast(load(at, j), self.total)
                    k.store(sums, j, load(sums, j) + value)

            self._reduced(self.reduced, k.let("from", offset(x, first)), add)
            with k.loop("j", count) as j:
                k.store(y, first + j, self.finish(load(sums, j)))

    def _reduced(
        self,
        axes: Sequence[tuple[Expr, Expr]],
        x: Expr,
        add: Callable[[Expr], None],
    ) -> None:
        if not axes:
            add(x)
            return
        size, step = axes[0]
        with self.k.loop("r", size) as r:
            at: Var = self.k.let("at", offset(x, r * step))
            self._reduced(axes[1:], at, add)
