"""A tensor made int8 by its own range: what stands before the integer sums of layers of
int8 weights and float32 inputs. Four elements in a vector where a core has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Bitcast,
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
from pybuild.kernels.base.candidate import Candidate, whole
from pybuild.kernels.base.floats import (
    ABOVE4,
    ADD_REALS4,
    ALL_REALS4,
    BELOW4,
    GREATEST4,
    MUL_REALS4,
    REACH4,
)
from pybuild.kernels.base.intrin import SATURATE8
from pybuild.kernels.base.real_vectors import MVE, real_vectors
from pybuild.kernels.base.reals import QUOTIENT4, STEPS_AWAY4, STEPS_EVEN4
from pybuild.kernels.base.vectors import ALL4
from pybuild.kernels.portable.convert import ROUND_AWAY, ROUND_EVEN
from pybuild.ops.hybrid import NO_PADS, has_zero, least_scale
from pybuild.targets.target import Target

_Bits = Callable[[Expr], Expr]
_BITS, _MINUS = 0x7FFFFFFF, -0x80000000  # of a float but its sign; of -0
_TURN = 4
_INFINITY = 0x7F800000
_FORMULAS = {
    "symmetric": "scale = range / 127, y = round(x / scale), ties away from zero",
    "asymmetric": "scale = range / 255, y = round(x / scale + zero), ties away from "
    "zero",
    "onnx": "scale = range / 255, y = round(x / scale) + zero, ties to even",
    "torch": "scale = max(range / 255, least), y = round(x * (1 / scale)) + zero, ties "
    "to even",
}
_TO_EVEN = ("onnx", "torch")
_PARTS = 256.0  # of a step, in which numbers are cut off before they are rounded


def _real(value: float) -> Expr:
    return const(value, FLOAT32)


def quantize_dynamic(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for quantize_dynamic."""
    return [_Quantizer(node, graph, real_vectors(target) is MVE).written()]


class _Quantizer:
    """The pieces of the kernel being written.

    Source  bits of floats from 0 on are in their order: ranges are found by integers
    """

    def __init__(self, node: Node, graph: Graph, vectors: bool) -> None:
        self.node, self.graph, self.vectors = node, graph, vectors
        self.rule = str(node.attrs["rule"])
        self.pads = node.attrs.get("pads", NO_PADS)
        around = "_padded" * any(self.pads)
        x = graph.tensor(node.inputs[0])
        self.count = x.size // int(node.attrs["batches"])
        self.run = x.shape[2] * x.shape[3] if around else self.count
        few = min(self.count, self.run) < _TURN
        around += ("_mve" + "_few" * few) * self.vectors
        rest = "_rest" * (self.count % _TURN > 0) + "_rest" * (self.run % _TURN > 0)
        doc = told(
            f"{_FORMULAS[self.rule]}, float32 to int8, each batch by its own range"
            f"{', with the zero point around each image' * any(self.pads)}",
            "batch by batch, each twice: its range, its values",
        )
        self.k = k = Builder(f"quantize_dynamic_{self.rule}{around}{rest}", doc)
        self.y = k.row("y", 0, INT8, writable=True)
        self.scales = k.row("scales", 1, FLOAT32, writable=True)
        if has_zero(node):
            self.zeros = k.row("zeros", 2, INT32, writable=True)
        self.x = k.row("x", len(node.outputs), FLOAT32)

    def written(self) -> Candidate:
        k, node, graph = self.k, self.node, self.graph
        x = graph.tensor(node.inputs[0])
        batches = int(node.attrs["batches"])
        count = k.arg("count", self.count)
        source, to = k.let("from", self.x), k.let("to", self.y)
        with k.loop("batch", k.arg("batches", batches)) as batch:
            step, zero = self._range(source, count, batch)
            self._values(source, to, count, (step, zero))
        each = 4 if self.vectors else 14 if has_zero(node) else 12
        cost = each * x.size + 100 * batches
        return Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=tuple(whole(graph.tensor(n)) for n in node.outputs),
            inputs=(whole(x),),
            cost=cost,
        )

    # ---- the range of a batch ------------------------------------------------------

    def _range(self, source: Var, count: Expr, batch: Expr) -> tuple[Var, Var | None]:
        """Stores scale and zero point; what numbers are multiplied with, or by "onnx"
        divided by, 0 where they all become the zero point."""
        k = self.k
        if self.rule == "symmetric":
            (reach,) = self._most(source, count, ((_size, REACH4, "reach"),))
            span = k.let("span", Bitcast(reach, FLOAT32))
            scale = k.let("scale", span / _real(127.0))
            inverse = k.let("inverse", _real(127.0) / _nonzero(span))
            self._guard(scale, inverse, equal(reach, 0))
            k.store(self.scales, batch, scale)
            return inverse, None
        # without its sign a number below 0 is the greater, the further it is from 0
        both = (_below, BELOW4, "low_bits"), (_above, ABOVE4, "high_bits")
        low, high = self._most(source, count, both)
        least = k.let("least", Bitcast(low ^ _MINUS, FLOAT32))
        most = k.let("most", Bitcast(high, FLOAT32))
        scale = k.let("scale", (most - least) / _real(255.0))
        if self.rule == "torch":
            floor = Bitcast(k.arg("least_scale", self._least_scale()), FLOAT32)
            k.assign(scale, select(floor > scale, floor, scale))  # no number stays none
            step, zero = self._even_point(scale, least, batch)
            by = select(step > 0.0, _real(1.0) / _nonzero(step), _real(0.0))
            return k.let("inverse", by), zero
        if self.rule == "onnx":
            k.assign(scale, select(equal(least, most), _real(1.0), scale))
            return self._even_point(scale, least, batch)
        inverse = k.let("inverse", _real(1.0) / _nonzero(scale))
        k.assign(inverse, select(equal(scale, _real(0.0)), _real(0.0), inverse))
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

    def _most(
        self, source: Var, count: Expr, what: tuple[tuple[_Bits, Intrin, str], ...]
    ) -> list[Var]:
        """The greatest bits of all elements, from 0 on: of each an element's function,
        what does so of four, a name."""
        k = self.k
        found = [k.let(name, 0) for _, _, name in what]
        if self.vectors and self.count >= _TURN:
            best = [k.let(f"{name}4", ALL4(0)) for _, _, name in what]
            with k.loop("i", self._whole(count, self.count), 0, _TURN) as i:
                value = k.let("value", MVE.at(source, i))
                for most, (_, four, _) in zip(best, what, strict=True):
                    k.assign(most, four(most, value))
            for one, most in zip(found, best, strict=True):
                k.assign(one, GREATEST4(one, most))
        for at in self._turns(count, self.count):
            bits = k.let("bits", Bitcast(load(source, at), INT32))
            for one, (single, _, _) in zip(found, what, strict=True):
                k.assign(one, maximum(one, single(bits)))
        return found

    def _least_scale(self) -> int:
        """The bits of the least scale."""
        return int(least_scale(self.node).view(np.int32))

    def _even_point(self, scale: Var, least: Var, batch: Expr) -> tuple[Var, Var]:
        """The zero point by ties to even, and the scale to divide by."""
        k = self.k
        wild = (Bitcast(scale, INT32) & _BITS) >= _INFINITY
        step = k.let("step", select(wild, _real(0.0), _nonzero(scale)))
        zero = k.let("zero", -128)
        with k.when(step > 0.0):
            point = k.let("point", _real(0.0) - least / step)
            k.assign(zero, ROUND_EVEN(minimum(point, _real(255.0))) - 128)
        k.store(self.scales, batch, scale)
        k.store(self.zeros, batch, zero)
        return step, zero

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
        k, (step, zero) = self.k, how
        fill = cast(zero if zero is not None else const(0), INT8)
        with k.when(step > 0.0):
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
        if self.vectors and self.run >= _TURN:
            with k.loop("i", self._whole(count, self.run), 0, _TURN) as i:
                k.store(to, i, self._four(MVE.at(source, i), how))
        for at in self._turns(count, self.run):
            k.store(to, at, self._value(load(source, at), how))
        k.assign(source, offset(source, count))
        k.assign(to, offset(to, count))

    def _turns(self, count: Expr, known: int) -> Iterator[Expr]:
        """Places of a batch, or a row: some in a turn, unless vectors do those; then
        what is left over."""
        k, rest = self.k, known % _TURN
        whole = self._whole(count, known)
        if not self.vectors:
            with k.loop("i", whole, 0, _TURN, rolled=True) as i:
                for step in range(_TURN):
                    yield i + step
        if rest:
            with k.loop("i", count, whole) as i:
                yield i

    def _whole(self, count: Expr, known: int) -> Expr:
        """Elements that are done some in a turn."""
        if not known % _TURN:
            return count
        return self.k.let("whole", count - count % _TURN)

    def _fill(self, to: Var, name: str, count: int, value: Expr) -> None:
        k, size = self.k, self.k.arg(f"bytes_{name}", count)
        with k.loop("i", size) as i:
            k.store(to, i, value)
        k.assign(to, offset(to, size))

    def _value(self, x: Expr, how: tuple[Var, Var | None]) -> Expr:
        """The nearest integer; ties to even by "onnx" and "torch", else away from zero:
        of n, cut off in parts of a step, (n + 128 - (n < 0)) / 256, rounded down."""
        k, (step, zero) = self.k, how
        if self.rule in _TO_EVEN and zero is not None:
            steps = x / step if self.rule == "onnx" else x * step
            return cast(SATURATE8(ROUND_EVEN(steps) + zero), INT8)
        steps = x * step
        if zero is not None:
            steps = cast(zero, FLOAT32) + steps
        parts = k.let("parts", i32(steps * _real(_PARTS)))
        q = (parts + (parts >> 31) + 128) >> 8
        return cast(SATURATE8(q) if zero is not None else q, INT8)

    def _four(self, x: Expr, how: tuple[Var, Var | None]) -> Expr:
        """The same of four."""
        step, zero = how
        low, high = const(-128), const(127)
        if self.rule == "onnx" and zero is not None:
            return STEPS_EVEN4(QUOTIENT4(x, step), low - zero, high - zero, zero)
        steps: Expr = MUL_REALS4(x, ALL_REALS4(step))
        if self.rule == "torch" and zero is not None:
            return STEPS_EVEN4(steps, low - zero, high - zero, zero)
        if zero is not None:
            steps = ADD_REALS4(ALL_REALS4(cast(zero, FLOAT32)), steps)
        return STEPS_AWAY4(steps, low, high, const(0))


def _size(bits: Expr) -> Expr:
    return bits & _BITS


def _below(bits: Expr) -> Expr:
    return bits ^ _MINUS


def _above(bits: Expr) -> Expr:
    return bits


def _nonzero(x: Expr) -> Expr:
    return select(equal(x, _real(0.0)), _real(1.0), x)
