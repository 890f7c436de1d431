"""Nets that are large enough for several cores: like keyword spotting, but smaller; and
one that is not."""

from __future__ import annotations

from pybuild.model import Model
from tests.graphs.networks import Network


def small(kind: str = "int8", seed: int = 5) -> Model:
    """A convolution, two depthwise blocks with a sum, a pool, a dense layer."""
    net = Network("small", (1, 9, 6, 4), kind, seed)
    net.conv("stem", 8, stride=2)
    skip = net.conv("mix", 8)
    net.depthwise("depth")
    net.conv("point", 8, 1, (1, 1), (0, 0, 0, 0))
    net.add("add", "sum", (1, 5, 3, 8), skip)
    net.depthwise("depth2")
    net.add("reshape", "flat", (1, 120))
    net.dense("scores", 10)
    return net.model()


def one_dense() -> Model:
    """A layer that no second core pays for."""
    net = Network("tiny", (1, 1), "int8", 1)
    net.dense("scores", 1)
    return net.model()
