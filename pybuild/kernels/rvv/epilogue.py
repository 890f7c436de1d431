"""The epilogue of a layer for as many channels as there are lanes, inside a kernel
being written: the cheap form that is proven, or the rule itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT16, Expr, Intrin, Var, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.sums16 import sums16
from pybuild.kernels.layers.weights import fixed, known_int8
from pybuild.kernels.mve.epilogue import Epilogue, ended_sums
from pybuild.kernels.mve.exact import Exact, exact16
from pybuild.kernels.rvv.vectors import FEATURE, Vectors
from pybuild.kernels.wide.epilogue import columns
from pybuild.records import dataclass
from pybuild.targets.target import Target

_FACTOR = 256  # of a sum, before the offset of an Affine is added


@dataclass(frozen=True)
class Ended:
    """The sums of a layer that has kernels on vectors, and how they end.

    bias    what they begin with
    x_zero  what stands for a value of the input beside a row
    elem    of inputs and outputs
    """

    epilogue: Epilogue
    bias: Array
    x_zero: int
    elem: DType


def ended(node: Node, graph: Graph, target: Target, kernels: Array) -> Ended | None:
    """Of int8 and int16; None where the core has no vectors, weights are not known, or
    the layer ends in a way that needs 64 bits, or floats, which Zve32x has not.

    Shapes  kernels [O, taps]
    Errors  BuildError if some order of summing could overflow
    """
    if FEATURE not in target.features or not fixed(node, graph):
        return None
    if known_int8(node, graph):
        sums, epilogue = ended_sums(node, graph, kernels)
        if isinstance(epilogue, Exact) and epilogue.rule == "even":
            return None
        return Ended(epilogue, sums.bias, sums.made.x_zero, INT8)
    if graph.tensor(node.output).dtype is not INT16:
        return None
    end, bias, x_zero = sums16(node, graph, kernels, target)
    made = None if end.long else _of_int16(end)
    return None if made is None else Ended(made, bias, x_zero, INT16)


def _of_int16(end: End16) -> Exact | None:
    """The rule of an end of sums of 32 bits."""
    if end.form not in ("double", "precise"):
        return exact16(end)
    rows = end.rows * (1, -1, 1)
    if end.form == "double" and not rows[:, 2].any():
        rows = rows[:, :2]
    rest = end.low, end.high, end.zero
    return Exact(end.form, rows, rows.shape[1], *rest, "int16")


def table(epilogue: Epilogue, bias: Array, times: int = 1) -> Packed:
    """What sums begin with, and the numbers of their end: rows of all channels, so many
    times."""
    lie = f"rows of all output channels{f', {times} times' * (times > 1)}: "
    lie += f"what a sum begins with, {_row(epilogue)}"
    return Packed.later("epilogue", lie, _arranged, epilogue, bias, times)


def _arranged(epilogue: Epilogue, bias: Array, times: int) -> Ints:
    rows = [bias.astype(np.int64)[:, None], columns(epilogue)]
    table = np.tile(np.concatenate(rows, axis=1).T, (1, times))
    return np.ascontiguousarray(table).astype(np.int32)


def by_rule(epilogue: Epilogue) -> bool:
    """True if a sum ends by a rule, which takes registers."""
    return isinstance(epilogue, Exact)


def _row(epilogue: Epilogue) -> str:
    """The numbers of an end, for readers of the C."""
    if isinstance(epilogue, Affine):
        return "an offset, a factor"
    lift = ", the shift to the left before" if epilogue.lifted else ""
    lift = ", the factor's lower word" if epilogue.rule == "precise" else lift
    return f"a factor, minus the shift to the right{lift}"


class Finish:
    """The bound values of an epilogue inside a kernel being written.

    channels  of the layer: elements of a row of the table
    """

    def __init__(
        self, k: Builder, v: Vectors, epilogue: Epilogue, channels: Expr
    ) -> None:
        self.v, self.epilogue, self.channels = v, epilogue, channels
        self.elem = DType(epilogue.elem) if isinstance(epilogue, Exact) else INT8
        given = {"low": epilogue.low, "high": epilogue.high}
        if not epilogue.clamped:
            given = {}
        if isinstance(epilogue, Affine):
            given["shift"] = epilogue.shift
            given |= {"base": epilogue.base} if epilogue.base else {}
        elif self.elem is INT8 or epilogue.y_zero:
            given["y_zero"] = epilogue.y_zero
        self.values: Mapping[str, Expr] = {n: k.arg(n, g) for n, g in given.items()}

    def start(self, ends: Expr, n: Expr) -> Expr:
        """What the sums of some channels begin with; `ends`: their first column."""
        return self.v.WORDS(ends, n)

    def narrow(
        self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr
    ) -> list[Expr]:
        """The values of the sums of some pixels. Each number of the table is
        used for all of them before the next is loaded: registers hold one or two."""
        v, bound = self.v, self.values
        if isinstance(self.epilogue, Affine):
            self._scale(k, sums, ends, n)
            values: list[Expr] = [v.SHIFTED(x, bound["shift"], n) for x in sums]
        else:
            self._by_rule(k, sums, ends, n)
            values = [self._narrowed(total, n) for total in sums]
        if "low" in bound:
            low, high = bound["low"], bound["high"]
            held = v.HELD[self.elem]
            values = [held(value, low, high, n) for value in values]
        return values

    def _narrowed(self, total: Expr, n: Expr) -> Expr:
        """Of sums that are rounded."""
        if self.elem is INT16:
            if "y_zero" in self.values:
                total = self.v.PLUS(total, self.values["y_zero"], n)
            return self.v.SHORT(total, 0, n)
        return self.v.RAISED(total, self.values["y_zero"], n)

    def _number(self, k: Builder, ends: Expr, row: int, n: Expr) -> Var:
        """A row of the table."""
        at = offset(ends, self.channels * row)
        return k.let("number", self.v.WORDS(at, n))

    def _scale(self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr) -> None:
        v, offsets = self.v, self._number(k, ends, 1, n)
        for total in sums:
            k.assign(total, v.LINE(total, _FACTOR, offsets, n))
        factors = self._number(k, ends, 2, n)
        for total in sums:
            k.assign(total, v.HIGH(total, factors, n))
            if "base" in self.values:
                k.assign(total, v.PLUS(total, self.values["base"], n))

    def _by_rule(self, k: Builder, sums: Sequence[Var], ends: Expr, n: Expr) -> None:
        v, epilogue = self.v, self.epilogue
        assert not isinstance(epilogue, Affine)
        rules: Mapping[str, Intrin] = {
            "double": v.TWICE, "single": v.ONCE, "away": v.AWAY, "precise": v.PRECISE,
        }  # fmt: skip
        if epilogue.lifted:
            lift = self._number(k, ends, 3, n)
            for total in sums:
                k.assign(total, v.LIFT(total, lift, n))
        count = epilogue.given - epilogue.lifted
        given = [self._number(k, ends, row, n) for row in range(1, count + 1)]
        for total in sums:
            k.assign(total, rules[epilogue.rule](total, *given, n))


class OfPixels(Finish):
    """The same where lanes are pixels: the numbers of one channel, in every lane."""

    def start(self, ends: Expr, n: Expr) -> Expr:
        """What the sums of a channel begin with."""
        return self.v.ALL(load(ends), n)

    def _number(self, k: Builder, ends: Expr, row: int, n: Expr) -> Var:
        return k.let("number", self.v.ALL(load(ends, self.channels * row), n))
