"""The epilogue of a layer for four pixels of one channel: its numbers are read one by
one from the table that epilogue.py's and exact.py's kernels read as vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.loop import Const, Expr, Var, load
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_packs import (
    MORE8,
    ONCE_ALL4,
    PACK8,
    PACK16,
    SCALE_ALL4,
    SCALE_KEPT4,
    TWICE_ALL4,
    TWICE_UP_ALL4,
    held_bytes,
    shifted_halves,
)
from pybuild.kernels.base.vector_rounds import AWAY4, FIVE_BELOW, LIFT4, SCALED4, TWICE4
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    ALL16,
    MAX16,
    MIN16,
    MULHI4,
)
from pybuild.kernels.mve.epilogue import Epilogue, size_of
from pybuild.kernels.mve.exact import FIVE, Exact


def pixel_key(epilogue: Epilogue) -> str:
    """What distinguishes the code of two layers' ends."""
    parts = [epilogue.key]
    parts.append("held" if epilogue.clamped else "")
    if isinstance(epilogue, Exact) and epilogue.rule == "double":
        parts.append("up" if _is_above(epilogue) else "")
        parts.append("" if epilogue.shifts else "unshifted")
    return "_".join(part for part in parts if part)


def _is_above(epilogue: Exact) -> bool:
    """True if values below zero are clamped to zero, so that their rounding does not
    matter."""
    return epilogue.low >= epilogue.y_zero


class PixelFinish:
    """The bound values of an Affine or an Exact inside a kernel being written.

    turned  the table is one of vectors, of four channels; else channel by channel
    kept    there is a register for a vector that does not change
    """

    def __init__(
        self, k: Builder, epilogue: Epilogue, turned: bool, kept: bool = True
    ) -> None:
        self.epilogue, self.bound = epilogue, dict[str, Expr]()
        self.turned, self.kept = turned, kept
        if isinstance(epilogue, Exact):
            self.bound["zero"] = k.arg("zero", epilogue.y_zero)
        elif epilogue.base:
            self.bound["base"] = k.arg("base", epilogue.base)
        if epilogue.clamped:
            self.bound["least"] = k.arg("least", epilogue.low)
            self.bound["highest"] = k.arg("highest", epilogue.high)

    @property
    def size(self) -> int:
        """Words of the table for four channels."""
        return size_of(self.epilogue)

    @property
    def values(self) -> dict[str, Expr]:
        """The arguments of a part of the kernel."""
        return {n: v for n, v in self.bound.items() if not isinstance(v, Const)}

    def inside(self, params: Mapping[str, Var]) -> PixelFinish:
        """The same in a part that was given `values`."""
        inner = PixelFinish.__new__(PixelFinish)
        inner.epilogue = self.epilogue
        inner.turned, inner.kept = self.turned, self.kept
        inner.bound = {n: params.get(n, v) for n, v in self.bound.items()}
        return inner

    def numbers(self, ends: Expr, channel: int) -> list[Expr]:
        """The epilogue numbers of one of four channels."""
        across, along = (1, 4) if self.turned else (self.size // 4, 1)
        return [load(ends, across * channel + along * i) for i in range(self.size // 4)]

    def one(self, k: Builder, sums: Expr, numbers: Sequence[Expr]) -> Expr:
        """Four sums of a channel scaled by its `numbers`, not yet shifted by `halves`
        or clamped."""
        end = self.epilogue
        if not isinstance(end, Exact):
            scale = SCALE_KEPT4 if self.kept else SCALE_ALL4
            value: Expr = scale(sums, numbers[0])
            value = MULHI4(value, ALL4(numbers[1]))
            return ADD4(value, self.bound["base"]) if end.base else value
        if end.joined:
            word = numbers[0]
            if not isinstance(word, Var):
                word = k.let("bias_and_shift", word)
            total: Expr = ADD4(sums, word >> end.joined)
            if end.joined == FIVE:
                word = word | FIVE_BELOW
            return self._rule(total, numbers[1], word)
        total = ADD4(sums, numbers[0])
        if end.rule == "even":
            return SCALED4(total, ALL4(numbers[1]))
        if end.lifted:
            total = LIFT4(total, ALL4(numbers[3]))
        return self._rule(total, numbers[1], numbers[2])

    def _rule(self, total: Expr, factor: Expr, shift: Expr) -> Expr:
        end = self.epilogue
        assert isinstance(end, Exact)
        if end.rule == "single":
            return ONCE_ALL4(total, factor, shift)
        if end.rule == "double" and _is_above(end):
            return TWICE_UP_ALL4(total, factor, shift)
        if end.rule == "double" and end.shifts:
            return TWICE_ALL4(total, factor, shift)
        rule = TWICE4 if end.rule == "double" else AWAY4
        return rule(total, ALL4(factor), ALL4(shift))

    def halves(self, one: Expr, other: Expr) -> Expr:
        """Two channels, in turns."""
        if isinstance(self.epilogue, Exact):
            return MORE8(PACK8(one, other), self.bound["zero"])
        return shifted_halves(one, other, self.epilogue.shift)

    def low_bytes(self, halves: Expr) -> Expr:
        """What `halves` makes of two fours of pixels, held: bytes, in halves."""
        return held_bytes(halves, self._limits)

    def bytes(self, one: Expr, other: Expr) -> Expr:
        """Two of `halves`, in turns, held within the layer's limits."""
        packed = PACK16(one, other)
        if self._limits is None:
            return packed
        least, highest = self._limits
        return MIN16(MAX16(packed, ALL16(least)), ALL16(highest))

    @property
    def _limits(self) -> tuple[Expr, Expr] | None:
        """None: they are int8's own."""
        if not self.epilogue.clamped:
            return None
        return self.bound["least"], self.bound["highest"]
