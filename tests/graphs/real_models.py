"""The real networks as tests and benchmarks see them: what their builds must reach,
and how far their outputs are from an interpreter's. Knows no kernel and no plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tflite

import pybuild
from pybuild.dtype import Array
from pybuild.verify.compare import step_of
from pybuild.verify.reference import Reference, reference
from pybuild.verify.samples import samples

NETWORKS = ("kws", "vww", "ic", "ad")
KINDS = ("int8.tflite", "f32.tflite", "f32.onnx", "qdq.onnx")
FILES = tuple(f"{network}_{kind}" for kind in KINDS for network in NETWORKS)
TFLITE = tuple(name for name in FILES if name.endswith(".tflite"))
HYBRID = "kws_f32.tflite"  # int8 weights, float activations
FLOATS = tuple(name for name in FILES if "f32" in name and name != HYBRID)
# bytes with --input reuse
ARENAS = {"kws": 16_000, "vww": 55_296, "ic": 49_152, "ad": 768}
# and with layers in lock step
ROW_ARENAS = {"kws": 4_980, "vww": 28_032, "ic": 11_420, "ad": 768}
# arena and instance at most, where the input may be written over, and where it comes
# in rows
RESIDENT_RAM = {"kws": 6_600, "vww": 41_500, "ic": 15_500, "ad": 840}
CONSUMABLE_RAM = {"kws": 5_100, "vww": 29_500, "ic": 11_500}
PUSHED_RAM = {"kws": 6_200, "vww": 14_800, "ic": 13_000}
BACKENDS = ("c", "llvm")


def stem(name: str) -> str:
    return name.partition(".")[0]


def kind_of_reference(path: Path) -> str:
    return "litert" if path.suffix == ".tflite" else "ort"


@dataclass(frozen=True)
class Distance:
    """relative: to the range that the output has in the samples."""

    absolute: float
    relative: float


def worst_distance(
    library: pybuild.Library, path: Path, backend: str, count: int
) -> Distance:
    """Greatest one of an output from what the interpreter of the file at `path` gives.

    path  the library's own model, or one that takes and gives the same
    """
    graph = pybuild.load(path).lower()
    known = reference(kind_of_reference(path), path, graph)
    far = [0.0] * len(graph.outputs)
    low, high = [math.inf] * len(far), [-math.inf] * len(far)
    net = library.host(backend)
    for given in samples(library.plan.graph, count):
        net.run(**given.inputs)
        for index, want in enumerate(_outputs(known, graph, given.inputs)):
            have = net.get_output(index).reshape(want.shape)
            far[index] = max(far[index], float(np.abs(have - want).max()))
            low[index] = min(low[index], float(want.min()))
            high[index] = max(high[index], float(want.max()))
    net.close()
    spans = (top - bottom for bottom, top in zip(low, high, strict=True))
    return Distance(max(far), max(f / s for f, s in zip(far, spans, strict=True)))


def _outputs(
    known: Reference, graph: pybuild.ir.graph.Graph, inputs: Mapping[str, Array]
) -> Iterator[Array]:
    given = zip(graph.inputs, inputs.values(), strict=True)
    found = known.run({n: v.reshape(graph.tensor(n).shape) for n, v in given})
    return (found[name] for name in graph.outputs)


@dataclass(frozen=True)
class Steps:
    """Of a QDQ model's outputs against ONNX Runtime; most: the furthest, in steps."""

    elements: int
    unequal: int
    most: int


def steps_from_onnx_runtime(
    library: pybuild.Library,
    path: Path,
    backend: str,
    count: int,
    integer_softmax: bool = False,
) -> Steps:
    """ONNX Runtime as it runs by default, its convolutions fused to integer kernels.

    integer_softmax  else it is kept out, by making the float one an output: it is
                     steps away from the standard's result for many inputs
    """
    import onnx
    import onnxruntime as ort

    model = onnx.load(path)
    floats = [node.output[0] for node in model.graph.node if node.op_type == "Softmax"]
    if not integer_softmax:
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in floats)
    options = ort.SessionOptions()
    # without this, CPUs that have no VNNI saturate sums of two products to 16 bits
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    known = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (name,) = library.plan.graph.outputs
    net, step = library.host(backend), step_of(library.plan.graph, name)
    far = []
    for given in samples(library.plan.graph, count):
        net.run(**given.inputs)
        want = known.run([name], dict(given.inputs))[0]
        far.append(np.rint(np.abs(net.get_output(0) - want) / step))
    net.close()
    all_ = np.stack(far)
    return Steps(all_.size, int(np.count_nonzero(all_)), int(all_.max()))


# ---- TensorFlow Lite Micro's dense layers, from the file alone ----------------


def twice_rounded(path: Path, image: Array) -> Array:
    """An int8 network of dense layers with one scale each, as TensorFlow Lite Micro
    computes it: a Q31 multiplier, then a shift, each of them rounding.

    Source  fully_connected.cc, kernel_util.cc, gemmlowp fixedpoint.h: the scale of
            the product is a float32
    """
    model = tflite.Model.GetRootAs(path.read_bytes(), 0)
    graph = model.Subgraphs(0)
    values = {graph.Inputs(0): image.astype(np.int64)}
    for index in range(graph.OperatorsLength()):
        node = graph.Operators(index)
        code = model.OperatorCodes(node.OpcodeIndex()).BuiltinCode()
        assert code == tflite.BuiltinOperator.FULLY_CONNECTED, code
        values[node.Outputs(0)] = _dense(model, graph, node, values[node.Inputs(0)])
    return values[graph.Outputs(0)].astype(np.int8)


def _dense(model: Any, graph: Any, node: Any, x: Array) -> Array:
    read, weights, add = (graph.Tensors(node.Inputs(i)) for i in range(3))
    made = graph.Tensors(node.Outputs(0))
    w = _constant(model, weights, np.int8).reshape(weights.ShapeAsNumpy())
    bias = _constant(model, add, np.int32)
    acc = (x - _zero(read)) @ w.T + bias
    real = float(_scale(read) * _scale(weights)) / float(_scale(made))
    fraction, shift = math.frexp(real)
    q31 = math.floor(fraction * 2**31 + 0.5)
    assert q31 < 2**31 and shift <= 0
    options = tflite.FullyConnectedOptions()
    options.Init(node.BuiltinOptions().Bytes, node.BuiltinOptions().Pos)
    relu = options.FusedActivationFunction() == tflite.ActivationFunctionType.RELU
    low = _zero(made) if relu else -128
    scaled = [_shifted(_high_half(int(a), q31), -shift) for a in acc.ravel()]
    whole = np.array(scaled, np.int64).reshape(acc.shape) + _zero(made)
    return np.clip(whole, low, 127)


def _high_half(a: int, b: int) -> int:
    """SaturatingRoundingDoublingHighMul: a nudge by sign, then C's division."""
    product = a * b
    nudged = product + (2**30 if product >= 0 else 1 - 2**30)
    half = abs(nudged) >> 31
    return half if nudged >= 0 else -half


def _shifted(x: int, bits: int) -> int:
    """RoundingDivideByPOT: to the nearest, ties away from zero."""
    magnitude = (abs(x) + ((1 << bits) >> 1)) >> bits
    return magnitude if x >= 0 else -magnitude


def _constant(model: Any, tensor: Any, kind: type) -> Array:
    data = model.Buffers(tensor.Buffer()).DataAsNumpy().tobytes()
    return np.frombuffer(data, kind).astype(np.int64)


def _scale(tensor: Any) -> np.float32:
    assert tensor.Quantization().ScaleLength() == 1
    return np.float32(tensor.Quantization().Scale(0))


def _zero(tensor: Any) -> int:
    return int(tensor.Quantization().ZeroPoint(0))
