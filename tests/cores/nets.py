"""Nets that are large enough for several cores: like keyword spotting, but smaller; one
that is not; and some near the border."""

from __future__ import annotations

import random

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


def few(seed: int) -> Model:
    """Up to three layers of a few thousand instructions."""
    chance = random.Random(seed)
    size, channels = chance.randint(1, 6), chance.choice((1, 2, 3, 4, 8))
    net = Network("few", (1, size, size, channels), "int8", seed)
    for layer in range(chance.randint(0, 2)):
        kind = chance.choice(("conv", "depthwise", "point"))
        if kind == "depthwise":
            net.depthwise(f"depth{layer}")
            continue
        channels = chance.choice((2, 4, 8))
        form = ((3, 3), (1, 1, 1, 1)) if kind == "conv" else ((1, 1), (0, 0, 0, 0))
        net.conv(f"{kind}{layer}", channels, 1, *form)
    net.add("reshape", "flat", (1, size * size * channels))
    net.dense("scores", chance.choice((1, 2, 4, 10, 16)))
    return net.model()


def twigs(branches: int, size: int) -> Model:
    """Branches of three small layers each, which all read one tensor and are joined:
    where meetings count most."""
    net = Network("twigs", (1, size, size, 4), "int8", 3)
    root, ends = net.conv("stem", 8), []
    for number in range(branches):
        net.last = root
        net.conv(f"narrow{number}", 4, 1, (1, 1), (0, 0, 0, 0))
        net.depthwise(f"depth{number}")
        ends.append(net.conv(f"wide{number}", 4, 1, (1, 1), (0, 0, 0, 0)))
    net.add("concat", "joined", (1, size, size, 4 * branches), *ends[:-1], axis=3)
    return net.model()
