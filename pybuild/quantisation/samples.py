"""Calibration and test data: arrays by input name, labels, all that can be wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.graph import Graph, Tensor

LABELS = "labels"


@dataclass(frozen=True)
class Samples:
    """`count` samples: per input an array [count, *shape of the input].

    labels  int64[count], the class of each; None: not known
    """

    inputs: Mapping[str, Array]
    labels: Array | None
    count: int

    def chunks(self, size: int) -> Iterator[dict[str, Array]]:
        """In order, `size` samples at a time."""
        for first in range(0, self.count, size):
            yield {n: v[first : first + size] for n, v in self.inputs.items()}


def read_samples(graph: Graph, data: Mapping[str, Array], where: str) -> Samples:
    """Arrays of a file or of a caller, as the inputs of a graph.

    data    by input name: [N, *shape], or [N, *shape[1:]] for inputs of batch 1; and
            `labels`, whole numbers, if there are any
    Errors  BuildError with everything that is wrong
    """
    data = {name: np.asarray(value) for name, value in data.items()}
    names = set(graph.inputs)
    found = [_absent(where, name, graph) for name in graph.inputs if name not in data]
    for name in sorted(data.keys() - names - {LABELS}):
        hint = f"its inputs are {', '.join(graph.inputs)}; {LABELS} are classes"
        found.append(Problem(where, f"the model has no input '{name}'", hint))
    inputs: dict[str, Array] = {}
    for name in graph.inputs:
        if name in data:
            wrong = _fitted(where, graph.tensor(name), data[name], inputs)
            found += [wrong] if wrong else []
    counts = {name: len(value) for name, value in inputs.items()}
    labels = data.get(LABELS) if LABELS not in names else None
    if labels is not None:
        found += _check_labels(where, labels, graph)
        counts[LABELS] = labels.shape[0] if labels.ndim else 0
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        found.append(Problem(where, f"has different numbers of samples: {each}"))
    if found:
        raise BuildError.of(found)
    classes = None if labels is None else labels.astype(np.int64)
    return Samples(inputs, classes, next(iter(counts.values()), 0))


def _absent(where: str, name: str, graph: Graph) -> Problem:
    shape = ", ".join(map(str, graph.tensor(name).shape))
    return Problem(where, f"has no array '{name}'", f"give [N, {shape}] values")


def _fitted(
    where: str, tensor: Tensor, value: Array, inputs: dict[str, Array]
) -> Problem | None:
    """Puts the array among `inputs` in the input's type, or says what is wrong."""
    wanted = tensor.shape
    what = f"'{tensor.name}' is {value.dtype.name}{list(value.shape)}"
    hint = f"give [N, {', '.join(map(str, wanted))}] values"
    if value.dtype.kind not in "fiub":
        return Problem(where, f"{what}, which are no numbers", hint)
    if value.shape[1:] != wanted and wanted[:1] == (1,) and value.ndim == len(wanted):
        value = value[:, None] if value.shape[1:] == wanted[1:] else value
    if value.ndim != len(wanted) + 1 or value.shape[1:] != wanted:
        return Problem(where, what, hint)
    if not len(value):
        return Problem(where, f"{what}: no samples", hint)
    with np.errstate(over="ignore", invalid="ignore"):
        made = value.astype(tensor.dtype.numpy)
    inputs[tensor.name] = made
    bad = ~np.isfinite(value) | ~np.isfinite(made)
    if bad.any():
        wrong = "are infinite or no numbers"
    else:
        bad, wrong = made != value, f"{tensor.dtype.value} has not"
        bad &= made.dtype.kind in "iu"
    if bad.any():
        what = f"'{tensor.name}' holds {np.count_nonzero(bad)} values that {wrong}"
        return Problem(where, what, f"the first is in sample {np.argwhere(bad)[0][0]}")
    return None


def _check_labels(where: str, labels: Array, graph: Graph) -> list[Problem]:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        what = f"'{LABELS}' is {labels.dtype.name}{list(labels.shape)}"
        return [Problem(where, what, "give the number of each sample's class: int[N]")]
    classes = graph.tensor(graph.outputs[0]).size
    whole = labels.astype(np.int64)
    wrong = np.flatnonzero((whole < 0) | (whole >= classes))
    if wrong.size:
        what = f"'{LABELS}' holds {whole[wrong[0]]}, for sample {wrong[0]}"
        return [Problem(where, what, f"the model tells classes 0 to {classes - 1}")]
    return []
