"""Features of sound as exporters write them in ONNX: log-mel and cepstral coefficients
of STFT, windows and mel weights, beside ONNX Runtime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from tests.toolchains import ROOT, require_module

LENGTH, HOP, BANDS, COEFFICIENTS, SAMPLES = 128, 64, 12, 8, 640
FLOAT = TensorProto.FLOAT


def _sound() -> Array:
    rng, t = np.random.default_rng(2), np.arange(SAMPLES)
    made = np.sin(t * (0.05 + t / 2000)) + 0.05 * rng.normal(0, 1, SAMPLES)
    return made.astype(np.float32)[None]


def _exported(window: str, cepstra: bool) -> bytes:
    """As torch.onnx writes torchaudio's MelSpectrogram and MFCC: power, decibels."""
    angle = np.pi * np.outer(np.arange(BANDS) + 0.5, np.arange(COEFFICIENTS)) / BANDS
    values: dict[str, Any] = {
        "size": np.int64(LENGTH), "hop": np.int64(HOP), "bands": np.int64(BANDS),
        "rate": np.int64(16000), "low": np.float32(100), "high": np.float32(7000),
        "last": np.array([-1], np.int64), "least": np.float32(1e-10),
        "ten": np.float32(10 / np.log(10)), "two": np.float32(2),
        "dct": np.cos(angle).astype(np.float32),
    }  # fmt: skip

    def node(op: str, reads: str, makes: str, **attrs: Any) -> onnx.NodeProto:
        return helper.make_node(op, reads.split(), [makes], name=makes, **attrs)

    nodes = [
        node(window, "size", "window", output_datatype=FLOAT),
        node("Unsqueeze", "sound last", "x"),
        node("STFT", "x hop window", "spectrum", onesided=1),
        node("Pow", "spectrum two", "squares"),
        node("ReduceSum", "squares last", "power", keepdims=0),
        node("MelWeightMatrix", "bands size rate low high", "mel"),
        node("MatMul", "power mel", "energies"),
        node("Max", "energies least", "held"),
        node("Log", "held", "log"),
        node("Mul", "log ten", "decibels"),
    ]
    name, count = "decibels", BANDS
    if cepstra:
        nodes.append(node("MatMul", "decibels dct", "cepstra"))
        name, count = "cepstra", COEFFICIENTS
    rows = (SAMPLES - LENGTH) // HOP + 1
    used = {n for one in nodes for n in one.input} & values.keys()
    graph = helper.make_graph(
        nodes, "sound",
        [helper.make_tensor_value_info("sound", FLOAT, (1, SAMPLES))],
        [helper.make_tensor_value_info(name, FLOAT, (1, rows, count))],
        [numpy_helper.from_array(np.asarray(values[n]), n) for n in sorted(used)],
    )  # fmt: skip
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("cepstra", [False, True], ids=["log_mel", "mfcc"])
@pytest.mark.parametrize("window", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_features_that_are_exported(window: str, cepstra: bool) -> None:
    require_module("onnxruntime")
    import onnxruntime

    data, sound = _exported(window, cepstra), _sound()
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted: Any = theirs.run(None, {"sound": sound})[0]
    assert np.ptp(wanted) > 30  # decibels
    library = pybuild.build(data)
    for backend in ("c", "llvm") if window == "HannWindow" else ("llvm",):
        net = library.host(backend)
        found: Any = net.run(sound=sound).popitem()[1]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


# of the newer exporter: torchaudio's own transforms; the least spread of what they give
_EXPORTED = {
    "log_mel": 30, "mfcc": 30, "decibels": 30, "cepstra": 10, "cepstra_decibels": 30,
    "magnitudes": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", _EXPORTED)
def test_features_that_pytorch_exported(name: str) -> None:
    """Files of tests/exported/export_sound.py: torchaudio's tables, and transforms."""
    require_module("onnxruntime")
    import onnxruntime

    data = (ROOT / "tests" / "exported" / f"sound_{name}.onnx").read_bytes()
    theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    wanted: Any = theirs.run(None, {"sound": _sound()})[0]
    assert np.ptp(wanted) > _EXPORTED[name]
    library = pybuild.build(data)
    for backend in ("c", "llvm") if name in ("mfcc", "decibels") else ("llvm",):
        found: Any = library.host(backend).run(sound=_sound()).popitem()[1]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
