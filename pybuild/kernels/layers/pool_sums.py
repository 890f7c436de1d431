"""Sums of four channels of int8 in registers, cell after cell: one by one, in pairs of
int16, or on a vector. Knows no window.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.dtype import DType
from pybuild.ir.loop import INT32, Expr, Var, cast, i32, load, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import ADD_EVEN, ADD_ODD
from pybuild.kernels.base.vectors import ALL4, PLUS4, words_at
from pybuild.kernels.layers.pool import Layer
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


def suits(layer: Layer, target: Target) -> bool:
    """Whether a layer is an average of four channels or more, by a loop over cells:
    on vectors mve/pool.py has those whose windows are alike."""
    by_cells = layer.average and layer.elem is DType.INT8 and not layer.unrolled
    others = "mve" in target.features and not layer.varies
    return by_cells and layer.window.channels >= 4 and not others


def of(layer: Layer, target: Target) -> Four:
    """How a core sums four channels."""
    if "mve" in target.features:
        return _Vector("_mve")
    cells = layer.window.kernel_h * layer.window.kernel_w
    if "dsp" in target.features and cells <= MOST:
        return _Pairs("_dsp")
    return Four()
