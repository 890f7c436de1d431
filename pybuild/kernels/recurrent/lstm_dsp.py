"""lstm of int8 on cores with DSP instructions: two products in one, of two gates.

A half of a word of weights holds two gates, 256 * a + b: one product adds to the sums
of both, a second of b alone tells them apart, as in dsp/conv.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const, load, offset, wide
from pybuild.kernels.base.intrin import (
    DOT2,
    EVEN_BYTES,
    MULHI_ADD_ROUND,
    ODD_BYTES,
    SATURATE8,
    SATURATE16,
)
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.recurrent.curves_dsp import LOGISTIC_WORDS, tanh_words
from pybuild.kernels.recurrent.lstm import Lstm
from pybuild.ops.recurrent import GATES, Pair, R, W, sizes

_TAPS = 4  # values of a word
_ORDER = (0, 2, 1, 3)
# of a word of weights, beside the sum of the lower gate
_MOST = 1 << 23


def fits(node: Node, graph: Graph) -> bool:
    """Whether a word of values is there of the input, and of the state, and sums of two
    gates fit a word."""
    _, _, width, units = sizes(node, graph)
    if min(width, units) < _TAPS:
        return False
    for gate in (0, 2):
        for first in (W, R):
            a, b = (constant(node, graph, first + gate + i) for i in (0, 1))
            words = 256 * a.astype(np.int32) + b
            if words.size and words.min() < -(1 << 15):
                return False
            if 128 * int(np.abs(a.astype(np.int64)).sum(1).max()) >= _MOST:
                return False
    return True


class DspLstm(Lstm):
    """The pieces of the kernel that differ from those of any core."""

    ending = "_dsp"
    per_mac, logistic, tanh = 1.2, LOGISTIC_WORDS, staticmethod(tanh_words)
    order = "two gates lie in each half of a word of weights, and are read forward"

    def weights(self, first: int, role: str) -> Var:
        """[units][turns][pairs of gates][bytes 0 and 2, 1 and 3]"""
        four = [gate.astype(np.int32) for gate in self.four(first)]
        pairs = [256 * four[g] + four[g + 1] for g in range(0, GATES, 2)]
        taps = np.stack([_in_turns(pair) for pair in pairs], 2)
        words = (taps[..., 0::2] & 0xFFFF) | (taps[..., 1::2] << 16)
        order = "units, four inputs a turn, two gates 256 * a + b in each half"
        return self.rows.table(role, words.astype(np.int32), order)

    def sums(self, first: int, source: Expr, unit: Expr) -> Sequence[Expr]:
        k, gates = self.k, self.gates[first]
        _, _, width, units = sizes(self.node, self.graph)
        inputs = width if first == W else units
        turns = -(-inputs // _TAPS)
        w = k.let("row", offset(gates.weights, unit * (turns * GATES)))
        x = k.let("from", source)
        sums = [k.let(f"sum{g}", 0) for g in range(GATES)]
        written = 2 if inputs % (4 * _TAPS) else 4  # words of values in a turn
        whole = inputs // (_TAPS * written)
        if whole:
            with k.loop("turn", k.arg("turns", whole), rolled=True):
                for at in range(written):
                    self._turn(sums, w, at, x, _TAPS * at)
                k.assign(w, offset(w, written * GATES))
                k.assign(x, offset(x, written * _TAPS))
        left = inputs - whole * _TAPS * written
        for at in range(-(-left // _TAPS)):
            self._turn(sums, w, at, x, min(_TAPS * at, left - _TAPS))
        assert gates.bias is not None
        made: list[Expr] = []
        for g in range(0, GATES, 2):
            both, low = sums[g : g + 2]
            made += [(both - low) >> 8, low]
        return [
            k.let("total", each + load(gates.bias, unit * GATES + g))
            for g, each in enumerate(made)
        ]

    def _turn(self, sums: list[Var], w: Var, at: int, x: Var, first: int) -> None:
        """Four values of x from `first` on with the weights of a turn."""
        k = self.k
        word = k.let("word", wide(x, first))
        values = [k.let("even", EVEN_BYTES(word)), k.let("odd", ODD_BYTES(word))]
        for pair in range(GATES // 2):
            both, low = sums[2 * pair : 2 * pair + 2]
            place = at * GATES + 2 * pair
            words = [k.let("pair", load(w, place + i)) for i in (0, 1)]
            for value, weight in zip(values, words, strict=True):
                k.assign(both, DOT2(value, weight, both))
                alone = k.let("alone", EVEN_BYTES(weight))
                k.assign(low, DOT2(value, alone, low))

    def held(self, value: Expr) -> Expr:
        return SATURATE16(value)

    def made_of(self, value: Expr) -> Expr:
        return SATURATE8(value)

    def scaler(self, name: str, pair: Pair, reach: int) -> Callable[[Expr], Expr]:
        k, (multiplier, shift) = self.k, pair
        left = max(shift, 0) + 1
        if reach << left >= 1 << 31:
            return super().scaler(name, pair, reach)
        by = k.arg(f"{name}_by", multiplier)
        up = k.arg(f"{name}_up", 1 << left)
        right = min(max(-shift, 0), 30)
        if not right:
            return lambda total: MULHI_ADD_ROUND(total * up, by, const(0))
        half = k.arg(f"{name}_half", 1 << (right - 1))
        down = k.arg(f"{name}_down", right)
        # of ties away from zero, less than half a step below it: the sum has its sign
        return lambda total: (
            MULHI_ADD_ROUND(total * up, by, half + (total >> 31)) >> down
        )


def _in_turns(pair: Array) -> Array:
    """[units][turns][4]: of the last turn, which begins earlier, zeros for what was in
    the one before; in the order in which bytes of a word are taken apart."""
    units, inputs = pair.shape
    turns = -(-inputs // _TAPS)
    made = np.zeros((units, turns * _TAPS), np.int32)
    made[:, :inputs] = pair
    rest = inputs % _TAPS
    if rest:
        made[:, -_TAPS:] = 0
        made[:, -rest:] = pair[:, -rest:]
    return made.reshape(units, turns, _TAPS)[..., _ORDER]
