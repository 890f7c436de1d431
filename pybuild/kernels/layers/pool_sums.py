"""Sums of four channels of int8 or int16 in registers, cell after cell: one by one, in
pairs of int16, or on a vector; and what divides them. Knows no window.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import INT32, Expr, Operand, Var, cast, i32, load, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.intrin import ADD_EVEN, ADD_ODD
from pybuild.kernels.base.vectors import ALL4, PLUS4, words_at
from pybuild.kernels.epilogues.affine_line import MOST as MOST_SUMS
from pybuild.kernels.epilogues.affine_line import line
from pybuild.kernels.layers.pool import Layer
from pybuild.kernels.layers.quotient import Quotient, quotient
from pybuild.ops.pool import averages
from pybuild.records import dataclass
from pybuild.targets.target import Target

MOST = 32767 // 128  # cells whose sum is an int16


@dataclass(frozen=True)
class Four:
    """One by one. `kind`: what distinguishes the code."""

    kind: str = "_fours"

    def totals(self, k: Builder) -> list[Var]:
        return [k.let(f"total{i}", 0) for i in range(4)]

    def add(self, k: Builder, totals: list[Var], x: Var) -> None:
        for i, total in enumerate(totals):
            k.assign(total, total + i32(load(x, i)))

    def lanes(self, k: Builder, totals: list[Var]) -> list[Expr]:
        return [*totals]


class _Pairs(Four):
    def totals(self, k: Builder) -> list[Var]:
        return [k.let("even", 0), k.let("odd", 0)]

    def add(self, k: Builder, totals: list[Var], x: Var) -> None:
        word = k.let("word", wide(x, 0))
        for total, more in zip(totals, (ADD_EVEN, ADD_ODD), strict=True):
            k.assign(total, more(total, word))

    def lanes(self, k: Builder, totals: list[Var]) -> list[Expr]:
        low = [cast(cast(pair, DType.INT16), INT32) for pair in totals]
        return [*low, *(pair >> 16 for pair in totals)]


class _Vector(Four):
    def totals(self, k: Builder) -> list[Var]:
        return [k.let("four", ALL4(0))]

    def add(self, k: Builder, totals: list[Var], x: Var) -> None:
        k.assign(totals[0], PLUS4(totals[0], words_at(x)))

    def lanes(self, k: Builder, totals: list[Var]) -> list[Expr]:
        lanes = k.array("lanes", INT32, 4)
        k.store(lanes, 0, totals[0])
        return [load(lanes, i) for i in range(4)]


@dataclass(frozen=True)
class Quotients:
    """y = (sum * factor + plus) >> shift for each number of cells, where an average is
    a sum divided by it; proven for every sum.
    """

    shift: int
    table: Packed
    words = (
        "divided by the number of cells, by a product of 32 bits for each number, "
        "proven equal for every sum"
    )

    def bind(self, k: Builder, pointer: Operand) -> Callable[[Expr], tuple[Var, Var]]:
        """Factor and plus of a number of cells."""
        table = k.row("quotients", pointer, INT32)

        def of_cells(cells: Expr) -> tuple[Var, Var]:
            factor = k.let("factor", load(table, cells * 2))
            return factor, k.let("plus", load(table, cells * 2 + 1))

        return of_cells


def quotients(layer: Layer) -> Quotients | None:
    """None: an average is not a plain division, or not by one shift for all."""
    made, most = layer.made, layer.window.kernel_h * layer.window.kernel_w
    if made is None or not made.divide or 255 * most >= MOST_SUMS:
        return None
    rows, shifts = [(0, 0)], set()
    for cells in range(1, most + 1):
        sums = np.arange(-128 * cells, 127 * cells + 1)
        wanted = averages(made, sums, np.full_like(sums, cells))
        found = line(sums, wanted, 1 / cells, (made.low, made.high))
        if found is None:
            return None
        rows.append((found.factor, found.offset))
        shifts.add(found.shift)
    if len(shifts) > 1:
        return None
    lie = "of each number of cells: factor, and what is added"
    table = Packed("quotients", np.asarray(rows, np.int32), order=lie)
    return Quotients(shifts.pop(), table)


@dataclass(frozen=True)
class HighQuotients:
    """The same of int16 on vectors, by quotient.py: its factor and its shift for each
    number of cells."""

    table: Packed
    words = Quotient.words

    def bind(self, k: Builder, pointer: Operand) -> Callable[[Expr], tuple[Var, Var]]:
        """Factor and minus the shift of a number of cells."""
        table = k.row("quotients", pointer, INT32)

        def of_cells(cells: Expr) -> tuple[Var, Var]:
            factor = k.let("factor", load(table, cells * 2))
            return factor, k.let("shift", load(table, cells * 2 + 1))

        return of_cells


def high_quotients(layer: Layer) -> HighQuotients | None:
    """None: an average is no plain division, or of too many cells."""
    made, most = layer.made, layer.window.kernel_h * layer.window.kernel_w
    if made is None or not made.divide:
        return None
    found = [quotient(cells, (0, 0)) for cells in range(1, most + 1)]
    rows = [(one.factor, -one.shift) for one in found if one is not None]
    if len(rows) < most:
        return None
    lie = "of each number of cells: factor, and minus the bits to the right"
    values = np.asarray([(0, 0), *rows], np.int32)
    return HighQuotients(Packed("quotients", values, order=lie))


def divided_by(layer: Layer, target: Target) -> Quotients | HighQuotients | None:
    """How a core divides sums of four channels; None: by division."""
    if layer.elem is DType.INT8:
        return quotients(layer)
    return high_quotients(layer) if "mve" in target.features else None


def suits(layer: Layer, target: Target) -> bool:
    """True if a layer is an average of four channels or more, by a loop over cells: on
    vectors mve/pool.py has those whose windows are alike."""
    by_cells = layer.average and layer.elem in (DType.INT8, DType.INT16)
    by_cells = by_cells and (layer.varies or not layer.unrolled)
    others = "mve" in target.features and not layer.varies
    return by_cells and layer.window.channels >= 4 and not others


def of(layer: Layer, target: Target) -> Four:
    """How a core sums four channels."""
    if "mve" in target.features:
        return _Vector("_mve")
    cells = layer.window.kernel_h * layer.window.kernel_w
    pairs = layer.elem is DType.INT8 and cells <= MOST
    if "dsp" in target.features and pairs:
        return _Pairs("_dsp")
    return Four()
