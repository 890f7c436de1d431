"""Layers over time, whichever way a file writes them: [N,1,T,C], [N,T,1,C], [N,C,T] or
[N,C,1,T]. They are the same layers with the same kernels, and can go row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.plan.plan import estimate
from tests.fieldnets.maker import Maker, Value
from tests.frontends.onnx.quantised_nets import by_quantiser
from tests.ops.litert import run_litert

TIME, CHANNELS = 64, 9
MOVES = ("transpose", "reshape", "quantize", "dequantize")


def _tflite(column: bool) -> bytes:
    """Layers over time of the same weights, as one column or as one row."""
    maker = Maker(5, (TIME, 1, CHANNELS) if column else (1, TIME, CHANNELS))

    def window(size: int) -> tuple[int, int]:
        return (size, 1) if column else (1, size)

    x: Value = maker.conv(maker.x, 24, window(5), act="relu")
    x = maker.conv(maker.depthwise(x, window(5), 1, "relu"), 32, act="relu")
    x = maker.add(maker.conv(x, 32, window(3), act="relu"), x)
    return maker.file(maker.dense(maker.mean(x), 6))


def _onnx(columns: int) -> onnx.ModelProto:
    """Conv1d, or Conv2d of one row; columns: axes of an image."""
    chance, nodes, held, x, inputs = np.random.default_rng(2), [], [], "x", CHANNELS
    one = [1] * (columns - 1)

    def layer(kind: str, **attrs: Any) -> None:
        nonlocal x
        nodes.append(helper.make_node(kind, [x], [f"{x}_"], **attrs))
        x += "_"

    for number, (outs, size) in enumerate(((16, 5), (24, 3), (24, 3))):
        shape = (outs, inputs, *one, size)
        weights = chance.normal(size=shape) / np.sqrt(inputs * size)
        held += [
            numpy_helper.from_array(v.astype(np.float32), f"{n}{number}")
            for n, v in (("w", weights), ("b", chance.normal(size=outs)))
        ]
        pads = [0] * (columns - 1) + [size // 2]
        made = helper.make_node("Conv", [x, f"w{number}", f"b{number}"], [f"c{number}"],
                                kernel_shape=[*one, size], pads=pads * 2)  # fmt: skip
        nodes.append(made)
        x, inputs = f"c{number}", outs
        layer("Relu")
        if number < 2:
            layer("MaxPool", kernel_shape=[*one, 2], strides=[*one, 2])
    layer("GlobalAveragePool")
    nodes.append(helper.make_node("Flatten", [x], ["y"]))
    kinds = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", kinds, [1, CHANNELS, *one, TIME])],
        [helper.make_tensor_value_info("y", kinds, [1, inputs])], held,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _layers(graph: Graph) -> list[tuple[object, ...]]:
    """Each node that computes: shapes, types, attributes, shapes of its constants."""
    found: list[tuple[object, ...]] = []
    for node in graph.nodes:
        if node.op in MOVES:
            continue
        ends = (graph.tensor(n) for n in (node.inputs[0], node.output))
        held = [graph.constants[n] for n in node.inputs if n in graph.constants]
        attrs = sorted((k, repr(v)) for k, v in node.attrs.items())
        form = tuple((t.shape, t.dtype) for t in ends)
        found.append((node.op, form, attrs, [c.shape for c in held]))
    return found


def _kernels(library: Library) -> list[str]:
    steps = (s.candidate.func for s in library.plan.steps if s.node.op not in MOVES)
    return [func.name for func in steps if func]


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_a_row_of_tflite_is_a_column(core: str) -> None:
    models = [pybuild.load(_tflite(column)) for column in (False, True)]
    row, column = (model.build(target=core, name="n") for model in models)
    assert _layers(row.plan.graph) == _layers(column.plan.graph)
    shapes = [form[0][0] for _, form, *_ in _layers(row.plan.graph)]  # type: ignore
    assert (1, TIME, 1, 24) in shapes
    assert _kernels(row) == _kernels(column)
    assert row.plan.arena_bytes == column.plan.arena_bytes


def test_its_values_are_litert_s() -> None:
    file = _tflite(column=False)
    chance = np.random.default_rng(4)
    x = chance.integers(-128, 128, (1, 1, TIME, CHANNELS)).astype(np.int8)
    model = pybuild.load(file)
    (name,), (output,) = model.graph.inputs, model.graph.outputs
    (want,) = run_litert(file, [{name: x}])
    for backend in ("c", "llvm"):
        made = model.build(name="n").host(backend).run(**{name: x})
        np.testing.assert_array_equal(made[output], want[output])


@pytest.mark.parametrize("whole", [False, True])
def test_conv1d_of_onnx_is_conv2d_of_a_row(whole: bool) -> None:
    nets = [_onnx(axes) for axes in (1, 2)]
    files = [net.SerializeToString() for net in nets]
    if whole:
        shapes = (1, CHANNELS, TIME), (1, CHANNELS, 1, TIME)
        files = [by_quantiser(*one, "qdq") for one in zip(nets, shapes, strict=True)]
    for core in ("cortex-m4", "cortex-m55"):
        models = [pybuild.load(file) for file in files]
        found = [model.build(target=core, name="n") for model in models]
        one, two = ([op for op, *_ in _layers(lib.plan.graph)] for lib in found)
        assert one == two
        costs = [estimate(lib.plan, lib.kernels) for lib in found]
        assert max(costs) <= 1.03 * min(costs), (core, costs)


def _least(core: str, **options: Any) -> tuple[int, int]:
    """Bytes of arena, and instructions by estimate, of the floats of ONNX."""
    model = pybuild.load(_onnx(1).SerializeToString())
    library = model.build(target=core, name="n", **options)
    return library.plan.arena_bytes, estimate(library.plan, library.kernels)


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_rows_of_a_column_cost_little(core: str) -> None:
    """By rows as whole, but for a few percent; with less RAM."""
    bytes_, cost = _least(core)
    most, least = _least(core, plan="whole")
    assert cost <= 1.1 * least and bytes_ < 0.75 * most, (bytes_, most, cost, least)


def test_conv1d_is_onnx_runtime_s() -> None:
    file = _onnx(1)
    chance = np.random.default_rng(1)
    x = chance.normal(size=(1, CHANNELS, TIME)).astype(np.float32)
    session = onnxruntime.InferenceSession(file.SerializeToString())
    (want,) = session.run(None, {"x": x})
    for backend in ("c", "llvm"):
        net = pybuild.load(file.SerializeToString()).build(name="n").host(backend)
        np.testing.assert_allclose(net.run(x=x)["y"], want, 1e-5, 1e-5)


def test_a_pad_joins_the_convolution_behind_it() -> None:
    """As causal layers have it: before the axis of columns is there."""
    file = _onnx(1)
    pads = numpy_helper.from_array(np.array([0, 0, 2, 0, 0, 0]), "pads")
    pad = helper.make_node("Pad", [file.graph.node[3].input[0], "pads"], ["padded"])
    file.graph.node[3].input[0] = "padded"
    file.graph.node.insert(3, pad)
    file.graph.initializer.append(pads)
    chance = np.random.default_rng(6)
    x = chance.normal(size=(1, CHANNELS, TIME)).astype(np.float32)
    (want,) = onnxruntime.InferenceSession(file.SerializeToString()).run(None, {"x": x})
    library = pybuild.load(file.SerializeToString()).build(name="n")
    ops = [op for op, *_ in _layers(library.plan.graph)]
    assert ops.count("conv2d") == 3 and "pad" not in ops
    np.testing.assert_allclose(library.host("llvm").run(x=x)["y"], want, 1e-5, 1e-5)
