"""tvm.relay.frontend for .tflite and .onnx: pybuild.load under TVM's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pybuild.dtype import Array
from pybuild.entry import load
from pybuild.errors import BuildError, Problem
from pybuild.model import Model

__all__ = ["from_onnx", "from_tflite"]

Shapes = Mapping[str, Sequence[int]]
Imported = tuple[Model, dict[str, Array]]


def from_tflite(
    model: Any,
    shape_dict: Shapes | None = None,
    dtype_dict: Mapping[str, str] | None = None,
) -> Imported:
    """The model, and no parameters: weights are constants of it.

    model       a path, bytes, or the object that the package tflite made of them
    shape_dict  what inputs have, to be checked; dtype_dict: their types
    Errors      BuildError
    """
    table = getattr(model, "_tab", None)
    made = load(model if table is None else bytes(table.Bytes))
    return _checked(made, shape_dict, dtype_dict), {}


def from_onnx(
    model: Any,
    shape: Shapes | None = None,
    dtype: str | Mapping[str, str] | None = None,
) -> Imported:
    """The model, and no parameters: weights are constants of it.

    model  a path, bytes or a ModelProto
    shape  what inputs have: sizes of a ModelProto's named dimensions, else checked
    dtype  of all inputs or each, to be checked
    Errors BuildError
    """
    made = load(model, input_dims=_dims(model, shape or {}))
    types = dict.fromkeys(made.graph.inputs, dtype) if isinstance(dtype, str) else dtype
    return _checked(made, shape, types), {}


def _dims(model: Any, shapes: Shapes) -> dict[str, int]:
    """The sizes of dimensions that have names."""
    graph = getattr(model, "graph", None)
    if graph is None:
        return {}
    found = {}
    for given in graph.input:
        dims = given.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(given.name, ()), strict=False):
            if dim.dim_param:
                found[dim.dim_param] = int(size)
    return found


def _checked(
    model: Model, shapes: Shapes | None, types: Mapping[str, str] | None
) -> Model:
    """Errors  BuildError for an input that is not there, or is of another sort"""
    graph, found = model.graph, []
    for name in {**(shapes or {}), **(types or {})}:
        if name not in graph.inputs:
            known = ", ".join(graph.inputs)
            found.append(Problem(graph.source, f"has no input '{name}'", known))
            continue
        tensor = graph.tensor(name)
        want = tuple((shapes or {}).get(name, tensor.shape))
        kind = (types or {}).get(name, tensor.dtype.value)
        if want != tensor.shape or kind != tensor.dtype.value:
            what = f"input '{name}' is {tensor.dtype.value}{list(tensor.shape)}, "
            hint = "pybuild.load(..., input_dims=...) sizes named dimensions"
            what += f"not {kind}{list(want)}"
            found.append(Problem(graph.source, what, hint))
    if found:
        raise BuildError.of(found)
    return model
