"""A convolution of int8 of any size, as a graph of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant
from pybuild.model import Model


@dataclass(frozen=True)
class Convolution:
    """Its pixels a side, channels in and out, side of the window, the least weight,
    groups, and how far apart the scales of its channels are."""

    pixels: int
    inputs: int
    outputs: int
    side: int = 1
    least: int = -127
    groups: int = 1
    apart: float = 1.0


def graph(one: Convolution) -> Graph:
    net, chance = GraphBuilder("few"), np.random.default_rng(one.inputs)
    shape = (1, one.pixels, one.pixels, one.inputs)
    x = net.input("x", shape, "int8", quant=(0.05, 7))
    inputs = one.inputs // one.groups
    values = chance.integers(one.least, 128, (one.outputs, one.side, one.side, inputs))
    values[0, 0, 0, 0] = one.least
    scales = np.geomspace(0.01, 0.01 * one.apart, one.outputs).tolist()
    quant = Quant(tuple(scales), (0,) * one.outputs, 0)
    w = net.constant("w", values.astype(np.int8), quant)
    edge = (one.side // 2,) * 4
    y = net.op(
        "conv2d", x, w, quant=(0.4 * one.apart, -5), pads=edge, groups=one.groups
    )
    net.output(y, "y")
    return Model("few", net.build(), "litert", "0" * 64).lower("litert")
