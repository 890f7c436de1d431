"""The three tiny graphs whose generated C is committed, so that a review shows
what changes in the output. `python -m tests.golden.networks` writes it anew."""

from __future__ import annotations

from pathlib import Path

from pybuild.library import Library
from tests.networks import Network, classifier

FOLDER = Path(__file__).resolve().parent


def dense_float() -> Network:
    """One layer, float."""
    net = Network("dense_float", (1, 6), "float32", 1)
    net.dense("scores", 3)
    return net


def conv_int8() -> Network:
    """A padded convolution, int8, with a result in place."""
    net = Network("conv_int8", (1, 5, 4, 2), "int8", 2)
    skip = net.conv("first", 4)
    net.conv("second", 4)
    net.add("add", "sum", (1, 5, 4, 4), skip)
    return net


def whole_int8() -> Network:
    """Every stage of a small classifier."""
    return classifier("whole_int8", "int8", 3)


NETWORKS = (dense_float, conv_int8, whole_int8)


def libraries() -> list[Library]:
    return [make().model().build() for make in NETWORKS]


def files(library: Library) -> dict[str, str]:
    """The C that is compared; weights are data, not code."""
    sources = library.sources()
    return {name: text for name, text in sources.items() if "_weights" not in name}


if __name__ == "__main__":
    for library in libraries():
        for name, text in files(library).items():
            (FOLDER / name).write_text(text)
