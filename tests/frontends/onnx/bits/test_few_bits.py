"""Weights of few bits, in blocks or not, raw integers that are joined before they are
dequantised, and what else exporters write of sizes: what ONNX Runtime gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret
from pybuild.verify.reference import reference

RNG = np.random.default_rng(4)
WEIGHTS = RNG.integers(-8, 8, (64, 16))
SCALES = RNG.uniform(0.01, 0.1, (2, 16)).astype(np.float32)
INT4, UINT4 = TensorProto.INT4, TensorProto.UINT4
Ends = tuple[str, int, Sequence[Any]]


def _model(
    nodes: list[onnx.NodeProto], x: Ends, y: Ends, held: dict[str, Any],
    kinds: dict[str, int] | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """kinds: of tensors of 4 bits"""
    kinds = kinds or {}
    values = [
        helper.make_tensor(name, kinds[name], np.shape(value), np.ravel(value).tolist())
        if name in kinds
        else numpy_helper.from_array(np.asarray(value), name)
        for name, value in held.items()
    ]
    ends = [helper.make_tensor_value_info(*end) for end in (x, y)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], values)
    domains = sorted({"", *(node.domain for node in nodes)})
    opsets = [helper.make_opsetid(d, 1 if d else 21) for d in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _equal(model: onnx.ModelProto, folder: Path, x: Array, built: bool = False) -> None:
    path = folder / "m.onnx"
    onnx.save(model, path)
    loaded = pybuild.load(path)
    graph = loaded.lower()
    theirs = reference("ort", path, graph).run({"x": x})["y"]
    np.testing.assert_allclose(interpret(graph, {"x": x})["y"], theirs, 1e-5, 1e-4)
    for code in ("c", "llvm") if built else ():
        net = loaded.build(name="m").host(code)
        np.testing.assert_allclose(net.run(x=x)["y"], theirs, 1e-5, 1e-4)
        net.close()


def _product(held: dict[str, Any], kinds: dict[str, int], **attrs: Any) -> Any:
    nodes = [
        helper.make_node("DequantizeLinear", [*held], ["f"], **attrs),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    ends = ("x", TensorProto.FLOAT, [2, 64]), ("y", TensorProto.FLOAT, [2, 16])
    return _model(nodes, *ends, held, kinds)


@pytest.mark.parametrize("kind", [INT4, UINT4])
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_packed_in_quantised_layers(target: str, kind: int, tmp_path: Path) -> None:
    """The file's weights stay two in a byte, signed or not; the bits are the file's."""
    low = 8 if kind == UINT4 else 0
    chance = np.random.default_rng(9)
    weights = chance.integers(-8, 8, (96, 24))
    held: dict[str, Any] = {
        "w": weights + low, "s": chance.uniform(0.01, 0.1, 24).astype(np.float32),
        "z": np.full(24, low), "xs": np.float32(0.05), "xz": np.int8(3),
        "ys": np.float32(0.4), "yz": np.int8(-5),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["f"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["g"], axis=1),
        helper.make_node("MatMul", ["f", "g"], ["h"]),
        helper.make_node("QuantizeLinear", ["h", "ys", "yz"], ["y"]),
    ]
    ends = ("x", TensorProto.INT8, [2, 96]), ("y", TensorProto.INT8, [2, 24])
    path = tmp_path / "m.onnx"
    onnx.save(_model(nodes, *ends, held, {"w": kind, "z": kind}), path)
    loaded = pybuild.load(path)
    library = loaded.build(name="m", target=target)
    sizes = [
        packed.array.nbytes
        for step in library.plan.steps
        for packed in step.candidate.constants
        if packed.role.startswith("weights")
    ]
    assert sizes == [weights.size // 2]
    x = chance.integers(-128, 128, (2, 96)).astype(np.int8)
    theirs = reference("ort", path, loaded.lower()).run({"x": x})["y"]
    net = library.host("llvm")
    np.testing.assert_array_equal(net.run(x=x)["y"], theirs)
    net.close()


X = RNG.normal(0, 1, (2, 64)).astype(np.float32)
ZEROS = RNG.integers(-3, 4, (2, 16))
FORMS: dict[str, tuple[dict[str, Any], dict[str, int], dict[str, int]]] = {
    "blocks": ({"w": WEIGHTS, "s": SCALES}, {"w": INT4}, {"axis": 0, "block_size": 32}),
    "blocks with zero points": (
        {"w": WEIGHTS, "s": SCALES, "z": ZEROS}, {"w": INT4, "z": INT4},
        {"axis": 0, "block_size": 32},
    ),
    "channels": ({"w": WEIGHTS, "s": SCALES[0]}, {"w": INT4}, {"axis": 1}),
    "unsigned": (
        {"w": WEIGHTS + 8, "s": SCALES[0], "z": np.full(16, 8)},
        {"w": UINT4, "z": UINT4}, {"axis": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_dequantised_weights_of_4_bits(name: str, tmp_path: Path) -> None:
    held, kinds, attrs = FORMS[name]
    _equal(_product(held, kinds, **attrs), tmp_path, X, name == "blocks")


@pytest.mark.parametrize(
    ("rows", "bits", "size", "more"),
    [(64, 4, 32, ()), (40, 4, 16, ("z",)), (64, 8, 32, ("z", "", "b")),
     (64, 4, 16, ("", "", "b")), (40, 4, 16, ("real",))],
)  # fmt: skip
def test_products_with_few_bits(
    rows: int, bits: int, size: int, more: Sequence[str], tmp_path: Path
) -> None:
    """MatMulNBits of com.microsoft, as onnxruntime-genai and optimum write it."""
    count, x = -(-rows // size), RNG.normal(0, 1, (2, rows)).astype(np.float32)
    held = {
        "w": RNG.integers(0, 256, (16, count, size * bits // 8)).astype(np.uint8),
        "s": RNG.uniform(0.01, 0.1, 16 * count).astype(np.float32),
        "z": RNG.integers(0, 256, 16 * -(-count * bits // 8)).astype(np.uint8),
        "real": RNG.uniform(5, 9, 16 * count).astype(np.float32),
        "b": RNG.normal(0, 1, 16).astype(np.float32),
    }
    held = {n: v for n, v in held.items() if n in ("w", "s", *more)}
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s", *more], ["y"], domain="com.microsoft", K=rows,
        N=16, bits=bits, block_size=size,
    )  # fmt: skip
    ends = ("x", TensorProto.FLOAT, [2, rows]), ("y", TensorProto.FLOAT, [2, 16])
    _equal(_model([node], *ends, held), tmp_path, x)


@pytest.mark.parametrize("parts", [(24, 40), (100, 120)])
def test_raw_integers_are_joined_before_they_are_dequantised(
    parts: tuple[int, int], tmp_path: Path
) -> None:
    a, b = (RNG.integers(-128, 128, (n, 16)).astype(np.int8) for n in parts)
    nodes = [
        helper.make_node("Concat", ["a", "b"], ["w"], axis=0),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], axis=1),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    rows = sum(parts)
    ends = ("x", TensorProto.FLOAT, [2, rows]), ("y", TensorProto.FLOAT, [2, 16])
    held = {"a": a, "b": b, "s": SCALES[0], "z": np.zeros(16, np.int8)}
    model = _model(nodes, *ends, held)
    _equal(model, tmp_path, RNG.normal(0, 1, (2, rows)).astype(np.float32))


def _refused(model: onnx.ModelProto) -> list[str]:
    with pytest.raises(BuildError) as caught:
        pybuild.load(model)
    return [str(problem) for problem in caught.value.problems]


def test_sizes_below_0_are_open() -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    ends = [(name, TensorProto.FLOAT, [-1, -1]) for name in "xy"]
    model = _model([relu], *ends, {})
    said = "model.onnx: input 'x' has a dynamic dimension 'x."
    assert _refused(model) == [
        f"{said}0'. Hint: --input-dim x.0=1", f"{said}1'. Hint: --input-dim x.1=SIZE"
    ]  # fmt: skip
    graph = pybuild.load(model, input_dims={"x.0": 1, "x.1": 5}).lower()
    assert graph.tensor("y").shape == (1, 5)


def test_hints_that_lead_on() -> None:
    ends = [(name, TensorProto.FLOAT, [2, 64]) for name in "xy"]
    held = {"s": np.float32(0.1), "z": np.float32(0), "b": np.float32(8)}
    domain = "qonnx.custom_op.general"
    node = helper.make_node("Quant", ["x", *held], ["y"], domain=domain)
    assert _refused(_model([node], *ends, held)) == [
        f"model.onnx: node 'y' (Quant): the operator {domain}.Quant is not supported. "
        "Hint: convert it to QCDQ: qonnx-convert --output-style qcdq"
    ]
    bits = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=64, N=64,
        bits=3, block_size=32,
    )  # fmt: skip
    held = {"w": np.zeros((64, 2, 12), np.uint8), "s": np.ones(128, np.float32)}
    assert _refused(_model([bits], *ends, held)) == [
        "model.onnx: node 'y' (MatMulNBits): 3 bits are not supported. "
        "Hint: 2, 4 and 8 are"
    ]


def _weights(library: pybuild.Library) -> dict[str, int]:
    """Bytes of weights by their role."""
    found: dict[str, int] = {}
    for step in library.plan.steps:
        for packed in step.candidate.constants:
            if packed.role.startswith("weights"):
                found[packed.role] = found.get(packed.role, 0) + packed.array.nbytes
    return found


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("form", [*FORMS, "MatMulNBits", "MatMulNBits with points"])
def test_packed_in_layers_of_reals(form: str, target: str, tmp_path: Path) -> None:
    """Eight weights in a word of flash; the results are ONNX Runtime's."""
    if form in FORMS:
        held, kinds, attrs = FORMS[form]
        model = _product(held, kinds, **attrs)
    else:
        more = ["z"] if form.endswith("points") else []
        held = {
            "w": RNG.integers(0, 256, (16, 2, 16)).astype(np.uint8),
            "s": RNG.uniform(0.01, 0.1, 32).astype(np.float32),
        }
        held |= {n: RNG.integers(0, 256, 16).astype(np.uint8) for n in more}
        node = helper.make_node(
            "MatMulNBits", ["x", "w", "s", *more], ["y"], domain="com.microsoft",
            K=64, N=16, bits=4, block_size=32,
        )  # fmt: skip
        ends = ("x", TensorProto.FLOAT, [2, 64]), ("y", TensorProto.FLOAT, [2, 16])
        model = _model([node], *ends, held)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    loaded = pybuild.load(path)
    theirs: Any = reference("ort", path, loaded.lower()).run({"x": X})["y"]
    library = loaded.build(name="m", target=target, optimise="size")
    assert _weights(library) == {"weights4": 64 * 16 // 2}
    for code in ("llvm", "c"):
        net = library.host(code)
        np.testing.assert_allclose(net.run(x=X)["y"], theirs, 1e-5, 1e-4)
        net.close()
    assert _weights(loaded.build(name="m", target=target, optimise="speed")) == {
        "weights": 4 * 64 * 16
    }


TABLES: dict[str, tuple[int, str, bool]] = {
    "bytes of two": (4, "uint8", False), "with zero points": (4, "uint8", True),
    "int4": (4, "int4", False), "uint4 with zero points": (4, "uint4", True),
    "bytes": (8, "uint8", True),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_a_table_of_few_bits(name: str, tmp_path: Path) -> None:
    """GatherBlockQuantized; the table has as many bytes of flash as in the file."""
    bits, kind, points = TABLES[name]
    chance, rows, count, size = np.random.default_rng(2), 40, 64, 16
    least = -8 if kind == "int4" else 0
    whole = kind == "uint8"
    data = chance.integers(0, 256, (rows, count * bits // 8)).astype(np.uint8)
    if not whole:
        data = chance.integers(least, least + 16, (rows, count))
    held: dict[str, Any] = {
        "d": data, "s": chance.uniform(0.01, 0.1, (rows, count // size)).astype("f"),
    }  # fmt: skip
    if points:
        zeros = chance.integers(0, 256, (rows, count // size * bits // 8))
        held["z"] = zeros.astype(np.uint8) if whole else chance.integers(
            0, 16, (rows, count // size)
        )  # fmt: skip
    kinds = {} if whole else dict.fromkeys(
        {"d", "z"} & {*held}, INT4 if kind == "int4" else UINT4
    )  # fmt: skip
    attrs = {"gather_axis": 0, "quantize_axis": 1, "block_size": size, "bits": bits}
    node = helper.make_node(
        "GatherBlockQuantized", ["d", "x", "s", *(["z"] if points else [])], ["y"],
        domain="com.microsoft", **attrs,
    )  # fmt: skip
    ends = ("x", TensorProto.INT64, [2, 3]), ("y", TensorProto.FLOAT, [2, 3, count])
    path, x = tmp_path / "m.onnx", np.asarray([[3, 0, 39], [7, 7, 1]])
    onnx.save(_model([node], *ends, held, kinds), path)
    loaded = pybuild.load(path)
    theirs = reference("ort", path, loaded.lower()).run({"x": x})["y"]
    library = loaded.build(name="m", target="cortex-m4")
    for code in ("llvm", "c"):
        net = library.host(code)
        np.testing.assert_array_equal(net.run(x=x)["y"], theirs)
        net.close()
    # the table; a scale and a zero point of a byte for each block
    flash = rows * (count * bits // 8 + 5 * count // size)
    assert library.report.flash.weights <= flash + 16
