"""Whether what differs from the standard is rounding of float32, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.entry import load
from pybuild.host.native import Net
from pybuild.host.trace import recorded
from pybuild.verify.check import EQUAL_BUT, check
from pybuild.verify.roundings import Roundings, roundings
from tests.frontends.onnx.models import model
from tests.toolchains import require_module

F = np.float32
SCALE = np.asarray(0.037, F)
ZERO = np.asarray(3, np.int8)


def line(x: str, y: str) -> list[Any]:
    """x, quantised and dequantised again, as y."""
    q = f"{y}_q"
    return [
        ("QuantizeLinear", [x, "s", "z"], [q], {}),
        ("DequantizeLinear", [q, "s", "z"], [y], {}),
    ]


def written(path: Path, nodes: list[Any], x: np.ndarray, **more: Any) -> Path:
    constants = {"s": SCALE, "z": ZERO, **more}
    path.write_bytes(model(nodes, {"x": x}, ["y"], constants, 21))
    return path


@pytest.fixture
def halves(tmp_path: Path) -> Path:
    """Between two integers' mean and an integer lies a tie for every second pair."""
    made = [*line("x", "a"), ("Mul", ["a", "half"], ["m"], {}), *line("m", "b")]
    nodes = [*made, ("Softmax", ["b"], ["c"], {"axis": -1}), *line("c", "y")]
    x = np.zeros((1, 4, 64), F)
    return written(tmp_path / "halves.onnx", nodes, x, half=np.asarray(0.5, F))


def run(path: Path, x: np.ndarray) -> tuple[Any, dict[str, np.ndarray]]:
    library = load(path).build()
    net = library.host("llvm")
    have = recorded(net, {"x": x})
    net.close()
    return library.plan.graph, have


def test_each_layer_is_judged(halves: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 4, 64)).astype(F)
    graph, have = run(halves, x)
    found = roundings(halves, graph, {"x": x}, have)
    assert found is not None and not found.wrong
    assert set(graph.outputs) <= found.judged


def test_a_step_off_is_no_tie(halves: Path) -> None:
    """Whichever integer is moved, its layer is named."""
    x = np.random.default_rng(0).standard_normal((1, 4, 64)).astype(F)
    graph, have = run(halves, x)
    clean = roundings(halves, graph, {"x": x}, have)
    assert clean is not None
    moved = [n for n in clean.judged if have[n].dtype == np.int8]
    assert moved
    for name in moved:
        other = {**have, name: have[name].copy()}
        flat = other[name].reshape(-1)
        flat[7] += 1 if flat[7] < 100 else -1
        found = roundings(halves, graph, {"x": x}, other)
        assert found is not None and found.wrong


def test_ties_are_said(tmp_path: Path) -> None:
    """Twice the pixels of an image by means of two: many real values are ties."""
    require_module("onnxruntime")
    size = np.asarray([1, 1, 2, 2], F)
    resize = ("Resize", ["a", "", "size"], ["m"], {"mode": "linear"})
    nodes = [*line("x", "a"), resize, *line("m", "y")]
    x = np.zeros((1, 3, 8, 8), F)
    path = written(tmp_path / "net.onnx", nodes, x, size=size)
    found = check(path, load(path).build(), ["llvm"], ref="standard", samples=6)
    [note] = [note for note in found.notes if note.startswith(EQUAL_BUT)]
    assert "integers of all layers are at ties" in note
    assert found.ok and found.backends["llvm"].mismatches


def test_outputs_that_no_layer_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compared is what was run, not what is recorded later."""
    nodes = [*line("x", "a"), ("Relu", ["a"], ["m"], {}), *line("m", "y")]
    path = written(tmp_path / "net.onnx", nodes, np.zeros((1, 8), F))
    true = Net.run

    def wrong(self: Net, **inputs: Any) -> dict[str, np.ndarray]:
        return {name: value + 1 for name, value in true(self, **inputs).items()}

    monkeypatch.setattr(Net, "run", wrong)
    found = check(path, load(path).build(), ["llvm"], ref="standard", samples=2)
    assert not found.ok


def test_the_mean_of_what_is_constant(tmp_path: Path) -> None:
    """What a norm leaves of a constant is its rounding, made 316 times as large."""
    nodes: list[Any] = [("InstanceNormalization", ["x", "one", "none"], ["y"], {})]
    more = {"one": np.ones(2, F), "none": np.zeros(2, F)}
    path = written(tmp_path / "net.onnx", nodes, np.zeros((1, 2, 47), F), **more)
    x = np.full((1, 2, 47), 0.4352286, F)
    graph, have = run(path, x)
    assert np.ptp(have["y"]) < 1e-3
    found = roundings(path, graph, {"x": x}, have)
    assert found is not None and not found.wrong
    [name] = graph.outputs
    found = roundings(path, graph, {"x": x}, {**have, name: have[name] + F(0.01)})
    assert found is not None and found.wrong


def test_what_is_said() -> None:
    assert "1e-05" in str(Roundings())
    both = Roundings(2, 1e-6, 4e-6) + Roundings(floats=3)
    assert "2 integers" in str(both) and "3 floats" in str(both)


def test_a_constant_is_rounded_as_its_layer(tmp_path: Path) -> None:
    """A quantised parameter joined to a tensor of another scale: as the file says."""
    require_module("onnxruntime")
    chance = np.random.default_rng(3)
    token = chance.integers(0, 256, (1, 1, 24)).astype(np.uint8)
    token[0, 0, 6] = 22  # 8.4946 steps below the zero point
    more = {
        "token": token, "ts": np.asarray(0.00147835, F), "tz": np.asarray(119, "u1"),
        "us": np.asarray(0.01688131, F), "uz": np.asarray(121, "u1"),
    }  # fmt: skip
    quantised: list[Any] = [
        ("QuantizeLinear", ["x", "us", "uz"], ["xq"], {}),
        ("DequantizeLinear", ["xq", "us", "uz"], ["a"], {}),
        ("DequantizeLinear", ["token", "ts", "tz"], ["t"], {}),
        ("Concat", ["t", "a"], ["m"], {"axis": 1}),
        ("QuantizeLinear", ["m", "us", "uz"], ["yq"], {}),
        ("DequantizeLinear", ["yq", "us", "uz"], ["y"], {}),
    ]
    path = written(tmp_path / "net.onnx", quantised, np.zeros((1, 4, 24), F), **more)
    library = load(path).build()
    found = library.host("llvm").run(x=np.zeros((1, 4, 24), F))["y"][0, 0]
    real = (token[0, 0].astype(np.float64) - 119) * np.float64(more["ts"])
    steps = np.rint(real / np.float64(more["us"]))
    np.testing.assert_array_equal(found, (steps * more["us"]).astype(F))


def test_weights_that_a_node_turns_stay_integers(tmp_path: Path) -> None:
    """Linear layers of more than two axes as PyTorch's quantisers export them."""
    chance = np.random.default_rng(0)
    weights = chance.integers(-127, 128, (6, 8)).astype(np.int8)
    more = {
        "w": weights, "ws": np.full(6, 0.01, F), "wz": np.zeros(6, np.int8),
        "bias": chance.standard_normal(6).astype(F),
    }  # fmt: skip
    nodes: list[Any] = [
        *line("x", "a"),
        ("DequantizeLinear", ["w", "ws", "wz"], ["wr"], {"axis": 0}),
        ("Transpose", ["wr"], ["wt"], {"perm": [1, 0]}),
        ("MatMul", ["a", "wt"], ["p"], {}),
        ("Add", ["p", "bias"], ["m"], {}),
        *line("m", "y"),
    ]
    path = written(tmp_path / "net.onnx", nodes, np.zeros((1, 3, 8), F), **more)
    graph = load(path).build().plan.graph
    dense = [node for node in graph.nodes if node.op == "dense"]
    assert [graph.tensor(n.output).dtype.value for n in dense] == ["int8"]


@pytest.mark.parametrize("zero", [0, 5])
def test_16_bits(tmp_path: Path, zero: int) -> None:
    """A step of 65,536, with and without a zero point, also beside one of 8 bits."""
    require_module("onnxruntime")
    more = {"ws": np.asarray(1.3e-4, F), "wz": np.asarray(zero, np.int16)}
    more["axis"] = np.asarray(1, np.int64)
    wide: list[Any] = [
        ("CumSum", ["a", "axis"], ["e"], {}),  # no function of one byte
        ("QuantizeLinear", ["e", "ws", "wz"], ["q"], {}),
        ("DequantizeLinear", ["q", "ws", "wz"], ["m"], {}),
        ("Sigmoid", ["m"], ["n"], {}),
    ]
    nodes = [*line("x", "a"), *wide, *line("n", "y")]
    path = written(tmp_path / "net.onnx", nodes, np.zeros((1, 64), F), **more)
    library = load(path).build()
    assert check(path, library, ["llvm"], ref="standard", samples=4).ok
    kinds = {tensor.dtype.value for tensor in library.plan.graph.tensors.values()}
    assert ("int16" in kinds) or zero
    few = len(library.plan.graph.nodes)
    assert few == 8 or zero
