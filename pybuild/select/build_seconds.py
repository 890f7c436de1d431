"""How long a build will take, said before it begins: from its layers and the bytes of
its weights, at rates that were measured, on a machine as fast as this one is now.
"""

from __future__ import annotations

import time

from pybuild.ir.graph import Graph
from pybuild.select.devices import Targets, table_of

# seconds of each layer, of kernels for any core and of a core's own; of each megabyte
# of weights that is written (tests/bench/large_graphs.py, docs/benchmarks-seconds.md)
LAYER, OWN_LAYER, MEGABYTE = 0.0035, 0.0062, 0.13
# what `fixed_work` took beside these
NOMINAL = 0.02
_SHORT = 3.0
_ANY = "generic"


def build_seconds(graph: Graph, target: Targets) -> float:
    """The estimated seconds of a build with few options: `--optimise` and limits of RAM
    take longer."""
    known = any(core.name != _ANY for core in table_of(target))
    weights = sum(value.nbytes for value in graph.constants.values())
    seconds = nominal_seconds(len(graph.nodes), weights, known)
    if seconds < _SHORT:  # not worth a look at the machine
        return seconds
    return seconds * fixed_work() / NOMINAL


def nominal_seconds(layers: int, weights: int, known: bool) -> float:
    """On the machine of the rates; known: the core has kernels of its own."""
    return (OWN_LAYER if known else LAYER) * layers + MEGABYTE * weights / 1e6


def fixed_work() -> float:
    """Seconds of a fixed piece of Python, as this machine is busy now."""
    start, found = time.perf_counter(), {}
    for i in range(120_000):
        found[i & 1023] = (i, str(i & 255))
    return time.perf_counter() - start


def in_words(seconds: float) -> str:
    """The time in words: 40 seconds, 3 minutes, 2 hours."""
    for most, unit, word in ((90, 1, "second"), (5400, 60, "minute")):
        if seconds < most:
            count = max(round(seconds / unit), 1)
            count = round(count, -1) if word == "second" and count > 20 else count
            return f"{count} {word}{'s' * (count != 1)}"
    count = max(round(seconds / 3600), 1)
    return f"{count} hour{'s' * (count != 1)}"
