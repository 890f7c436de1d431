"""int16 layers with known weights: their epilogues, and runs of taps whose sums are
proven to fit 32 bits even if the sums of all taps do not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT64, Expr, Var, const, i64, minimum
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.end16 import End16, end16
from pybuild.kernels.layers.weights import epilogue, fixed
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.targets.target import Target

# of the absolute weights under values down to -2^15, so that 32 bits are enough
MOST_WEIGHTS = (2**31 - 1) >> 15


def takes_int16(node: Node, graph: Graph) -> bool:
    """Return True for an int16 layer with known weights."""
    return graph.tensor(node.output).dtype is DType.INT16 and fixed(node, graph)


def sums16(
    node: Node, graph: Graph, kernels: Array, target: Target
) -> tuple[End16, Array, int]:
    """Return the epilogue of a layer, the bias of each output channel, and the zero
    point of the input.

    Shapes  kernels [O, taps]
    Errors  BuildError where a scaled sum could leave int32
    """
    finish, bias, x_zero = epilogue(node, graph, kernels)
    long = DType.of(bias) is DType.INT64
    mulhi = bool(target.features & {"mulhi", "dsp"})
    return end16(finish, len(kernels), long, mulhi), bias, x_zero


def turns_of_run(kernels: Array, lanes: int, unrolled: int) -> int:
    """Return the most iterations, of `unrolled` taps each, whose sum fits 32 bits in
    every channel: all of them, or equal parts except for the last.

    Shapes  kernels [O, taps], in the order in which they are summed: the first `lanes`,
            or zeros behind them
    """
    turns = lanes // unrolled
    kernels = kernels[:, :lanes]
    starts = np.arange(0, kernels.shape[1], unrolled)
    sizes = (np.abs(w, dtype=np.int16) for w in chunks(kernels, kernels.shape[1]))
    each = np.concatenate(
        [np.add.reduceat(w, starts, axis=1, dtype=np.int32) for w in sizes]
    )
    for runs in range(1, turns + 1):
        most = -(-turns // runs)
        parts = np.zeros((len(kernels), -(-turns // most) * most), np.int32)
        parts[:, : each.shape[1]] = each
        sums = parts.reshape(len(kernels), -1, most).sum(2, dtype=np.int64)
        if int(sums.max(initial=0)) <= MOST_WEIGHTS:
            return most
    raise AssertionError("a turn has few taps")


class LongSums:
    """Sums of 64 bits, to which the 32-bit sums of each run of taps are added.

    sums    32 bits: for each output channel, those of its pixels
    totals  the same in 64 bits
    """

    def __init__(self, k: Builder, sums: list[list[Var]]) -> None:
        self.k, self.sums = k, sums
        zero = const(0, INT64)
        self.totals = [[k.let("total", zero) for _ in accs] for accs in sums]

    def add_runs(
        self, runs: Expr, turns: Expr, most: Expr, add: Callable[[Expr], None]
    ) -> None:
        """Sum `turns` iterations by `add`, in runs of at most `most`."""
        k = self.k
        with k.loop("run", runs, rolled=True) as run:
            add(k.let("count", minimum(turns - run * most, most)))
            self.carry()

    def carry(self) -> None:
        """Add the sums to the totals and clear them."""
        for accs, longs in zip(self.sums, self.totals, strict=True):
            for acc, total in zip(accs, longs, strict=True):
                self.k.assign(total, total + i64(acc))
                self.k.assign(acc, 0)
