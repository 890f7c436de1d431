"""int8 layers with known weights: the range of their sums, and the cheap epilogue that
is proven for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.epilogues.affine import Affine, affine, affine_or_exact
from pybuild.kernels.epilogues.bare import bare, bare_parameters
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.epilogues.rounded import rounded, with_exact
from pybuild.kernels.layers.few_values import with_few_values
from pybuild.kernels.layers.weights import constant, folded_bias, is_bare, reach
from pybuild.ops.conv import ConvParameters, conv_parameters
from pybuild.records import dataclass

# of channels without a cheap end, that end by the rule itself beside the others
_FEW = 0.05


@dataclass(frozen=True)
class KnownSums:
    """The parameters of a layer and the range of its sums, for each output channel.

    bias       as its kernel adds it to products with plain inputs
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
    if is_bare(node, graph):
        none = np.zeros(len(kernels), np.int32)
        return KnownSums(bare_parameters(), none, *reach(node, graph, kernels, none))
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
    """Return the sums with the cheap requantisation; None if a channel has none.

    Shapes  kernels [O, taps]
    """
    sums = known_sums(node, graph, kernels)
    epilogue = affine(sums.made, sums.low, sums.high)
    return None if epilogue is None else (sums, epilogue)


def ended_sums(
    node: Node, graph: Graph, kernels: Array
) -> tuple[KnownSums, Affine | Exact]:
    """Return the sums with the cheapest epilogue of each channel, for cores with
    SMMLAR.

    Shapes  kernels [O, taps]
    """
    sums = known_sums(node, graph, kernels)
    if is_bare(node, graph):
        return sums, bare(len(kernels))
    raised = _raised(sums.made)
    end = _cheapest(replace(sums, made=raised) if raised is not None else sums)
    if raised is None or isinstance(end, Exact):
        return sums, end if raised is None else exact(sums.made, len(kernels))
    rule = None if end.exact is None else exact(sums.made, len(kernels))
    made, up = sums.made, raised.high - sums.made.high
    return sums, replace(end, low=made.low, high=made.high, exact=rule, raised=up)


def _raised(made: ConvParameters) -> ConvParameters | None:
    """Return a layer with a clamp tighter than int8 with its values raised, so that
    saturation does the high clamp and a saturating byte subtraction the low one;
    comparing for both takes six instructions. None if this does not apply."""
    up = 127 - made.high
    if (made.low, made.high) == (-128, 127) or made.low + up >= 0:
        return None
    y_zero, low = made.y_zero + up, made.low + up
    return replace(made, y_zero=y_zero, low=low, high=127)


def _cheapest(sums: KnownSums) -> Affine | Exact:
    cheap = affine_or_exact(sums.made, sums.low, sums.high)
    hard = 1.0 if isinstance(cheap, Exact) else float(np.mean(cheap.multipliers < 0))
    if hard <= _FEW and isinstance(cheap, Affine) and cheap.below is None:
        return cheap
    found = rounded(sums.made, sums.low, sums.high)
    if found is None or float(found[1].mean()) > hard:
        return cheap
    return with_exact(*found, sums.made)
