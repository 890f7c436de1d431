"""Sums of four rows of weights with bytes, two products in one instruction, and how
such sums are scaled: cores with DSP instructions.

A half of a word of weights holds two rows, 256 * a + b: one product adds to the sums of
both, a second of b alone tells them apart, as in dsp/conv.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const, load, offset, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, MULHI_ADD_ROUND, ODD_BYTES
from pybuild.ops.recurrent import Pair

Words = npt.NDArray[np.int32]
FOUR = 4  # rows that are summed together, and values of a word
_ORDER = (0, 2, 1, 3)
# of a word of weights, beside the sum of the lower row
_MOST = 1 << 23


def turns(inputs: int) -> int:
    """Words of values."""
    return -(-inputs // FOUR)


def is_known(node: Node, graph: Graph) -> bool:
    """Whether no user replaces a weight: how sums are scaled depends on their reach."""
    return not any(name in graph.parameters for name in node.inputs)


def fits(rows: Sequence[Array]) -> bool:
    """Whether a word of values is there, and the weights and the sums of two rows fit a
    word; rows  four arrays [n, inputs]"""
    if rows[0].shape[1] < FOUR:
        return False
    for a, b in zip(rows[0::2], rows[1::2], strict=True):
        words = 256 * a.astype(np.int32) + b.astype(np.int32)
        sums = np.abs(a.astype(np.int64)).sum(1)
        if words.min() < -(1 << 15) or 128 * int(sums.max()) >= _MOST:
            return False
    return True


def packed(rows: Sequence[Array]) -> Array:
    """[n][turns][pairs of rows][bytes 0 and 2, 1 and 3] of four arrays [n, inputs]"""
    four = [row.astype(np.int32) for row in rows]
    pairs = [256 * a + b for a, b in zip(four[0::2], four[1::2], strict=True)]
    taps = np.stack([_in_turns(pair) for pair in pairs], 2)
    words = (taps[..., 0::2] & 0xFFFF) | (taps[..., 1::2] << 16)
    return np.asarray(words.astype(np.int32))


def _in_turns(pair: Words) -> Words:
    """[n][turns][4]: of the last turn, which begins earlier, zeros for what was in the
    one before; in the order in which bytes of a word are taken apart."""
    count, inputs = pair.shape
    made = np.zeros((count, turns(inputs) * FOUR), np.int32)
    made[:, :inputs] = pair
    rest = inputs % FOUR
    if rest:
        made[:, -FOUR:] = 0
        made[:, -rest:] = pair[:, -rest:]
    return made.reshape(count, turns(inputs), FOUR)[..., _ORDER]


def sums(k: Builder, weights: Expr, source: Expr, inputs: int) -> list[Expr]:
    """Of four rows, whose packed weights begin there."""
    w, x = k.let("row", weights), k.let("from", source)
    made = [k.let(f"sum{i}", 0) for i in range(FOUR)]
    written = 2 if inputs % (4 * FOUR) else 4  # words of values in a turn
    whole = inputs // (FOUR * written)
    if whole:
        with k.loop("turn", k.arg("turns", whole), rolled=True):
            for at in range(written):
                _turn(k, made, w, at, x, FOUR * at)
            k.assign(w, offset(w, written * FOUR))
            k.assign(x, offset(x, written * FOUR))
    left = inputs - whole * FOUR * written
    for at in range(turns(left)):
        _turn(k, made, w, at, x, min(FOUR * at, left - FOUR))
    told: list[Expr] = []
    for both, low in zip(made[0::2], made[1::2], strict=True):
        told += [(both - low) >> 8, low]
    return told


def _turn(k: Builder, made: Sequence[Var], w: Var, at: int, x: Var, first: int) -> None:
    """Four values of x from `first` on with the weights of a turn."""
    word = k.let("word", wide(x, first))
    values = [k.let("even", EVEN_BYTES(word)), k.let("odd", ODD_BYTES(word))]
    for pair in (0, 2):
        both, low = made[pair : pair + 2]
        words = [k.let("pair", load(w, at * FOUR + pair + i)) for i in (0, 1)]
        for value, weight in zip(values, words, strict=True):
            k.assign(both, DOT2(value, weight, both))
            alone = k.let("alone", EVEN_BYTES(weight))
            k.assign(low, DOT2(value, alone, low))


def scaler(
    k: Builder, name: str, pair: Pair, reach: int
) -> Callable[[Expr], Expr] | None:
    """Scales a number of at most `reach`, rounded twice, the high half of a product of
    its double; None where a word has no room for that."""
    multiplier, shift = pair
    left = max(shift, 0) + 1
    if reach << left >= 1 << 31:
        return None
    by = k.arg(f"{name}_by", multiplier)
    up = k.arg(f"{name}_up", 1 << left)
    right = min(max(-shift, 0), 30)
    if not right:
        return lambda total: MULHI_ADD_ROUND(total * up, by, const(0))
    half = k.arg(f"{name}_half", 1 << (right - 1))
    down = k.arg(f"{name}_down", right)
    # of ties away from zero, less than half a step below it: the sum has its sign
    return lambda total: MULHI_ADD_ROUND(total * up, by, half + (total >> 31)) >> down
