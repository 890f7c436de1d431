"""Sizes and values that the user fixes: open dimensions, and values of inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import Problem

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def fix_values(
    model: ModelProto, values: Mapping[str, Array], constants: Collection[str]
) -> list[Problem]:
    """Replace inputs whose values are given by initialisers.

    constants  names of initialisers that old files also list as inputs
    """
    from onnx import numpy_helper

    problems = []
    graph = model.graph
    for name, value in values.items():
        inputs = {v.name: v for v in graph.input if v.name not in constants}
        found = inputs.get(name)
        if found is None:
            known = ", ".join(inputs)
            what = f"there is no input '{name}'"
            problems.append(Problem("--input-value", what, f"one of {known}"))
            continue
        dtype = np.dtype(dtype_name(found) or "float32")
        fixed = np.asarray(value)
        if fixed.dtype != dtype:
            fixed = fixed.astype(dtype)
        dims = found.type.tensor_type.shape.dim
        if fixed.ndim != len(dims) and fixed.ndim < 2:
            fixed = fixed.reshape((1,) * (len(dims) - 1) + (-1,) if dims else ())
        graph.initializer.append(numpy_helper.from_array(fixed, name))
        graph.input.remove(found)
    return problems


def is_constant_input(model: ModelProto) -> set[str]:
    """Return the names of initialisers; old files list them as inputs, too."""
    return {t.name for t in model.graph.initializer}


def fix_dims(
    source: str, model: ModelProto, input_dims: Mapping[str, int]
) -> tuple[list[Problem], dict[str, Problem]]:
    """Set open dimensions to the given numbers, or to 1.

    A dimension is given by its own name, or as INPUT.AXIS, or by the input's name
    where only one of its dimensions is open.

    Returns  what is wrong, and what is left open by its name
    """
    problems, used = [], set()
    opened: dict[str, Problem] = {}
    constants = is_constant_input(model)
    _open_negative(model)
    for value in model.graph.input:
        if value.name in constants:
            continue
        dims = value.type.tensor_type.shape.dim
        # a dimension of 0 is one, if it is said: ONNX passes what is unused so
        open_axes = [i for i, dim in enumerate(dims) if not dim.HasField("dim_value")]
        for axis in open_axes:
            dim = dims[axis]
            keys = [dim.dim_param, f"{value.name}.{axis}"]
            keys += [value.name] if len(open_axes) == 1 else []
            key = next((k for k in keys if k and k in input_dims), None)
            if key is not None:
                used.add(key)
                _set_everywhere(model, dim.dim_param, input_dims[key])
                dim.dim_value = input_dims[key]
                continue
            name = dim.dim_param or f"{value.name}.{axis}"
            what = f"input '{value.name}' has a dynamic dimension '{name}'"
            size = "1" if axis == 0 else "SIZE"  # only a batch is 1 for sure
            opened[name] = Problem(source, what, f"--input-dim {name}={size}")
            dim.dim_value = 1
    for key in sorted(set(input_dims) - used):
        what = f"no dynamic dimension is named '{key}'"
        problems.append(Problem("--input-dim", what))
    return problems, opened


def _open_negative(model: ModelProto) -> None:
    """Clear sizes below 0, which some exporters write for open dimensions."""
    graph = model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")


def _set_everywhere(model: ModelProto, name: str, value: int) -> None:
    if not name:
        return
    for tensor in (*model.graph.input, *model.graph.output):
        for dim in tensor.type.tensor_type.shape.dim:
            if dim.dim_param == name:
                dim.dim_value = value


def dtype_name(value: ValueInfoProto) -> str:
    """Return numpy's name of an element type; "" if the value is not a tensor."""
    from onnx import helper

    kind = value.type.tensor_type.elem_type
    try:
        return str(np.dtype(helper.tensor_dtype_to_np_dtype(kind)).name)
    except (KeyError, TypeError, ValueError):
        return ""
