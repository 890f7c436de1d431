"""The steps around the integer sums of layers with int8 weights and float32 inputs: a
tensor is made int8 by its own range, and sums are made real numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Bitcast,
    Expr,
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
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess, whole
from pybuild.kernels.base.intrin import SATURATE8
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.portable.convert import ROUND_AWAY
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.hybrid import (
    BIAS,
    FACTOR,
    NO_PADS,
    SCALE,
    SUM,
    WEIGHTS,
    ZERO,
    totals,
)
from pybuild.targets.target import Target

_BITS, _MINUS = 0x7FFFFFFF, -0x80000000  # of a float but its sign; of -0
_TURN = 4
_INFINITY = 0x7F800000
_PARTS = 256.0  # of a step, in which numbers are cut off before they are rounded


def _real(value: float) -> Expr:
    return const(value, FLOAT32)


def quantize_dynamic(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for quantize_dynamic."""
    return [_Quantizer(node, graph).written()]


class _Quantizer:
    """The pieces of the kernel being written.

    Source  bits of floats from 0 on are in their order: ranges are found by integers
    """

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        self.asymmetric = bool(node.attrs["asymmetric"])
        self.pads = node.attrs.get("pads", NO_PADS)
        kind = "asymmetric" if self.asymmetric else "symmetric"
        around = "_padded" * any(self.pads)
        x = graph.tensor(node.inputs[0])
        self.count = x.size // int(node.attrs["batches"])
        self.run = x.shape[2] * x.shape[3] if around else self.count
        rest = "_rest" * (self.count % _TURN > 0) + "_rest" * (self.run % _TURN > 0)
        formula = "scale = range / 127, y = round(x / scale)"
        if self.asymmetric:
            formula = "scale = range / 255, y = round(x / scale + zero)"
        doc = told(
            f"{formula}, float32 to int8, of each batch by its own range; ties away "
            f"from zero{', with the zero point around each image' * bool(around)}",
            "batch by batch, each twice: its range, its values",
        )
        self.k = k = Builder(f"quantize_dynamic_{kind}{around}{rest}", doc)
        self.y = k.row("y", 0, INT8, writable=True)
        self.scales = k.row("scales", 1, FLOAT32, writable=True)
        if self.asymmetric:
            self.zeros = k.row("zeros", 2, INT32, writable=True)
        self.x = k.row("x", len(node.outputs), FLOAT32)

    def written(self) -> Candidate:
        k, node, graph = self.k, self.node, self.graph
        x = graph.tensor(node.inputs[0])
        batches = int(node.attrs["batches"])
        count = k.arg("count", self.count)
        source, to = k.let("from", self.x), k.let("to", self.y)
        with k.loop("batch", k.arg("batches", batches)) as batch:
            inverse, zero = self._range(source, count, batch)
            self._values(source, to, count, (inverse, zero))
        cost = (14 if self.asymmetric else 12) * x.size + 100 * batches
        return Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=tuple(whole(graph.tensor(n)) for n in node.outputs),
            inputs=(whole(x),),
            cost=cost,
        )

    # ---- the range of a batch ------------------------------------------------------

    def _range(self, source: Var, count: Expr, batch: Expr) -> tuple[Var, Var | None]:
        """Stores scale and zero point; what numbers are multiplied with, 0 where they
        all become the zero point."""
        k = self.k
        if not self.asymmetric:
            reach = k.let("reach", 0)
            for at in self._turns(count, self.count):
                size = Bitcast(load(source, at), INT32) & _BITS
                k.assign(reach, maximum(reach, size))
            span = k.let("span", Bitcast(reach, FLOAT32))
            scale = k.let("scale", span / _real(127.0))
            inverse = k.let("inverse", _real(127.0) / _nonzero(span))
            self._guard(scale, inverse, equal(reach, 0))
            k.store(self.scales, batch, scale)
            return inverse, None
        # without its sign a number below 0 is the greater, the further it is from 0
        low, high = k.let("low_bits", 0), k.let("high_bits", 0)
        for at in self._turns(count, self.count):
            bits = k.let("bits", Bitcast(load(source, at), INT32))
            k.assign(low, maximum(low, bits ^ _MINUS))
            k.assign(high, maximum(high, bits))
        least = k.let("least", Bitcast(low ^ _MINUS, FLOAT32))
        most = k.let("most", Bitcast(high, FLOAT32))
        scale = k.let("scale", (most - least) / _real(255.0))
        inverse = k.let("inverse", _real(1.0) / _nonzero(scale))
        self._guard(scale, inverse, equal(least, most))
        zero = k.let("zero", 0)
        with k.when(inverse > 0.0):
            below = k.let("below", least / scale)
            above = k.let("above", most / scale)
            # least is at most 0, most at least 0
            less = _real(128.0) - below < _real(127.0) + above
            point = k.let(
                "point", select(less, _real(-128.0) - below, _real(127.0) - above)
            )
            held = minimum(maximum(point, _real(-128.0)), _real(127.0))
            k.assign(zero, ROUND_AWAY(held))
        k.store(self.scales, batch, scale)
        k.store(self.zeros, batch, zero)
        return inverse, zero

    def _guard(self, scale: Var, inverse: Var, empty: Expr) -> None:
        """A scale of 1 where all is 0; 0 as the inverse where a number has no steps."""
        k = self.k
        wild = (Bitcast(scale, INT32) & _BITS) >= _INFINITY
        k.assign(inverse, select(wild, _real(0.0), inverse))
        wild = (Bitcast(inverse, INT32) & _BITS) >= _INFINITY
        k.assign(inverse, select(wild, _real(0.0), inverse))
        with k.when(empty):
            k.assign(scale, _real(1.0))
            k.assign(inverse, _real(0.0))

    # ---- the values of a batch -----------------------------------------------------

    def _values(
        self, source: Var, to: Var, count: Expr, how: tuple[Var, Var | None]
    ) -> None:
        k, (inverse, zero) = self.k, how
        fill = cast(zero if zero is not None else const(0), INT8)
        with k.when(inverse > 0.0):
            if any(self.pads):
                self._image(source, to, fill, how)
            else:
                self._run(source, to, count, how)
        with k.otherwise():
            y = self.graph.tensor(self.node.output)
            self._fill(to, "all", y.size // int(self.node.attrs["batches"]), fill)
            k.assign(source, offset(source, count))

    def _image(
        self, source: Var, to: Var, fill: Expr, how: tuple[Var, Var | None]
    ) -> None:
        """Rows of an image, with the zero point around them."""
        k, (top, left, bottom, right) = self.k, self.pads
        _, height, width, depth = self.graph.tensor(self.node.inputs[0]).shape
        row = (width + left + right) * depth
        size = k.arg("row_size", self.run)
        self._fill(to, "above", top * row, fill)
        with k.loop("row", k.arg("rows", height)):
            self._fill(to, "left", left * depth, fill)
            self._run(source, to, size, how)
            self._fill(to, "right", right * depth, fill)
        self._fill(to, "under", bottom * row, fill)

    def _run(
        self, source: Var, to: Var, count: Expr, how: tuple[Var, Var | None]
    ) -> None:
        k = self.k
        for at in self._turns(count, self.run):
            k.store(to, at, self._value(load(source, at), how))
        k.assign(source, offset(source, count))
        k.assign(to, offset(to, count))

    def _turns(self, count: Expr, known: int) -> Iterator[Expr]:
        """Places of a batch, or a row: some in a turn, then what is left over."""
        k, rest = self.k, known % _TURN
        whole = k.let("whole", count - count % _TURN) if rest else count
        with k.loop("i", whole, 0, _TURN, rolled=True) as i:
            for step in range(_TURN):
                yield i + step
        if rest:
            with k.loop("i", count, whole) as i:
                yield i

    def _fill(self, to: Var, name: str, count: int, value: Expr) -> None:
        k, size = self.k, self.k.arg(f"bytes_{name}", count)
        with k.loop("i", size) as i:
            k.store(to, i, value)
        k.assign(to, offset(to, size))

    def _value(self, x: Expr, how: tuple[Var, Var | None]) -> Expr:
        """The nearest integer, ties away from zero: of n, cut off in parts of a step,
        (n + 128 - (n < 0)) / 256, rounded down."""
        k, (inverse, zero) = self.k, how
        steps = x * inverse
        if zero is not None:
            steps = cast(zero, FLOAT32) + steps
        parts = k.let("parts", i32(steps * _real(_PARTS)))
        q = (parts + (parts >> 31) + 128) >> 8
        return cast(SATURATE8(q) if zero is not None else q, INT8)


def _nonzero(x: Expr) -> Expr:
    return select(equal(x, _real(0.0)), _real(1.0), x)


def scale_sums(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for scale_sums."""
    return [_Scaler(node, graph).written()]


class _Scaler:
    """The pieces of the kernel being written."""

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        self.clamp = FloatClamp(*clamp_of(node))
        self.first = bool(node.attrs["sums_first"])
        self.factors = constant(node, graph, FACTOR)
        self.each = self.factors.size > 1
        self.has_bias, self.has_zero = self._has(BIAS), self._has(ZERO)
        self.computed = [SUM, SCALE] + [ZERO] * self.has_zero
        alone = "" if self._rows()[-1] > 1 else "alone"
        parts = (
            "scale_sums", "sums_first" * self.first, "channel" * self.each,
            "zero" * self.has_zero, "bias" * self.has_bias, self.clamp.key, alone,
        )  # fmt: skip
        factor = "(sum * factor) * scale" if self.first else "sum * (scale * factor)"
        less = "sum less zero * total of weights; " * self.has_zero
        doc = told(
            f"{less}y = {factor}{' + bias' * self.has_bias}, int32 to float32",
            "channel by channel, pixels forward", self.clamp.words,
        )  # fmt: skip
        self.k = Builder("_".join(p for p in parts if p), doc)
        self.tables: list[Packed] = []

    def _has(self, index: int) -> bool:
        return len(self.node.inputs) > index and bool(self.node.inputs[index])

    def _table(self, role: str, array: Array, order: str = EACH) -> Var:
        at = 1 + len(self.computed) + len(self.tables)
        self.tables.append(Packed(role, array, order=order))
        kind = INT32 if array.dtype == np.int32 else FLOAT32
        return self.k.row(role, at, kind)

    def written(self) -> Candidate:
        k, node, graph = self.k, self.node, self.graph
        y = graph.tensor(node.output)
        channels = y.shape[-1]
        to, sums = k.row("y", 0, FLOAT32, True), k.row("sums", 1, INT32)
        scales = k.row("scales", 2, FLOAT32)
        zeros = k.row("zeros", 3, INT32) if self.has_zero else None
        factors = self._table("factors", self.factors, EACH if self.each else "one")
        bias = None
        if self.has_bias:
            bias = self._table("bias", constant(node, graph, BIAS))
        sizes = None
        if self.has_zero:
            sizes = self._table("totals", totals(node, constant(node, graph, WEIGHTS)))
        bound = self.clamp.bind(k, const(1 + len(self.computed) + len(self.tables)))
        self.tables += self.clamp.tables()
        operands, images, bands, batches, pixels = self._rows()
        y_at, s_at = k.let("to", to), k.let("from", sums)
        count = k.arg("channels", channels)
        many: Expr = k.arg("pixels", pixels) if pixels > 1 else const(1)
        with k.loop("batch", k.arg("batches", batches)) as batch:
            scale = k.let("scale", load(scales, batch))
            less = k.let("zero", load(zeros, batch)) if zeros is not None else None
            with k.loop("c", count) as c:
                factor = load(factors, c if self.each else 0)
                factor = k.let("factor", factor if self.first else scale * factor)
                more = k.let("more", load(bias, c)) if bias is not None else None
                total: Expr | None = None
                if less is not None and sizes is not None:
                    total = k.let("total", less * load(sizes, c))
                x, put = k.let("x", offset(s_at, c)), k.let("put", offset(y_at, c))
                with k.loop("pixel", many):
                    value = load(x) if total is None else load(x) - total
                    real = cast(value, FLOAT32) * factor
                    real = real * scale if self.first else real
                    real = real if more is None else real + more
                    k.store(put, 0, bound.apply(k.let("value", real), c))
                    k.assign(put, offset(put, count))
                    k.assign(x, offset(x, count))
            k.assign(y_at, offset(y_at, many * count))
            k.assign(s_at, offset(s_at, many * count))
        return Candidate(
            func=k.finish(in_place=True),
            args=tuple(k.values),
            outputs=operands[:1],
            inputs=operands[1:],
            constants=tuple(self.tables),
            images=images,
            bands=bands,
            in_place=(0,),
            cost=(10 + 3 * self.has_zero) * y.size,
        )

    def _rows(self) -> tuple[tuple[RowAccess, ...], int, int, int, int]:
        """Operands, images, bands, and of each call batches and pixels of them."""
        node, graph = self.node, self.graph
        y, batches = graph.tensor(node.output), graph.tensor(node.inputs[SCALE]).size
        names = [node.output, *(node.inputs[i] for i in self.computed)]
        tensors = [graph.tensor(n) for n in names]
        pixels = y.size // y.shape[-1]
        # a row of the scales would be that of the first image in each call
        if len(y.shape) != 4 or batches > 1:
            return tuple(map(whole, tensors)), 1, 1, batches, pixels // batches
        rows, row = y.shape[1], y.bytes // y.shape[1]
        wide = tuple(RowAccess(t.name, rows, row) for t in tensors[:2])
        return (*wide, *map(whole, tensors[2:])), 1, rows, 1, y.shape[2]
