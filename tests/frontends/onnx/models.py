"""Small ONNX models for tests, and what ONNX Runtime makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from pybuild.frontends.onnx import load
from pybuild.ir.graph import Graph, verify
from pybuild.ops.interpret import check_types, interpret
from pybuild.passes import PassOptions, run

Arrays = Mapping[str, np.ndarray]
NodeSpec = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]


def model(
    nodes: Sequence[NodeSpec],
    inputs: Arrays,
    outputs: Sequence[str],
    constants: Arrays | None = None,
    opset: int = 13,
) -> bytes:
    """A model file; `inputs` give shapes and types, outputs are inferred by ORT."""
    made = [
        helper.make_node(
            kind.rpartition(".")[2], reads, makes, name=f"n{i}",
            domain=kind.rpartition(".")[0], **attrs,
        )
        for i, (kind, reads, makes, attrs) in enumerate(nodes)
    ]  # fmt: skip
    graph = helper.make_graph(
        made,
        "small",
        [_info(name, value) for name, value in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    whole = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    _declare_outputs(whole)
    data: bytes = whole.SerializeToString()
    return data


def _info(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, value.shape)


def _declare_outputs(whole: onnx.ModelProto) -> None:
    """Puts in the types that ONNX Runtime infers."""
    for have in session(whole.SerializeToString()).get_outputs():
        name = have.type.removeprefix("tensor(").removesuffix(")")
        dtype = np.dtype({"float": "float32"}.get(name, name))
        info = helper.make_tensor_value_info(
            have.name, helper.np_dtype_to_tensor_dtype(dtype), have.shape
        )
        next(o for o in whole.graph.output if o.name == have.name).CopyFrom(info)


def session(data: bytes) -> ort.InferenceSession:
    """ONNX Runtime without its graph rewrites."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(
        _unsigned(data), options, providers=["CPUExecutionProvider"]
    )


def _unsigned(data: bytes) -> bytes:
    """The same model with weights of uint8 where uint8 is convolved with int8: CPUs
    without VNNI saturate the sums of two such products to 16 bits. What ONNX Runtime
    has against that, session.x64quantprecision, is one of its graph rewrites."""
    model = onnx.load_model_from_string(data)
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "QLinearConv" or known[node.input[2]].dtype != np.uint8:
            continue
        for place in (3, 5):  # weights, their zero point
            value = known[node.input[place]]
            if value.dtype == np.int8:
                made = (value.astype(np.int16) + 128).astype(np.uint8)
                name = f"{node.name or node.output[0]}_unsigned{place}"
                model.graph.initializer.append(numpy_helper.from_array(made, name))
                node.input[place] = name
    return model.SerializeToString()


def expected(data: bytes, inputs: Arrays) -> dict[str, np.ndarray]:
    net = session(data)
    names = [o.name for o in net.get_outputs()]
    return dict(zip(names, net.run(names, dict(inputs)), strict=True))


def lowered(data: bytes, **layout: str) -> Graph:
    """Through frontend and passes; everything between is checked."""
    graph = load("small.onnx", data, {})
    verify(graph)
    assert check_types(graph) == []
    made = run(graph, PassOptions("onnx", layout))
    assert check_types(made) == []
    return made


def assert_equal(data: bytes, inputs: Arrays, tolerance: float = 1e-5) -> Graph:
    """The imported and the lowered graph compute what ONNX Runtime computes.

    tolerance   of the output's range, for floats; integers may differ by one step
    """
    want = expected(data, inputs)
    made = lowered(data)
    for graph in (load("small.onnx", data, {}), made):
        have = interpret(graph, inputs)
        for name, value in want.items():
            assert have[name].shape == value.shape and have[name].dtype == value.dtype
            if value.dtype == np.float32:
                room = tolerance * max(float(np.ptp(value)), 0.1)
            else:
                room = 1.0
            far = np.abs(have[name].astype(np.float64) - value.astype(np.float64))
            assert far.max(initial=0) <= room, (name, far.max())
    return made
