"""Loops over elements on vectors of any length, inside a kernel being written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.ir.loop import Expr, minimum
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.rvv.vectors import Vectors


class Steps:
    """Passes over `count` elements, so many at a time as the machine has lanes.

    most  at a time; None: as many as there are
    """

    def __init__(
        self, k: Builder, v: Vectors, count: Expr, most: Expr | None = None
    ) -> None:
        self.k, self.count = k, count
        self.lanes = k.let("lanes", v.LANES(count if most is None else most))
        self.turns = k.let("turns", (count + self.lanes - 1) / self.lanes)

    @contextmanager
    def each(self, name: str = "turn") -> Iterator[tuple[Expr, Expr]]:
        """A loop: the first element of each turn, and how many it has."""
        k = self.k
        with k.loop(name, self.turns, rolled=True) as turn:
            at = k.let("at", turn * self.lanes)
            yield at, k.let("n", minimum(self.count - at, self.lanes))
