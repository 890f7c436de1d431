"""DynamicQuantizeLSTM, as onnxruntime.quantization.quantize_dynamic writes LSTM: ONNX
Runtime's numbers, in one loop over the steps, with weights of a byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from pybuild.boards.device import program_of, run_program
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from tests.boards.devices import device
from tests.toolchains import require

STEPS, INPUTS, HIDDEN = 9, 5, 6
INFO = helper.make_tensor_value_info


def net(
    directions: int = 1, zero: int = 0, each: bool = False, bias: bool = True,
    more: tuple[str, ...] = (), batch: int = 2, **attrs: Any,
) -> bytes:  # fmt: skip
    """The operator alone; each: a scale for each row; more: optional inputs. Signed
    weights have 7 bits: with 8, sums of two products of ONNX Runtime saturate on a
    processor without VNNI."""
    chance = np.random.default_rng((directions, zero, each))
    kind, low, count = (np.uint8, 0, 256) if zero else (np.int8, -64, 128)
    scale_count = 4 * HIDDEN if each else 1
    state = (directions, batch, HIDDEN)
    held: dict[str, np.ndarray] = {}
    for name, size in (("w", INPUTS), ("r", HIDDEN)):
        shape = (directions, size, 4 * HIDDEN)
        held[name] = chance.integers(low, low + count, shape).astype(kind)
        scales = chance.uniform(0.003, 0.006, (directions, scale_count))
        held[f"{name}_scale"] = (scales if each else scales[:, 0]).astype(np.float32)
        zeros = np.full((directions, scale_count), zero, kind)
        held[f"{name}_zero"] = zeros if each else zeros[:, 0]
    held["b"] = chance.normal(0, 0.3, (directions, 8 * HIDDEN)).astype(np.float32)
    held["lengths"] = np.full(batch, 4, np.int32)
    held["h"], held["c"] = (
        chance.normal(0, 0.5, state).astype(np.float32) for _ in range(2)
    )
    held["p"] = chance.normal(0, 0.5, (directions, 3 * HIDDEN)).astype(np.float32)
    given = [n if n in more else "" for n in ("lengths", "h", "c", "p")]
    names = ["x", "w", "r", "b" if bias else "", *given,
             "w_scale", "w_zero", "r_scale", "r_zero"]  # fmt: skip
    way = {1: "forward", 2: "bidirectional"}[directions]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y", "y_h", "y_c"], domain="com.microsoft",
        hidden_size=HIDDEN, **{"direction": way, **attrs},
    )  # fmt: skip
    shape = (STEPS, directions, batch, HIDDEN)
    outputs = [INFO("y", 1, shape), INFO("y_h", 1, state), INFO("y_c", 1, state)]
    graph = helper.make_graph(
        [node], "g", [INFO("x", TensorProto.FLOAT, (STEPS, batch, INPUTS))], outputs,
        [numpy_helper.from_array(held[n], n) for n in names if n in held],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    made: bytes = helper.make_model(
        graph, opset_imports=opsets, ir_version=9
    ).SerializeToString()
    return made


NETS: dict[str, dict[str, Any]] = {
    "int8": {}, "uint8": {"zero": 117}, "both": {"directions": 2, "zero": 140},
    "reverse": {"direction": "reverse"}, "each": {"each": True, "zero": 99},
    "no bias": {"bias": False}, "clip": {"clip": 0.4},
    "states": {"directions": 2, "more": ("h", "c", "p")},
    "short": {"directions": 2, "more": ("lengths", "h", "c"), "batch": 1},
}  # fmt: skip


def samples(batch: int = 2) -> list[np.ndarray]:
    x = np.random.default_rng(3).normal(0.2, 1, (STEPS, batch, INPUTS))
    return [made.astype(np.float32) for made in (x, 0 * x, 30 * x)]


def _theirs(data: bytes | Path) -> onnxruntime.InferenceSession:
    """By one thread: several quantise the states of a batch each by a range of its
    own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(data, options)


def _model(data: bytes) -> Model:
    return Model("net.onnx", load("net.onnx", data, {}), "onnx", "0" * 64)


@pytest.mark.parametrize("name", NETS)
def test_every_number_is_near_onnx_runtime_s(name: str) -> None:
    """Its exp and tanh are its own; nothing else is, so that no step is another."""
    data = net(**NETS[name])
    theirs, model = _theirs(data), _model(data)
    nets = [model.build().host("llvm")]
    if name == "uint8":
        nets += [model.build().host("c"), model.build(target="cortex-m55").host("llvm")]
    for x in samples(NETS[name].get("batch", 2)):
        wanted = dict(zip(("y", "y_h", "y_c"), theirs.run(None, {"x": x}), strict=True))
        found = interpret(model.graph, {"x": x})
        for key, want in wanted.items():
            np.testing.assert_allclose(found[key], want, 1e-5, 2e-6, err_msg=key)
            for one in nets:
                made = one.run(x=x)[key]
                np.testing.assert_allclose(made, want, 1e-5, 2e-6, err_msg=key)


@pytest.mark.parametrize("name", ["int8", "uint8", "both"])
def test_it_is_a_loop_of_int8(name: str) -> None:
    model = _model(net(**NETS[name]))
    kinds = [node.op for node in model.lower().nodes]
    assert kinds.count("repeat") == NETS[name].get("directions", 1)
    assert not {"dense_sums", "dense", "matmul", "add"} & {*kinds}
    flash = model.build(target="cortex-m4").report.flash
    # rows of five and six weights fill two words; of each a total, and a bias; states
    most = (2 * 8 + 3 * 4) * 4 * HIDDEN + 2 * 2 * HIDDEN * 4
    assert flash.weights <= most * NETS[name].get("directions", 1)


def test_on_a_board() -> None:
    require("arm-none-eabi-gcc")
    model, x = _model(net(**NETS["uint8"])), {"x": samples()[0]}
    library = model.build(name="net", target="cortex-m4")
    board = device("mps2-an386")
    (made,) = run_program(board, program_of(board, library), [x])
    for key, value in model.build().host("llvm").run(**x).items():
        np.testing.assert_allclose(made[key], value, 1e-6, 1e-6, err_msg=key)


def test_a_model_that_is_quantised_so(tmp_path: Path) -> None:
    """A classifier of sequences; its dense layer reads what is quantised for it."""
    chance = np.random.default_rng(1)

    def held(name: str, *shape: int) -> onnx.TensorProto:
        value = chance.normal(0, 0.3, shape).astype(np.float32)
        return numpy_helper.from_array(value, name)

    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["", "h"], hidden_size=HIDDEN),
        helper.make_node("Squeeze", ["h", "axis"], ["last"]),
        helper.make_node("MatMul", ["last", "m"], ["y"]),
    ]
    weights = [
        held("w", 1, 4 * HIDDEN, INPUTS), held("r", 1, 4 * HIDDEN, HIDDEN),
        held("b", 1, 8 * HIDDEN), held("m", HIDDEN, 3),
        numpy_helper.from_array(np.array([0]), "axis"),
    ]  # fmt: skip
    x, y = INFO("x", 1, (STEPS, 2, INPUTS)), INFO("y", 1, (2, 3))
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opset = [helper.make_opsetid("", 17)]
    onnx.save(
        helper.make_model(graph, opset_imports=opset, ir_version=9), tmp_path / "f.onnx"
    )
    for kind in (QuantType.QInt8, QuantType.QUInt8):
        file = tmp_path / f"{kind.name}.onnx"
        quantize_dynamic(tmp_path / "f.onnx", file, weight_type=kind)
        theirs, model = _theirs(file), _model(file.read_bytes())
        for one in samples()[:1]:
            (want,) = theirs.run(None, {"x": one})
            have = model.build().host("llvm").run(x=one)["y"]
            np.testing.assert_allclose(have, want, 1e-5, 2e-6)


def test_lengths_that_differ_are_refused() -> None:
    """ONNX Runtime's range of the states is then of what was there before."""
    model = onnx.load_from_string(net(more=("lengths",)))
    for one in model.graph.initializer:
        if one.name == "lengths":
            one.CopyFrom(numpy_helper.from_array(np.array([9, 4], np.int32), "lengths"))
    with pytest.raises(BuildError, match="sequence_lens differ"):
        _model(model.SerializeToString())


def test_weights_of_real_numbers_are_refused() -> None:
    model = onnx.load_from_string(net())
    one = next(t for t in model.graph.initializer if t.name == "r")
    real = numpy_helper.to_array(one).astype(np.float32)
    one.CopyFrom(numpy_helper.from_array(real, "r"))
    with pytest.raises(BuildError, match="its weights are float32"):
        _model(model.SerializeToString())


def test_weights_that_are_computed_are_refused() -> None:
    model = onnx.load_from_string(net())
    names = model.graph.node[0].input
    model.graph.input.append(INFO(names[1], TensorProto.INT8, (1, INPUTS, 4 * HIDDEN)))
    del model.graph.initializer[0]
    with pytest.raises(BuildError, match="weights"):
        _model(model.SerializeToString())
