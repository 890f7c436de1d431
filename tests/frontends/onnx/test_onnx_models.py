"""The real ONNX models: against ONNX Runtime, and damaged in many ways."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ir.graph import Graph, Quant
from pybuild.ops import OPERATORS
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.conftest import ROOT, model_path
from tests.frontends.onnx.models import session

NAMES = ("ad", "ic", "kws", "vww")
DIGITS = ROOT / "examples" / "digits"
SAMPLES = 20


def lowered(data: bytes, **layout: str) -> Graph:
    return run(load("model.onnx", data, {}), PassOptions("onnx", layout))


@pytest.mark.parametrize("name", NAMES)
def test_float(name: str) -> None:
    data = model_path(f"{name}_f32.onnx").read_bytes()
    graph, net = lowered(data), session(data)
    shape = graph.tensor(graph.inputs[0]).shape
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        x *= (1, 10, 100)[seed % 3]
        (want,) = net.run(None, {graph.inputs[0]: x})
        have = interpret(graph, {graph.inputs[0]: x})[graph.outputs[0]]
        assert have.shape == want.shape
        assert abs(have - want).max() <= 1e-5 * np.ptp(want)


def structured(shape: tuple[int, ...], quant: Quant, seed: int) -> np.ndarray:
    """Normal noise and waves over the input's quantised range."""
    rng = np.random.default_rng(seed)
    low, high = ((q - quant.zero_point[0]) * quant.scale[0] for q in (-128, 127))
    waves = np.zeros(shape)
    for axis, size in enumerate(shape):
        line = np.sin(np.arange(size) * rng.uniform(0.1, 2) + rng.uniform(0, 6))
        waves = waves + line.reshape(
            [-1 if i == axis else 1 for i in range(len(shape))]
        )
    mixed = rng.standard_normal(shape) + waves * rng.uniform(0, 1)
    return ((low + high) / 2 + mixed * (high - low) / 6).astype(np.float32)


def integer_session(data: bytes, shown: tuple[str, ...]) -> ort.InferenceSession:
    """ONNX Runtime with integer kernels, the outputs of `shown` operators visible.

    Without its graph rewrites it computes in float32, whose sums miss ties at random.
    A visible softmax is not rewritten: the integer one rounds down, unlike ONNX.
    """
    whole = onnx.load_model_from_string(data)
    given = {o.name for o in whole.graph.output}
    for node in whole.graph.node:
        if node.op_type in shown and node.output[0] not in given:
            whole.graph.output.append(onnx.ValueInfoProto(name=node.output[0]))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # without this, CPUs that have no VNNI saturate sums of two products to 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = 1
    made = whole.SerializeToString()
    return ort.InferenceSession(made, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", NAMES)
def test_qdq(name: str) -> None:
    """All integer inside; at most one output in a thousand is a step off."""
    data = model_path(f"{name}_qdq.onnx").read_bytes()
    graph, net = lowered(data), integer_session(data, ("Softmax",))
    ops = [node.op for node in graph.nodes]
    assert ops[0] == "quantize" and ops[-1] == "dequantize"
    inner = {t for node in graph.nodes[1:-1] for t in node.outputs}
    assert {graph.tensor(t).dtype.value for t in inner} == {"int8"}
    quant = graph.tensor(graph.nodes[0].output).quant
    assert quant is not None
    step = graph.tensor(graph.nodes[-1].inputs[0]).scale
    different = elements = 0
    seen = set()
    for seed in range(SAMPLES):
        x = structured(graph.tensor(graph.inputs[0]).shape, quant, seed)
        (want,) = net.run(list(graph.outputs), {graph.inputs[0]: x})
        have = interpret(graph, {graph.inputs[0]: x})[graph.outputs[0]]
        steps = np.rint(abs(have - want) / step)
        assert steps.max() <= 1
        different += int((steps > 0).sum())
        elements += steps.size
        seen.add(want.tobytes())
    assert different <= 0.001 * elements
    assert len(seen) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_each_layer_of_qdq(name: str) -> None:
    """Every int8 layer on ONNX Runtime's own values: at most 1 in 100,000 differs."""
    data = model_path(f"{name}_qdq.onnx").read_bytes()
    graph = lowered(data)
    net = integer_session(data, ("Softmax", "QuantizeLinear"))
    names = [o.name for o in net.get_outputs()]
    quant = graph.tensor(graph.nodes[0].output).quant
    assert quant is not None
    x = structured(graph.tensor("input").shape, quant, 1)
    known = dict(zip(names, net.run(names, {"input": x}), strict=True))
    values: dict[str, np.ndarray] = {**graph.constants, "input": x}
    different = elements = 0
    for node in graph.nodes:
        reads = [values[name] for name in node.inputs]
        (have,) = OPERATORS[node.op].reference(node, graph, reads)
        want = known.get(node.output, have)
        if node.output in known and node.op != "quantize":
            last = np.moveaxis(want, 1, -1) if want.ndim == 4 else want
            kept = node.attrs.get("channels", range(last.shape[-1]))
            want = last[..., list(kept)].reshape(have.shape)
        values[node.output] = want
        far = abs(have.astype(np.float64) - want)
        different += int((far > 0).sum())
        elements += have.size
        assert far.max() <= 1, node
    assert different <= 1e-5 * elements + 1


@pytest.mark.parametrize("name", NAMES)
def test_names_survive(name: str) -> None:
    data = model_path(f"{name}_qdq.onnx").read_bytes()
    graph = lowered(data)
    assert (graph.inputs, graph.outputs) == (("input",), ("output",))
    layers = [n.name for n in graph.nodes if n.op in ("conv2d", "depthwise_conv2d")]
    assert all(n.startswith(("conv_", "dwconv_")) and n[-1].isdigit() for n in layers)
    assert len(set(layers)) == len(layers)


@pytest.mark.parametrize("name", ("ic", "kws", "vww"))
def test_nhwc_boundary(name: str) -> None:
    """The option drops the transpose at the input; the results are the same."""
    data = model_path(f"{name}_qdq.onnx").read_bytes()
    planes, rows = lowered(data), lowered(data, input="nhwc")
    assert "transpose" not in [node.op for node in rows.nodes]
    quant = planes.tensor(planes.nodes[0].output).quant
    assert quant is not None
    x = structured(planes.tensor("input").shape, quant, 3)
    assert rows.tensor("input").shape == x.transpose(0, 2, 3, 1).shape
    moved = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    one = interpret(planes, {"input": x})["output"]
    two = interpret(rows, {"input": moved})["output"]
    assert np.array_equal(one, two)


def damaged(data: bytes, seed: int) -> bytes:
    """A few bytes changed, mostly outside of the weights; sometimes cut or doubled."""
    rng = np.random.default_rng(seed)
    broken = bytearray(data)
    ends = [0, min(3000, len(data)), max(0, len(data) - 6000), len(data)]
    for _ in range(int(rng.integers(1, 6))):
        part = int(rng.integers(0, 3))
        if ends[part] >= ends[part + 1]:
            part = 0
        at = int(rng.integers(ends[part], ends[part + 1]))
        match int(rng.integers(0, 3)):
            case 0:
                broken[at] = int(rng.integers(0, 256))
            case 1:
                broken[at] ^= 1 << int(rng.integers(0, 8))
            case _:
                broken[at] = int(rng.choice([0, 1, 127, 128, 255]))
    if seed % 10 == 0:
        broken = broken[: int(rng.integers(0, len(broken)))]
    if seed % 10 == 1:
        at = int(rng.integers(0, len(broken)))
        broken[at:at] = broken[at : at + int(rng.integers(1, 200))]
    return bytes(broken)


def survive(data: bytes, count: int) -> int:
    """Loads and lowers every damaged file; how many were refused."""
    refused = 0
    for seed in range(count):
        start = time.monotonic()
        try:
            lowered(damaged(data, seed))
        except BuildError as error:
            refused += 1
            assert all(str(problem) for problem in error.problems)
        assert time.monotonic() - start < 5, seed
    return refused


@pytest.mark.parametrize("name", ("digits_f32", "digits_int8"))
def test_damaged_digits(name: str) -> None:
    refused = survive((DIGITS / f"{name}.onnx").read_bytes(), 300)
    assert 100 < refused < 300


@pytest.mark.parametrize("kind", ("f32", "qdq"))
@pytest.mark.parametrize("name", NAMES)
def test_damaged_models(name: str, kind: str) -> None:
    assert survive(model_path(f"{name}_{kind}.onnx").read_bytes(), 200) > 10
