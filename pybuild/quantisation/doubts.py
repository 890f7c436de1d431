"""Warnings about calibration data that looks wrong, though it could be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.ranges import Observed
from pybuild.quantisation.samples import Samples

FEW = 10  # samples; the ranges of fewer are those of no others
# magnitudes that normalised data does not have where layers with weights read it
_LARGE, _SMALL = 64.0, 0.02


def doubts(
    graph: Graph, samples: Samples, seen: Mapping[str, Observed]
) -> tuple[str, ...]:
    """A sentence for each.

    graph  float, after passes; seen: what its tensors were on the samples
    """
    found: list[str] = []
    if samples.count < FEW:
        many = "1 sample is" if samples.count == 1 else f"{samples.count} samples are"
        what = "what others would reach is cut off; 100 are a good number"
        found.append(f"{many} few to calibrate with: {what}")
    for name, values in samples.inputs.items():
        found += _alike(name, values)
    if not found or samples.count > 1:
        found += _ranges(graph, seen)
    return tuple(dict.fromkeys(found))


def _alike(name: str, values: Array) -> Iterator[str]:
    first = values.reshape(-1)[0]
    if np.all(values == first) and values.size > 1:
        yield f"every value of '{name}' is {first:g}: ranges mean nothing"
    elif len(values) > 1 and np.all(values == values[0]):
        yield f"all {len(values)} samples of '{name}' are the same"


def _ranges(graph: Graph, seen: Mapping[str, Observed]) -> Iterator[str]:
    """Warnings about the values that the first layers with weights read, after the
    model's own scaling."""
    early = {name: name for name in graph.inputs}  # tensor: the input it comes from
    for node in graph.nodes:
        source = next((early[name] for name in node.inputs if name in early), None)
        if source is None:
            continue
        if node.op not in WEIGHTED:
            early |= dict.fromkeys(node.outputs, source)
            continue
        if node.inputs[0] not in early or node.inputs[0] not in seen:
            continue
        low, high = seen[node.inputs[0]].whole
        most = max(-low, high)
        first = graph.called(node)
        reads = f"'{source}' reaches the first layer, '{first}', with values"
        if most > _LARGE:
            what = f"{reads} of {low:g} to {high:g}"
            like = low >= 0 and 127 < high <= 255
            hint = "this looks like the 0 to 255 of images; " if like else ""
            yield f"{what}: {hint}give data scaled as in training"
        elif 0 < most < _SMALL:
            yield f"{reads} of at most {most:g}: give data scaled as in training"
