"""The epilogue of a layer for four channels at once, inside a kernel being written: the
cheap form that is proven, or the rule itself (exact.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Bitcast, Const, Expr, Var, cast, const, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.vector_packs import (
    even_halves,
    held_bytes,
    shifted_halves,
)
from pybuild.kernels.base.vector_rounds import LANE
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    LANES,
    MULHI4,
    NARROW4,
    SCALE4,
    WORDS,
    words_at,
)
from pybuild.kernels.epilogues.affine import Affine, affine
from pybuild.kernels.epilogues.by_channel import ScalarFinish, columns
from pybuild.kernels.epilogues.end16 import Bound16
from pybuild.kernels.epilogues.staircase import REACH
from pybuild.kernels.layers.known_sums import KnownSums, known_sums
from pybuild.kernels.mve.exact import Exact, ExactFinish, exact

Epilogue = Affine | Exact


def ended_sums(node: Node, graph: Graph, kernels: Array) -> tuple[KnownSums, Epilogue]:
    """The sums of an int8 layer, and its epilogue.

    Shapes  kernels [O, taps]
    Errors  BuildError if some order of summing could overflow int32
    """
    sums = known_sums(node, graph, kernels)
    if max(-int(sums.low.min()), int(sums.high.max())) <= REACH:
        found = affine(sums.made, sums.low, sums.high)
        # with an offset of its own below 0 it is no cheaper than the rule
        if found is not None and found.below is None:
            return sums, found
    return sums, exact(sums.made, sums.low, sums.high).with_bias(sums.bias)


def table(epilogue: Epilogue, bias: Array, order: Array, turned: bool = True) -> Packed:
    """The epilogue numbers of each four output channels, in reading order; if not
    turned, those of each single channel."""
    if not turned:
        return _by_channel(epilogue, bias, order)
    if isinstance(epilogue, Exact):
        return epilogue.table(bias, order)
    rows = epilogue.columns(bias)[order]
    fours = rows.reshape(-1, 4, rows.shape[1]).transpose(0, 2, 1)
    lie = f"of each four output channels, four words of each: {epilogue.row}"
    return Packed("epilogue", fours.astype(np.int32), order=lie)


def _by_channel(epilogue: Epilogue, bias: Array, order: Array) -> Packed:
    rows = epilogue.columns(bias)
    lie = f"of each output channel: {epilogue.row}"
    return Packed("epilogue", rows[order].astype(np.int32), order=lie)


def size_of(epilogue: Epilogue) -> int:
    """The number of table words for each four channels."""
    if isinstance(epilogue, Exact):
        return epilogue.size
    return 8 if epilogue.joint is None else 4


def numbers_of(epilogue: Epilogue, ends: Expr) -> list[Expr]:
    """The epilogue numbers of four channels: the vectors of the table at `ends`."""
    return [words_at(ends, 4 * i) for i in range(size_of(epilogue) // 4)]


def finish_of(k: Builder, epilogue: Epilogue) -> VectorFinish | ExactFinish:
    if isinstance(epilogue, Exact):
        return ExactFinish(k, epilogue)
    return VectorFinish(k, epilogue)


class VectorFinish:
    """The bound values of an Affine; what is the same in most layers is constant."""

    def __init__(self, k: Builder, epilogue: Affine) -> None:
        self.epilogue = epilogue
        self.base: Expr = const(0)
        if epilogue.base:
            self.base = k.arg("base", epilogue.base)
        if epilogue.joint is not None:
            self.factor: Expr = k.arg("factor", epilogue.joint)
        self.low: Expr = const(epilogue.low)
        self.high: Expr = const(epilogue.high)
        if epilogue.clamped:
            self.low = k.arg("low", epilogue.low)
            self.high = k.arg("high", epilogue.high)

    @property
    def values(self) -> dict[str, Expr]:
        """The arguments of a part of the kernel."""
        known = {"base": self.base, "low": self.low, "high": self.high}
        if self.epilogue.joint is not None:
            known["factor"] = self.factor
        return {n: v for n, v in known.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> VectorFinish:
        """The same in a part that was given `values`."""
        inner = VectorFinish.__new__(VectorFinish)
        inner.epilogue = self.epilogue
        inner.base = params.get("base", self.base)
        if self.epilogue.joint is not None:
            inner.factor = params.get("factor", self.factor)
        inner.low = params.get("low", self.low)
        inner.high = params.get("high", self.high)
        return inner

    def scaled(self, sums: Expr, numbers: Sequence[Expr]) -> Expr:
        """Four sums scaled, not yet shifted or clamped; `numbers`: the table's vectors
        of these channels."""
        value = SCALE4(sums, numbers[0])
        one = self.epilogue.joint is not None
        factor = ALL4(self.factor) if one else numbers[1]
        value = MULHI4(value, factor)
        return ADD4(value, self.base) if self.epilogue.base else value

    def narrow(self, sums: Expr, numbers: Sequence[Expr]) -> Expr:
        """The values of four sums."""
        return self.held(self.scaled(sums, numbers))

    def held(self, value: Expr) -> Expr:
        """The values of four that are scaled."""
        return NARROW4(value, self.epilogue.shift, self.low, self.high)

    def alone(self, one: Var) -> Expr:
        """The same, whose low bytes are to be stored."""
        halves = even_halves(one, self.epilogue.shift)
        return Bitcast(self._low_bytes(halves), WORDS)

    def paired(self, one: Var, other: Var) -> Expr:
        """The values of two fours, in turns: bytes, in halves."""
        return self._low_bytes(shifted_halves(one, other, self.epilogue.shift))

    def _low_bytes(self, halves: Expr) -> Expr:
        limits = (self.low, self.high) if self.epilogue.clamped else None
        return held_bytes(halves, limits)


class Ending:
    """The end of a block of output channels, at most four, of any number of pixels."""

    def __init__(
        self,
        k: Builder,
        finish: ScalarFinish | VectorFinish | ExactFinish | Bound16,
        ends: Expr,
        elem: DType,
    ) -> None:
        self.k, self.finish, self.ends, self.elem = k, finish, ends, elem
        self.numbers: list[Expr] = []
        if isinstance(finish, VectorFinish | ExactFinish):
            self.numbers = numbers_of(finish.epilogue, ends)
        if isinstance(finish, ExactFinish):
            # an Affine's first is summed to: loaded again, it is not a copy
            self.numbers = [k.let("number", one) for one in self.numbers]

    def store(
        self, pixels: Sequence[list[Var] | Var], y: list[Expr], places: Var | None
    ) -> None:
        """Stores the values of some pixels, each at its `y`; places: of two pixels,
        from where the first lies; None: each is stored alone."""
        if places is None:
            for sums, to in zip(pixels, y, strict=True):
                self._store_one(sums, to)
            return
        k, finish = self.k, self.finish
        assert isinstance(finish, VectorFinish | ExactFinish)
        scaled = [k.let("scaled", self._scaled(sums)) for sums in pixels]
        for p in range(0, len(scaled) - 1, 2):
            k.store(y[p], places, finish.paired(*scaled[p : p + 2]))
        if len(scaled) % 2:
            k.store(y[-1], 0, finish.alone(scaled[-1]))

    def _scaled(self, sums: list[Var] | Var) -> Expr:
        finish = self.finish
        assert isinstance(finish, VectorFinish | ExactFinish)
        four: Expr
        if isinstance(sums, Var):
            four = sums
        else:
            four = LANES(*(sums + sums[-1:] * (4 - len(sums))))
        return finish.scaled(four, self.numbers)

    def _store_one(self, sums: list[Var] | Var, y: Expr) -> None:
        k, finish, ends = self.k, self.finish, self.ends
        if isinstance(finish, Bound16):
            assert isinstance(sums, list)
            for c, total in enumerate(sums):
                at = finish.epilogue.size * c
                row = finish.row(k, ends, at)
                finish.store(k, [(total, y, c)], row, offset(ends, at))
            return
        if isinstance(finish, ScalarFinish):
            assert isinstance(sums, list)
            size = columns(finish.epilogue)
            for c, total in enumerate(sums):
                row = finish.row(k, ends, size * c)
                finish.store(k, [(total, y, c)], row, offset(ends, size * c))
            return
        value = finish.held(self._scaled(sums))
        count = 4 if isinstance(sums, Var) else len(sums)
        if count == 4:
            k.store(y, 0, value)
            return
        made = k.let("made", value)
        for c, lane in enumerate(LANE[:count]):
            k.store(y, c, cast(lane(made), self.elem))
