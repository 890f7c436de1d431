"""Checks that the scales of a graph's tensors are valid numbers."""

from __future__ import annotations

import math

from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Quant


def verify_scales(graph: Graph) -> None:
    """A scale is a positive number; of what is known it may be 0, as of a channel that
    training has left without weights.

    Errors  BuildError that names each tensor, and its channel
    """
    known = set(graph.constants)
    for node in graph.nodes:
        if node.inputs and known.issuperset(filter(None, node.inputs)):
            known.update(node.outputs)
    found = []
    for name, tensor in graph.tensors.items():
        channel = _wrong(tensor.quant, name in known)
        if tensor.quant is not None and channel is not None:
            where = f" in channel {channel}" if len(tensor.quant.scale) > 1 else ""
            what = f"'{name}' has scale {tensor.quant.scale[channel]:g}{where}"
            found.append(Problem(graph.source, what, "quantise the model again"))
    if found:
        raise BuildError.of(found)


def _wrong(quant: Quant | None, known: bool) -> int | None:
    """The first scale that is none."""
    for channel, scale in enumerate(quant.scale if quant is not None else ()):
        if not (0 < scale < math.inf or (known and scale == 0)):
            return channel
    return None
