"""Infers the types of a model's tensors with the package `onnx`, or reports a
misfit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pybuild.errors import Problem
from pybuild.frontends.onnx.reader.asked import joins_much, odd_equation
from pybuild.frontends.onnx.reader.fixed import dtype_name
from pybuild.frontends.onnx.reader.op import Boundary

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

# operator -> attributes with their values where they are left out
_FORGOTTEN: Mapping[str, Mapping[str, Any]] = {
    "MeanVarianceNormalization": {"axes": (0, 2, 3)},
    "STFT": {"onesided": 1},
}


def infer(
    source: str, model: ModelProto
) -> tuple[dict[str, Boundary], tuple[Problem, ...]]:
    """Return the types of tensors by name, and the problems where shapes or types do
    not fit. Types that the file declares for intermediate tensors count only if none is
    inferred."""
    from onnx import shape_inference

    if odd := odd_equation(model):
        where = f"{source}: node '{odd.name or odd.output[0]}' (Einsum)"
        hint = "name axes by the letters a to z and A to Z"
        return {}, (Problem(where, "its equation has other signs than letters", hint),)
    claimed = {value.name: value for value in model.graph.value_info}
    del model.graph.value_info[:]
    _write_defaults(model)
    misfit: tuple[Problem, ...] = ()
    found, values = model, not joins_much(model.graph)
    try:
        found = shape_inference.infer_shapes(
            model, check_type=True, strict_mode=True, data_prop=values
        )
    except Exception as error:  # whatever the C++ of onnx throws
        hint = "check it with onnx.shape_inference"
        misfit = (Problem(*_blamed(source, str(error)), hint),)
    claimed |= {value.name: value for value in found.graph.value_info}
    return {n: boundary(v) for n, v in claimed.items() if _is_whole(v)}, misfit


def _write_defaults(model: ModelProto) -> None:
    """Add default attributes that onnx's shape inference does not fill in."""
    from onnx import helper

    for node in model.graph.node:
        given = {attribute.name for attribute in node.attribute}
        for name, value in _FORGOTTEN.get(node.op_type, {}).items():
            if name not in given:
                node.attribute.append(helper.make_attribute(name, value))


def _is_whole(value: ValueInfoProto) -> bool:
    kind = value.type.tensor_type
    return kind.HasField("shape") and all(dim.dim_value > 0 for dim in kind.shape.dim)


def boundary(value: ValueInfoProto) -> Boundary:
    dims = value.type.tensor_type.shape.dim
    return Boundary(value.name, dtype_name(value), tuple(d.dim_value for d in dims))


def first_line(error: Exception) -> str:
    """Return the first line of an error from onnx."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


def _blamed(source: str, text: str) -> tuple[str, str]:
    """Return the node that shape inference blames, and the last thing it says about
    it."""
    found = re.search(r"op_type:\s*(\w+), node name: ([^)]*)\)", text)
    lines = text.strip().splitlines() or ["no reason given"]
    line = next((part for part in lines if "[" in part), lines[0])
    reason = re.sub(r".*\[\w*Error\] |^Inference error\(s\): ", "", line).rstrip(". ")
    where = f"{source}: node '{found[2]}' ({found[1]})" if found else source
    return where, f"shapes or types do not fit: {reason}"
