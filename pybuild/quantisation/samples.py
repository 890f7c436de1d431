"""Calibration and test data: arrays by input name, labels, all that can be wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Tensor
from pybuild.ops.fixed_point.quant import quantized
from pybuild.params.data import LABELS, read_data, read_labels
from pybuild.records import dataclass


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


def samples_of(
    graph: Graph,
    data: Any,
    labels: Array | Path | None = None,
    where: str = "calibration data",
    finite: bool = True,
) -> Samples:
    """Arrays by name, that of an only input, or of a file or folder: params/data.py.

    labels  in place of those of the data, or a file of them
    where   what arrays are called in messages
    finite  floats that are infinite or NaN are refused
    Errors  BuildError with everything that is wrong
    """
    if isinstance(data, str | os.PathLike):
        shapes = {name: graph.tensor(name).shape for name in graph.inputs}
        arrays, where = read_data(Path(data), shapes), Path(data).name
    else:
        arrays = dict(_by_name(graph, data))
    if isinstance(labels, Path):
        labels = read_labels(labels)
    if labels is not None:
        arrays[LABELS] = labels
    return read_samples(graph, arrays, where, finite)


def _by_name(graph: Graph, data: Any) -> Mapping[str, Array]:
    """Arrays by the names of inputs, or that of the only one.

    Errors  BuildError for the array of one of several
    """
    if isinstance(data, Mapping):
        return data
    if not hasattr(data, "__array__") and not isinstance(data, list | tuple):
        what = f"is {type(data).__name__}: no arrays and no path"
        raise BuildError("data", what, "give {name: array}, an array, or a path")
    if len(graph.inputs) != 1:
        what = f"does not say for which input it is, of {', '.join(graph.inputs)}"
        raise BuildError("data", what, "give {name: array}")
    return {graph.inputs[0]: np.asarray(data)}


def read_samples(
    graph: Graph, data: Mapping[str, Array], where: str, finite: bool = True
) -> Samples:
    """Arrays of a file or of a caller, as the inputs of a graph.

    data    by input name: [N, *shape], or [N, *shape[1:]] for inputs of batch 1, or
            one sample; and `labels`, whole numbers, if there are any. Floats of an
            input that has integers are real numbers: its scale makes integers of them
    Errors  BuildError with everything that is wrong
    """
    data = {name: np.asarray(value) for name, value in data.items()}
    names = set(graph.inputs)
    others = {n: data[n] for n in sorted(data.keys() - names - {LABELS})}
    absent = [graph.tensor(name) for name in graph.inputs if name not in data]
    meant = {one.name: _meant(one, others) for one in absent}
    found = [_absent(where, one, meant[one.name]) for one in absent]
    for name in sorted(others.keys() - set(meant.values())):
        hint = f"its inputs are {', '.join(graph.inputs)}; {LABELS} are classes"
        found.append(Problem(where, f"the model has no input '{name}'", hint))
    inputs: dict[str, Array] = {}
    for name in graph.inputs:
        if name in data:
            wrong = _fitted(where, graph.tensor(name), data[name], inputs, finite)
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


def _absent(where: str, tensor: Tensor, meant: str) -> Problem:
    """meant: the array that is called otherwise; "": there is none"""
    hint = f"rename its array '{meant}' to '{tensor.name}'" if meant else ""
    return Problem(where, f"has no array '{tensor.name}'", hint or _wanted(tensor))


def _meant(tensor: Tensor, others: Mapping[str, Array]) -> str:
    """The only array of another name that the input could take; "": none, or
    several."""
    fits = [
        name
        for name, value in others.items()
        if value.shape[-len(tensor.shape) :] == tensor.shape
        or value.shape[1:] == tensor.shape[1:]
        or _other_order(tensor, value)
    ]
    return fits[0] if len(fits) == 1 else ""


def _wanted(tensor: Tensor) -> str:
    """The samples take the place of a batch of 1."""
    shape = tensor.shape[1:] if tensor.shape[:1] == (1,) else tensor.shape
    return f"give [{', '.join(map(str, ('N', *shape)))}] values"


def _other_order(tensor: Tensor, value: Array) -> str:
    """A hint for samples whose channels stand elsewhere; "" for others."""
    wanted = tensor.shape
    at = value.ndim - len(wanted)  # of the axis of the batch of one
    if at not in (0, 1) or len(wanted) != 4:
        return ""
    orders = (("last", (0, 3, 1, 2)), ("first", (0, 2, 3, 1)))
    for name, order in orders:
        axes = (*range(at), *(axis + at for axis in order))
        if tuple(value.shape[axis] for axis in axes)[at + 1 :] == wanted[1:]:
            return (
                f"its channels stand {name}, and the model takes "
                f"{'NCHW' if name == 'last' else 'NHWC'}: give array.transpose{axes}"
            )
    return ""


def _fitted(
    where: str, tensor: Tensor, value: Array, inputs: dict[str, Array], finite: bool
) -> Problem | None:
    """Puts the array among `inputs` in the input's type, or says what is wrong."""
    wanted = tensor.shape
    what = f"'{tensor.name}' is {value.dtype.name}{list(value.shape)}"
    hint = _wanted(tensor)
    if value.dtype.kind not in "fiub":
        return Problem(where, f"{what}, which are not numbers", hint)
    if value.shape[1:] != wanted and wanted[:1] == (1,) and value.ndim == len(wanted):
        value = value[:, None] if value.shape[1:] == wanted[1:] else value
    if value.shape == wanted:
        value = value[None]
    if value.ndim != len(wanted) + 1 or value.shape[1:] != wanted:
        return Problem(where, what, _other_order(tensor, value) or hint)
    if not len(value):
        return Problem(where, f"{what}: no samples", hint)
    takes = not finite or bool(np.isfinite(value).all())
    if tensor.quant is not None and value.dtype.kind == "f" and takes:
        value = quantized(value.astype(np.float64), tensor, "even")
    with np.errstate(over="ignore", invalid="ignore"):
        made = value.astype(tensor.dtype.numpy)
    inputs[tensor.name] = made
    # one that has become infinite, or any
    bad = ~np.isfinite(made) & np.isfinite(value) | (~np.isfinite(value) & finite)
    if bad.any():
        wrong = "are infinite or NaN"
    else:
        bad, wrong = made != value, f"are outside the {tensor.dtype.value} range"
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
        return [Problem(where, what, f"the model has classes 0 to {classes - 1}")]
    return []
