"""int8 layers with known weights: how far their sums reach, and the cheap end that is
proven for these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.epilogues.affine import Affine, affine, affine_or_exact
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.layers.few_values import with_few_values
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


def known_sums(node: Node, graph: Graph, kernels: Array) -> KnownSums:
    """Shapes  kernels [O, taps]
    Errors  BuildError if some order of summing could overflow int32
    """
    made = conv_parameters(node, graph)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.int32))
    bias = folded_bias(node, graph, kernels, bias, made.x_zero)
    low, high = reach(node, graph, kernels, bias)
    least, most = low - np.minimum(bias, 0), high - np.maximum(bias, 0)
    made, found = with_few_values(made, bias.astype(np.int64), least, most)
    low, high = least + np.minimum(found, 0), most + np.maximum(found, 0)
    return KnownSums(made, found.astype(np.int32), low, high)


def affine_sums(
    node: Node, graph: Graph, kernels: Array
) -> tuple[KnownSums, Affine] | None:
    """With the cheap requantisation; None where a channel has none.

    Shapes  kernels [O, taps]
    """
    sums = known_sums(node, graph, kernels)
    epilogue = affine(sums.made, sums.low, sums.high)
    return None if epilogue is None else (sums, epilogue)


def ended_sums(
    node: Node, graph: Graph, kernels: Array
) -> tuple[KnownSums, Affine | Exact]:
    """With the end of each channel: the cheap one, or the rule itself.

    Shapes  kernels [O, taps]
    """
    sums = known_sums(node, graph, kernels)
    return sums, affine_or_exact(sums.made, sums.low, sums.high)
