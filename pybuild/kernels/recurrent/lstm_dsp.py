"""lstm of int8 on cores with DSP instructions: the four gates of a unit are four rows
of by_pairs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, load, offset
from pybuild.kernels.base.intrin import SATURATE8, SATURATE16
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.recurrent import by_pairs
from pybuild.kernels.recurrent.curves_dsp import LOGISTIC_WORDS, tanh_words
from pybuild.kernels.recurrent.lstm import Lstm
from pybuild.ops.recurrent import GATES, Pair, R, W, sizes


def fits(node: Node, graph: Graph) -> bool:
    """Whether the weights of the gates are known and fit pairs."""
    return by_pairs.is_known(node, graph) and all(
        by_pairs.fits([constant(node, graph, first + g) for g in range(GATES)])
        for first in (W, R)
    )


class DspLstm(Lstm):
    """The pieces of the kernel that differ from those of any core."""

    ending = "_dsp"
    per_mac, logistic, tanh = 1.2, LOGISTIC_WORDS, staticmethod(tanh_words)
    order = "two gates lie in each half of a word of weights, and are read forward"

    def weights(self, first: int, role: str) -> Var:
        order = "units, four inputs a turn, two gates 256 * a + b in each half"
        return self.rows.table(role, by_pairs.packed(self.four(first)), order)

    def sums(self, first: int, source: Expr, unit: Expr) -> Sequence[Expr]:
        k, gates = self.k, self.gates[first]
        _, _, width, units = sizes(self.node, self.graph)
        inputs = width if first == W else units
        at = unit * (by_pairs.turns(inputs) * GATES)
        made = by_pairs.sums(k, offset(gates.weights, at), source, inputs)
        assert gates.bias is not None
        return [
            k.let("total", each + load(gates.bias, unit * GATES + g))
            for g, each in enumerate(made)
        ]

    def held(self, value: Expr) -> Expr:
        return SATURATE16(value)

    def made_of(self, value: Expr) -> Expr:
        return SATURATE8(value)

    def scaler(self, name: str, pair: Pair, reach: int) -> Callable[[Expr], Expr]:
        made = by_pairs.scaler(self.k, name, pair, reach)
        return made or super().scaler(name, pair, reach)
