"""float16 weights of .tflite, .onnx and .pt2 files, read by float32 layers: two bytes
each in flash, and the results of LiteRT and of ONNX Runtime."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from pybuild.frontends.onnx.load import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.reader.program import Call, Kind, Program, Ref
from pybuild.host.trace import recorded
from pybuild.library import Library
from pybuild.model import Model
from pybuild.verify.reference import reference
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import ROOT

RNG = np.random.default_rng(6)
KERNELS = RNG.normal(size=(16, 3, 3, 8)).astype(np.float16)
MATRIX = RNG.normal(size=(16, 16)).astype(np.float16)
BIAS = RNG.normal(size=16).astype(np.float16)
X = RNG.normal(size=(1, 6, 6, 8)).astype(np.float32)
# of the weights, which are not all of flash's constants
BYTES = 2 * (KERNELS.size + MATRIX.size)


def _packed(library: Library) -> int:
    """Bytes of float16 weights; those of other layers are counted as none."""
    return sum(
        p.array.nbytes
        for s in library.plan.steps
        for p in s.candidate.constants
        if p.role == "weights16"
    )


def _tflite() -> bytes:
    """Of float16 a convolution, the mean of its pixels, a dense layer."""
    tensors = [
        FileTensor("x", X.shape),
        FileTensor("half", KERNELS.shape, "FLOAT16", KERNELS),
        FileTensor("w", KERNELS.shape),
        FileTensor("half_bias", BIAS.shape, "FLOAT16", BIAS),
        FileTensor("b", BIAS.shape),
        FileTensor("c", (1, 4, 4, 16)),
        FileTensor("axes", (2,), "INT32", np.asarray([1, 2], np.int32)),
        FileTensor("m", (1, 16)),
        FileTensor("half_matrix", MATRIX.shape, "FLOAT16", MATRIX),
        FileTensor("d", MATRIX.shape),
        FileTensor("y", (1, 16)),
    ]
    once = {"Padding": 1, "StrideH": 1, "StrideW": 1}
    once |= {"DilationHFactor": 1, "DilationWFactor": 1}
    operators = [
        *(FileOperator("DEQUANTIZE", (n,), (n + 1,), "DequantizeOptions")
          for n in (1, 3, 8)),
        FileOperator("CONV_2D", (0, 2, 4), (5,), "Conv2DOptions", once),
        FileOperator("MEAN", (5, 6), (7,), "ReducerOptions"),
        FileOperator("FULLY_CONNECTED", (7, 9), (10,), "FullyConnectedOptions"),
    ]  # fmt: skip
    return write(tensors, operators, [0], [10])


@pytest.mark.parametrize("compress", ["none", "lz4"])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_tflite(target: str, compress: str) -> None:
    data = _tflite()
    model = Model("m.tflite", load_tflite("m.tflite", data, {}), "litert", "0" * 64)
    library = model.build(
        None, name="m", target=target, optimise="size", compress=compress
    )
    assert BYTES <= _packed(library) <= 1.02 * BYTES
    samples = [{"x": X}, {"x": -X}]
    net = library.host("llvm")
    for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
        found = recorded(net, sample)["y"]
        np.testing.assert_allclose(found, theirs["y"], 1e-5, 1e-5)


def _onnx() -> onnx.ModelProto:
    """Conv, then MatMul, of float16 initializers that Cast makes float32."""
    held = {"k": KERNELS.transpose(0, 3, 1, 2), "v": BIAS, "m": MATRIX.T}
    nodes = [
        *(
            helper.make_node("Cast", [n], [f"{n}32"], to=TensorProto.FLOAT)
            for n in held
        ),
        helper.make_node("Conv", ["x", "k32", "v32"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m32"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 6, 6)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 16)),
    ]
    given = [
        numpy_helper.from_array(np.ascontiguousarray(v), n) for n, v in held.items()
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], given)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_onnx(target: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(_onnx(), path)
    loaded = pybuild.load(path)
    library = loaded.build(name="m", target=target, optimise="size")
    assert BYTES <= _packed(library) <= 1.02 * BYTES
    x = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
    theirs: Any = reference("ort", path, loaded.lower()).run({"x": x})["y"]
    for code in ("llvm", "c"):
        net = library.host(code)
        np.testing.assert_allclose(net.run(x=x)["y"], theirs, 1e-5, 1e-5)


def _program(weights: Mapping[str, Array]) -> Program:
    """Half parameters of a convolution and of a Linear, `.to(torch.float32)`."""

    def call(target: str, output: str, **args: object) -> Call:
        where = f"net: node '{output}'"
        return Call(f"aten.{target}", output, args, (output,), where)

    calls = (
        *(call("_to_copy.default", f"{n}32", self=Ref(n), dtype="float32")
          for n in weights),
        call("convolution.default", "c", input=Ref("x"), weight=Ref("k32"),
             bias=Ref("v32"), stride=[1, 1], padding=[0, 0], dilation=[1, 1],
             transposed=False, output_padding=[0, 0], groups=1),
        call("mean.dim", "g", self=Ref("c"), dim=[2, 3], keepdim=False),
        call("linear.default", "y", input=Ref("g"), weight=Ref("m32")),
    )  # fmt: skip
    shapes = {n: v.shape for n, v in weights.items()}
    kinds = dict.fromkeys(weights, "float16")
    real = {f"{n}32": v.shape for n, v in weights.items()}
    real |= {"x": (1, 8, 6, 6), "c": (1, 16, 4, 4), "g": (1, 16), "y": (1, 16)}
    return Program(
        "net", calls, ("x",), ("y",), dict(weights), {**shapes, **real},
        {**kinds, **dict.fromkeys(real, "float32")},
    )  # fmt: skip


def test_torch(tmp_path: Path) -> None:
    """Of a program with half parameters the bits are those of the ONNX file."""
    weights = {
        "k": np.ascontiguousarray(KERNELS.transpose(0, 3, 1, 2)), "v": BIAS, "m": MATRIX
    }  # fmt: skip
    message, _ = converted(_program(weights))
    x = np.ascontiguousarray(X.transpose(0, 3, 1, 2))
    found = []
    for data in (message.SerializeToString(), _onnx().SerializeToString()):
        model = Model("net", load_onnx("net", data, {}), "onnx", "0" * 64)
        library = model.build(name="m", target="cortex-m4", optimise="size")
        assert BYTES <= _packed(library) <= 1.02 * BYTES
        found.append(library.host("llvm").run(x=x)["y"])
    np.testing.assert_array_equal(found[0], found[1])


def test_flash_beside_the_file() -> None:
    """A file of many weights takes no more flash than it has bytes."""
    w = RNG.normal(size=(128, 256)).astype(np.float16)
    tensors = [
        FileTensor("x", (1, 256)),
        FileTensor("half", w.shape, "FLOAT16", w),
        FileTensor("w", w.shape),
        FileTensor("y", (1, 128)),
    ]
    operators = [
        FileOperator("DEQUANTIZE", (1,), (2,), "DequantizeOptions"),
        FileOperator("FULLY_CONNECTED", (0, 2), (3,), "FullyConnectedOptions"),
    ]
    data = write(tensors, operators, [0], [3])
    model = Model("m.tflite", load_tflite("m.tflite", data, {}), "litert", "0" * 64)
    for target in ("cortex-m4", "cortex-m55"):
        report = model.build(None, name="m", target=target).report
        assert report.flash.weights <= 1.02 * len(data)
        fast = model.build(None, name="m", target=target, optimise="speed").report
        assert fast.flash.weights > 1.9 * len(data)


def test_weights_that_can_be_replaced_are_float32() -> None:
    model = Model("m", load_tflite("m", _tflite(), {}), "litert", "0" * 64)
    library = model.build(None, name="m", target="cortex-m4", params="replaceable")
    assert _packed(library) == 0


@pytest.mark.parametrize("points", [False, True])
def test_torchao_groups(points: bool) -> None:
    """Integers of 4 bits with a scale for each group of a row, as torchao's
    Int4WeightOnlyConfig and IntxWeightOnlyConfig export them."""
    chance = np.random.default_rng(8)
    whole = chance.integers(-8, 8, (24, 64)).astype(np.int8)
    scale = chance.uniform(0.01, 0.1, (24, 2)).astype(np.float32)
    zero = chance.integers(-3, 4, (24, 2)).astype(np.int8) * np.int8(points)
    where = "net: node 'f'"
    given = {
        "input": Ref("w"), "block_size": [1, 32], "scale": Ref("s"),
        "zero_point": Ref("z"), "input_dtype": Kind("int8"), "quant_min": -8,
        "quant_max": 7,
    }  # fmt: skip
    calls = (
        Call("torchao.dequantize_affine.default", "f", given, ("f",), where),
        Call("aten.linear.default", "y", {"input": Ref("x"), "weight": Ref("f")},
             ("y",), "net: node 'y'"),
    )  # fmt: skip
    held = {"w": whole, "s": scale, "z": zero}
    shapes = {n: v.shape for n, v in held.items()}
    shapes |= {"x": (1, 64), "f": (24, 64), "y": (1, 24)}
    kinds = {**dict.fromkeys(shapes, "float32"), "w": "int8", "z": "int8"}
    message, _ = converted(
        Program("net", calls, ("x",), ("y",), held, shapes, kinds)
    )  # fmt: skip
    loaded = load_onnx("net", message.SerializeToString(), {})
    library = Model("net", loaded, "onnx", "0" * 64).build(name="m", target="cortex-m4")
    (step,) = library.plan.steps
    assert step.candidate.constants[0].role == "weights4"
    assert step.candidate.constants[0].array.nbytes == whole.size // 2
    wide = [v.repeat(32, 1).astype(np.float32) for v in (zero, scale)]
    x = chance.normal(size=(1, 64)).astype(np.float32)
    wanted = x.astype(np.float64) @ ((whole - wide[0]) * wide[1]).T
    found: Any = library.host("llvm").run(x=x)["y"]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


def _embedding(table: Array) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Cast", ["t"], ["t32"], to=TensorProto.FLOAT),
        helper.make_node("Gather", ["t32", "x"], ["g"]),
        helper.make_node("Exp", ["g"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.INT64, (3,)),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, (3, table.shape[1])),
    ]
    held = [numpy_helper.from_array(table, "t")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_rows_of_a_table(target: str, tmp_path: Path) -> None:
    table = np.random.default_rng(3).normal(size=(100, 16)).astype(np.float16)
    path, x = tmp_path / "m.onnx", np.asarray([99, 0, -1])
    onnx.save(_embedding(table), path)
    loaded = pybuild.load(path)
    theirs: Any = reference("ort", path, loaded.lower()).run({"x": x})["y"]
    library = loaded.build(name="m", target=target)
    assert library.report.flash.weights == table.nbytes
    for code in ("llvm", "c"):
        found: Any = library.host(code).run(x=x)["y"]
        np.testing.assert_allclose(found, theirs, 1e-6)


@pytest.mark.parametrize("rows", [30, 100])
def test_tables_that_stay_float32(rows: int, tmp_path: Path) -> None:
    """Of few values, and of values that have no float16."""
    table = np.random.default_rng(3).normal(size=(rows, 16)).astype(np.float32)
    if rows == 30:
        table = table.astype(np.float16).astype(np.float32)
    path = tmp_path / "m.onnx"
    onnx.save(_embedding(table), path)
    graph = pybuild.load(path).lower()
    assert [n.op for n in graph.nodes] == ["gather", "map"]
    assert graph.tensor(graph.nodes[0].output).dtype.value == "float32"


def test_in_a_loop(tmp_path: Path) -> None:
    """A GRU of ten steps, as litert-torch writes it and ai-edge-quantizer makes it
    float16: layers in the body of a loop have such weights, too, with the same bits."""
    with zipfile.ZipFile(ROOT / "tests" / "exported" / "litert.zip") as kept_there:
        data = Path(kept_there.extract("gru.float16.tflite", tmp_path))
    model = pybuild.load(data)
    library = model.build(name="m", target="cortex-m4")
    assert any(s.node.op == "repeat" for s in library.plan.steps)
    assert _packed(library) > 0
    x = RNG.normal(size=library.graph.tensor(library.graph.inputs[0]).shape)
    sample = {library.graph.inputs[0]: x.astype(np.float32)}
    wide = model.build(name="m", target="cortex-m4", optimise="speed")
    assert _packed(wide) == 0
    found, wanted = (one.host("llvm").run(**sample) for one in (library, wide))
    for name in library.graph.outputs:
        np.testing.assert_array_equal(found[name], wanted[name])
