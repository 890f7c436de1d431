"""float16 files are computed in float32 and rounded where values enter and leave, as
ONNX Runtime does; their layers are those of the same file in float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.boards.device import program_of, run_program
from pybuild.dtype import DType
from pybuild.ir.graph import Graph
from pybuild.plan.plan import estimate
from tests.boards.devices import device
from tests.toolchains import require

HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT
Array = npt.NDArray[np.generic]


def _value(name: str, kind: int, shape: list[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _net(kind: int, size: int = 13) -> onnx.ModelProto:
    """Two convolutions, a depthwise one, a pool and a dense layer."""
    rng, dtype = np.random.default_rng(4), np.float16 if kind == HALF else np.float32

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        values = rng.normal(0, 0.3, shape).astype(dtype)
        return numpy_helper.from_array(values, name)

    held = [
        weights("w1", 16, 3, 3, 3), weights("b1", 16), weights("w2", 64, 16, 1, 1),
        weights("w3", 64, 1, 3, 3), weights("w4", 64, 40), weights("b4", 40),
    ]  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"]),
        helper.make_node("Conv", ["c", "w3"], ["d"], group=64, pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["d"], ["e"]),
        helper.make_node("Mul", ["d", "e"], ["f"]),
        helper.make_node("GlobalAveragePool", ["f"], ["g"]),
        helper.make_node("Flatten", ["g"], ["h"]),
        helper.make_node("Gemm", ["h", "w4", "b4"], ["y"]),
    ]
    ends = [_value("x", kind, [1, 3, size, size])], [_value("y", kind, [1, 40])]
    return _model(nodes, ends, held)


def _model(
    nodes: list[onnx.NodeProto],
    ends: tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]],
    held: list[onnx.TensorProto],
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "halves", *ends, held)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _layers(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes if node.op not in ("map", "copy")]


def _ran(model: onnx.ModelProto, backend: str, x: Array) -> Array:
    net = pybuild.load(model.SerializeToString()).build().host(backend=backend)
    net.set_input("x", x)
    net.run()
    result: Array = net.get_output(0)
    return result


def _theirs(model: onnx.ModelProto, x: Array) -> Array:
    ort = pytest.importorskip("onnxruntime")
    data = model.SerializeToString()
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": x})
    return np.asarray(result)


def _x(*shape: int) -> Array:
    return np.random.default_rng(7).normal(0, 2, shape).astype(np.float16)


def _apart(ours: Array, theirs: Array) -> float:
    """The furthest distance, in last bits of float16."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert np.array_equal(np.isfinite(ours), np.isfinite(theirs))
    bits = [a.view(np.int16).astype(np.int32) for a in (ours, theirs)]
    ordered = [np.where(b < 0, -(b & 0x7FFF), b) for b in bits]
    return float(np.abs(ordered[0] - ordered[1]).max())


def test_layers_are_those_of_float32() -> None:
    half, whole = (pybuild.load(_net(k).SerializeToString()) for k in (HALF, FLOAT))
    assert _layers(half.graph) == _layers(whole.graph)
    assert "conv2d" in _layers(half.graph)
    assert [half.graph.tensor(n).dtype for n in ("x", "y")] == [DType.FLOAT16] * 2


def test_instructions_and_flash_are_near_those_of_float32() -> None:
    """At most 1.3 times the instructions; weights stay two bytes."""
    for target in ("cortex-m4", "cortex-m55", "cortex-m0plus"):
        half, whole = (
            pybuild.load(_net(kind).SerializeToString()).build(target=target)
            for kind in (HALF, FLOAT)
        )
        taken = [estimate(built.plan, built.kernels) for built in (half, whole)]
        assert taken[0] <= 1.3 * taken[1], target
        held = [built.report.flash.weights for built in (half, whole)]
        assert held[0] < 0.75 * held[1], target


def test_an_image_is_cast_row_by_row() -> None:
    """The arena holds no second image of float32; casts of the file go along, too."""
    size = 64
    model = _net(FLOAT, size)
    for node in model.graph.node:
        if "x" in node.input:
            node.input[0] = "wide"
    casts = [("x", "near", HALF), ("near", "wide", FLOAT)]
    nodes = [helper.make_node("Cast", [x], [y], to=kind) for x, y, kind in casts]
    nodes += model.graph.node
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    whole = pybuild.load(_net(FLOAT, size).SerializeToString()).build()
    for one, share in (model, 1.0), (_net(HALF, size), 0.75):
        built = pybuild.load(one.SerializeToString()).build()
        assert built.plan.arena_bytes <= share * whole.plan.arena_bytes


@pytest.mark.parametrize("backend", ["c", "llvm"])
def test_results_are_onnx_runtimes(backend: str) -> None:
    x = _x(1, 3, 13, 13)
    assert _apart(_ran(_net(HALF), backend, x), _theirs(_net(HALF), x)) <= 1


def test_on_a_board() -> None:
    require("arm-none-eabi-gcc")
    model, x = pybuild.load(_net(HALF).SerializeToString()), _x(1, 3, 13, 13)
    library = model.build(name="net", target="cortex-m4")
    board = device("mps2-an386")
    (made,) = run_program(board, program_of(board, library), [{"x": x}])
    assert _apart(made["y"], _theirs(_net(HALF), x)) <= 1


def _mixed() -> onnx.ModelProto:
    """float16 between casts of a float32 file, as converters of ONNX write it."""
    held = [numpy_helper.from_array(np.full((3, 4), 0.1, np.float16), "w")]
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], to=HALF),
        helper.make_node("MatMul", ["h", "w"], ["m"]),
        helper.make_node("Cast", ["m"], ["f"], to=FLOAT),
        helper.make_node("Softmax", ["f"], ["s"]),
        helper.make_node("CastLike", ["s", "w"], ["t"]),
        helper.make_node("Cast", ["t"], ["y"], to=FLOAT),
    ]
    ends = [_value("x", FLOAT, [2, 3])], [_value("y", FLOAT, [2, 4])]
    return _model(nodes, ends, held)


def test_casts_of_the_file_round() -> None:
    x = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3) + np.float32(1e-4)
    ours = _ran(_mixed(), "llvm", x)
    assert np.array_equal(ours, ours.astype(np.float16).astype(np.float32))
    assert np.allclose(ours, _theirs(_mixed(), x), rtol=2**-10, atol=0)


def _branches() -> onnx.ModelProto:
    """A graph inside a node, with constants, a Cast and a result of float16."""
    big = numpy_helper.from_array(np.asarray([60000.0], np.float16), "big")
    then = helper.make_graph(
        [helper.make_node("Add", ["x", "big"], ["p"])],
        "then", [], [_value("p", HALF, [2])], [big],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["q"], to=HALF)],
        "else", [], [_value("q", HALF, [2])],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["positive"]),
        helper.make_node(
            "If", ["positive"], ["z"], then_branch=then, else_branch=other
        ),
        helper.make_node("Mul", ["z", "half"], ["y"]),
    ]
    held = [
        numpy_helper.from_array(np.asarray(value, np.float16), name)
        for name, value in (("zero", 0.0), ("half", 0.5))
    ]
    return _model(nodes, ([_value("x", HALF, [2])], [_value("y", HALF, [2])]), held)


@pytest.mark.parametrize("x", [[20000.0, 1.0], [-1.5, 0.25]])
def test_graphs_inside_nodes_are_float32(x: list[float]) -> None:
    """60000 + 20000 is above the greatest float16, its half is not. ONNX Runtime rounds
    it to infinity where a branch ends."""
    given = np.asarray(x, np.float16)
    wide = given.astype(np.float32)
    want = (wide + 60000 if wide.sum() > 0 else wide) / 2
    ours = _ran(_branches(), "llvm", given)
    assert _apart(ours, want.astype(np.float16)) == 0
    theirs = _theirs(_branches(), given)
    near = np.isfinite(theirs)
    assert _apart(ours[near], theirs[near]) == 0


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 65504, 2.0**-24, -0.0])
def test_ends_keep_all_numbers(x: float) -> None:
    """An output that is the input."""
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    ends = [_value("x", HALF, [1])], [_value("y", HALF, [1])]
    given = np.asarray([x], np.float16)
    assert _ran(_model(nodes, ends, []), "llvm", given).tobytes() == given.tobytes()


def test_a_constant_of_the_wrong_size_is_named() -> None:
    model = _net(HALF)
    model.graph.initializer[1].raw_data = b"123"
    with pytest.raises(pybuild.BuildError, match="b1"):
        pybuild.load(model.SerializeToString())


@pytest.mark.parametrize("kind", ["Cast", "CastLike"])
def test_a_cast_without_inputs_is_an_error(kind: str) -> None:
    """The checker of ONNX reads no model with an operator that it does not know."""
    model = _mixed()
    node = helper.make_node(kind, [], ["q"], **({"to": HALF} if kind == "Cast" else {}))
    foreign = helper.make_node("Strange", ["x"], ["r"], domain="elsewhere", to=HALF)
    model.graph.node.extend([node, foreign])
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))
    with pytest.raises(pybuild.BuildError, match="Strange"):
        pybuild.load(model.SerializeToString())
