"""Every operator that onnxruntime.quantization knows, as each of its forms writes it:
integers equal to the standard and to ONNX Runtime, or refused by name.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.frontends.onnx.reader.microsoft import REFUSED
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.verify.standard import standard
from tests.frontends.onnx.models import expected, lowered, model
from tests.frontends.onnx.quantised_nets import (
    NETS,
    STANDS,
    F,
    quantised,
    shape_of,
)

# the standard's results, and not ONNX Runtime's, whose kernels round otherwise
_OTHERWISE = ("AveragePool",)
# what onnxruntime.quantization makes no file of that could be run
_BROKEN = {("Where", "qop")}
# what is computed of real numbers between the integers
_REAL = (
    "BatchNormalization", "CumSum", "InstanceNormalization", "LayerNormalization",
    "LSTM", "MatMul", "Gemm_of_a_product", "Conv_3d", "ConvTranspose",
    "ConvTranspose_groups_1d",
)  # fmt: skip
_EVERY = [
    (name, form)
    for name in NETS
    for form in ("qdq", "qop")
    if (name, form) not in _BROKEN
]


def test_every_operator_of_the_registries_has_a_net() -> None:
    from onnxruntime.quantization import registry

    tables = (registry.QLinearOpsRegistry, registry.QDQRegistry)
    known = {kind for table in tables for kind in table}
    known |= set(registry.IntegerOpsRegistry)
    refused = {"Attention", "EmbedLayerNormalization"}  # fused: QAttention, QEmbed...
    assert {f"Q{kind}" for kind in refused} <= REFUSED.keys()
    assert known - refused - NETS.keys() - STANDS.keys() == set()


def _inputs(name: str) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(3)
    return {"x": chance.standard_normal(shape_of(name)).astype(F)}


def _floats(graph: Graph) -> list[str]:
    """Operators that compute with real numbers."""
    ends = ("quantize", "dequantize")
    return [
        node.op
        for node in graph.nodes
        if node.op not in ends and graph.tensor(node.inputs[0]).dtype.is_float
    ]


@pytest.mark.parametrize(("name", "form"), _EVERY)
def test_static(name: str, form: str, tmp_path: Path) -> None:
    data, inputs = quantised(name, form), _inputs(name)
    made = lowered(data)
    have = interpret(made, inputs)
    (tmp_path / "net.onnx").write_bytes(data)
    fair = standard(tmp_path / "net.onnx", made.outputs)(inputs)
    theirs = expected(data, inputs)
    for output in made.outputs:
        # dequantised: two float32 roundings of one product
        np.testing.assert_allclose(have[output], fair[output], 1e-6, 1e-6)
        if name not in _OTHERWISE:
            np.testing.assert_allclose(have[output], theirs[output], 1e-6, 1e-6)
    if name not in _REAL:
        assert _floats(made) == []


@pytest.mark.parametrize("name", ["Conv_depthwise_1d", "Gemm", "MatMul", "Resize"])
def test_dynamic(name: str) -> None:
    data, inputs = quantised(name, "dynamic"), _inputs(name)
    have, want = interpret(lowered(data), inputs), expected(data, inputs)
    for output, value in want.items():
        np.testing.assert_allclose(have[output], value, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_where_of_integers(kind: str) -> None:
    """com.microsoft.QLinearWhere, of which the quantiser itself makes no valid file."""
    low = np.iinfo(kind).min
    inputs = {
        "c": np.arange(12).reshape(3, 4) % 3 == 0,
        "x": np.arange(low, low + 12).astype(kind).reshape(3, 4),
        "y": np.arange(low + 90, low + 102).astype(kind).reshape(3, 4),
    }
    names = ["xs", "xz", "ys", "yz", "zs", "zz"]
    numbers = [F(0.02), low + 7, F(0.05), low + 90, F(0.03), low + 40]
    constants = {
        name: np.asarray(number, kind if name[1] == "z" else F)
        for name, number in zip(names, numbers, strict=True)
    }
    reads = ["c", "x", "xs", "xz", "y", "ys", "yz", "zs", "zz"]
    data = model(
        [("com.microsoft.QLinearWhere", reads, ["z"], {})], inputs, ["z"], constants
    )
    have = interpret(lowered(data), inputs)["z"]
    assert (have == expected(data, inputs)["z"]).all()
