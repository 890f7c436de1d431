"""LiteRT's reference kernels on a file, with every tensor kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pybuild.dtype import Array


def run_litert(
    data: bytes, samples: list[Mapping[str, Array]], kernels: str = "BUILTIN_REF"
) -> list[dict[str, Array]]:
    """Every tensor by name, per sample; skips the test where LiteRT is missing."""
    litert = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="ai-edge-litert is not installed"
    )
    net = litert.Interpreter(
        model_content=data,
        experimental_op_resolver_type=getattr(litert.OpResolverType, kernels),
        experimental_preserve_all_tensors=True,
    )
    net.allocate_tensors()
    found = []
    for inputs in samples:
        for detail in net.get_input_details():
            net.set_tensor(detail["index"], inputs[detail["name"]])
        net.invoke()
        details = [
            d  # a handle of a variable has no value
            for d in net.get_tensor_details()
            if np.dtype(d["dtype"]).kind in "biuf"
        ]
        found.append({d["name"]: np.array(net.get_tensor(d["index"])) for d in details})
    return found
