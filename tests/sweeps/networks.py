"""A network so small that a build of it takes milliseconds, and projects over it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGETS = ["generic", "cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7"]
# 5 * 4 * 5 * 2 = 200 builds
AXES: Mapping[str, Any] = {
    "target": TARGETS,
    "optimise": ["size", "ram", "balanced", "speed"],
    "ram-limit": [False, 16, 96, "1K", "1M"],
    "input": ["reuse", "keep"],
}


def network(folder: Path, name: str = "tiny", outside: bool = False) -> Path:
    """y = x @ w as .onnx; outside: its weights lie in a file beside it."""
    weights = numpy_helper.from_array(
        np.arange(12, dtype=np.float32).reshape(4, 3) / 10, "w"
    )
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
        [weights],
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = folder / f"{name}.onnx"
    more = {"location": f"{name}.bin", "size_threshold": 0} if outside else {}
    onnx.save_model(model, path, save_as_external_data=outside, **more)
    return path


def project(file: Path, axes: Mapping[str, Any] = AXES) -> dict[str, Any]:
    """What a crt.toml with one model and one sweep says."""
    return {"models": {"tiny": {"file": str(file)}}, "sweeps": {"all": dict(axes)}}
