"""int8 layers with known weights: how far their sums reach, and the cheap end that is
proven for these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.graph import Graph, Node
from pybuild.kernels.epilogues.affine import REACH, Affine, affine
from pybuild.kernels.layers.weights import constant, folded_bias, reach
from pybuild.ops.conv import ConvParameters, conv_parameters


@dataclass(frozen=True)
class KnownSums:
    """Of each output channel.

    bias       as its kernel adds it, to products of plain inputs
    low, high  the least and the greatest sum, bias included
    """

    made: ConvParameters
    bias: Array
    low: Ints
    high: Ints


def known_sums(node: Node, graph: Graph, kernels: Array) -> KnownSums | None:
    """None where some sum is beyond what epilogues take.

    Shapes  kernels [O, taps]
    Errors  BuildError if some order of summing could overflow int32
    """
    made = conv_parameters(node, graph)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.int32))
    bias = folded_bias(node, graph, kernels, bias, made.x_zero)
    low, high = reach(node, graph, kernels, bias)
    if max(-int(low.min()), int(high.max())) > REACH:
        return None
    return KnownSums(made, bias, low, high)


def affine_sums(
    node: Node, graph: Graph, kernels: Array
) -> tuple[KnownSums, Affine] | None:
    """With the cheap requantisation; None where a channel has none.

    Shapes  kernels [O, taps]
    """
    sums = known_sums(node, graph, kernels)
    ending = affine(sums.made, sums.low, sums.high) if sums is not None else None
    return (sums, ending) if sums is not None and ending is not None else None
