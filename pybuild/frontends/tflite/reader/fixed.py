"""Inputs of a .tflite file with given values, which become constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError, Problem
from pybuild.frontends.tflite.reader.flat import FlatModel, FlatTensor

_KINDS = ("BOOL", "FLOAT32", "INT32", "INT64")


def with_values(
    model: FlatModel, values: Mapping[str, Array]
) -> tuple[FlatModel, dict[str, Array]]:
    """Return the model without these inputs, and their values in the file's types.

    Errors  BuildError for an unknown input name, or a value that does not fit
    """
    tensors, places = list(model.tensors), {}
    for index in model.inputs:
        if 0 <= index < len(tensors):
            places[tensors[index].name] = index
    problems, fixed = [], {}
    for name, value in values.items():
        if name not in places:
            what, hint = f"there is no input '{name}'", f"one of {', '.join(places)}"
            problems.append(Problem("--input-value", what, hint))
            continue
        tensor = tensors[places[name]]
        if tensor.kind not in _KINDS or not _fits(tensor, value):
            what = f"input '{name}' is {tensor.kind.lower()}{list(tensor.shape)}, "
            what += f"{value.size} numbers are given"
            problems.append(Problem("--input-value", what))
            continue
        shape = tensor.shape if prod(tensor.shape) == value.size else value.shape
        fixed[name] = value.astype(tensor.kind.lower()).reshape(shape)
        tensors[places[name]] = replace(
            tensor, shape=shape, signature=(),
            data=np.frombuffer(fixed[name].tobytes(), np.uint8),
        )  # fmt: skip
    if problems:
        raise BuildError.of(problems)
    left = tuple(i for i in model.inputs if i not in {places[n] for n in fixed})
    return replace(model, tensors=tuple(tensors), inputs=left), fixed


def _fits(tensor: FlatTensor, value: Array) -> bool:
    """True if the value has as many elements as the tensor, or as its open dimensions
    allow."""
    opened = value.ndim == len(tensor.shape) and -1 in tensor.signature
    return value.size > 0 and (prod(tensor.shape) == value.size or opened)
