"""Integer sums made real numbers: what stands behind layers of int8 weights and float32
inputs. Four channels in a vector where a core has them.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess, whole
from pybuild.kernels.base.floats import ADD_REALS4, ALL_REALS4, MUL_REALS4, OF_WORDS4
from pybuild.kernels.base.real_vectors import MVE, real_vectors
from pybuild.kernels.base.reals import LANES
from pybuild.kernels.base.vectors import MORE4, words_at
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import constant
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.hybrid import BIAS, FACTOR, SCALE, SUM, WEIGHTS, ZERO, totals
from pybuild.targets.target import Target


def scale_sums(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for scale_sums."""
    return [_Scaler(node, graph, real_vectors(target) is MVE).written()]


class _Scaler:
    """The pieces of the kernel being written."""

    def __init__(self, node: Node, graph: Graph, vectors: bool) -> None:
        self.node, self.graph = node, graph
        channels = graph.tensor(node.output).shape[-1]
        self.vectors = vectors and channels % LANES == 0
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
            "mve" * self.vectors,
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
        low, high = self.clamp.bind_ends(
            k, const(1 + len(self.computed) + len(self.tables))
        )
        self.tables += self.clamp.tables()
        operands, images, bands, batches, pixels = self._rows()
        y_at, s_at = k.let("to", to), k.let("from", sums)
        count = k.arg("channels", channels)
        many: Expr = k.arg("pixels", pixels) if pixels > 1 else const(1)
        with k.loop("batch", k.arg("batches", batches)) as batch:
            scale = k.let("scale", load(scales, batch))
            less = k.let("zero", load(zeros, batch)) if zeros is not None else None
            with k.loop("c", count, 0, LANES if self.vectors else 1) as c:
                factor = self._real(factors, c if self.each else 0, self.each)
                all_scale: Expr = ALL_REALS4(scale) if self.vectors else scale
                both = factor if self.first else self._times(all_scale, factor)
                both = k.let("factor", both)
                more = self._real(bias, c) if bias is not None else None
                total = self._total(sizes, c, less)
                x, put = k.let("x", offset(s_at, c)), k.let("put", offset(y_at, c))
                with k.loop("pixel", many):
                    real = self._times(self._sum(x, total, less), both)
                    real = self._times(real, all_scale) if self.first else real
                    value = k.let(
                        "value", real if more is None else self._plus(real, more)
                    )
                    k.store(put, 0, self._clamped(value, low, high))
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
            cost=(3 if self.vectors else 10 + 3 * self.has_zero) * y.size,
        )

    # ---- one channel, or four ------------------------------------------------------

    def _real(self, table: Var, at: Expr | int, each: bool = True) -> Expr:
        """Numbers of a table, or its only one."""
        if not self.vectors:
            return self.k.let("number", load(table, at))
        made = MVE.at(table, at) if each else ALL_REALS4(load(table, at))
        return self.k.let("numbers", made)

    def _times(self, a: Expr, b: Expr) -> Expr:
        return MUL_REALS4(a, b) if self.vectors else a * b

    def _plus(self, a: Expr, b: Expr) -> Expr:
        return ADD_REALS4(a, b) if self.vectors else a + b

    def _total(self, sizes: Var | None, c: Expr, less: Var | None) -> Expr | None:
        """What sums are too much, or of vectors what is to be taken `less` times."""
        if less is None or sizes is None:
            return None
        if self.vectors:
            return self.k.let("totals", words_at(sizes, c))
        return self.k.let("total", less * load(sizes, c))

    def _sum(self, x: Expr, total: Expr | None, less: Var | None) -> Expr:
        """A sum without the zero point, as a real number."""
        if not self.vectors:
            return cast(load(x) if total is None else load(x) - total, FLOAT32)
        whole = words_at(x)
        if total is not None and less is not None:
            whole = MORE4(whole, total, const(0) - less)
        return OF_WORDS4(whole)

    def _clamped(self, value: Expr, low: Var | None, high: Var | None) -> Expr:
        if self.vectors:
            return MVE.clamped(value, low, high)
        if low is not None:
            value = maximum(value, low)
        return value if high is None else minimum(value, high)

    def _rows(self) -> tuple[tuple[RowAccess, ...], int, int, int, int]:
        """Operands, images, bands, and of each call batches and pixels of them."""
        node, graph = self.node, self.graph
        y, batches = graph.tensor(node.output), graph.tensor(node.inputs[SCALE]).size
        names = [node.output, *(node.inputs[i] for i in self.computed)]
        tensors = [graph.tensor(n) for n in names]
        pixels = y.size // y.shape[-1]
        # a row of the scales would be that of the first image in each call
        if len(y.shape) != 4 or batches > 1 or y.shape[0] > 1:
            return tuple(map(whole, tensors)), 1, 1, batches, pixels // batches
        rows, row = y.shape[1], y.bytes // y.shape[1]
        wide = tuple(RowAccess(t.name, rows, row) for t in tensors[:2])
        return (*wide, *map(whole, tensors[2:])), 1, rows, 1, y.shape[2]
