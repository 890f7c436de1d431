"""What TensorFlow's converter writes of Keras' layers: loops over time that fill a
list, and shapes that are computed because the batch is open.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.ops.interpret import interpret
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

FOLDER = Path(__file__).resolve().parents[2] / "exported"
# what is left of each, views included: nothing that computes a shape
NODES = {
    "keras_gru": 139, "keras_both": 139, "keras_dense": 25, "keras_dense_int8": 25,
    "keras_turned_int8": 12,
}  # fmt: skip


def compare(folder: Path, name: str, built: bool) -> int:
    """The nodes of a net whose values are Keras' own, or LiteRT's integers."""
    path = folder / f"{name}.tflite"
    with np.load(folder / "keras.npz") as arrays:
        x, wanted = arrays[f"{name}.x"], arrays[f"{name}.y"]
    model = pybuild.load(path)
    graph = model.lower()
    (given,), (made,) = graph.inputs, graph.outputs
    if name.endswith("int8"):
        x = np.round(x * 40).clip(-128, 127).astype(np.int8)
        wanted = run_litert(path.read_bytes(), [{given: x}])[0][made]
    found = [interpret(graph, {given: x})[made]]
    if built:
        net = model.build().host("llvm")
        net.run(**{given: x})
        found.append(net.get_output(0))
    for value in found:
        assert value.shape == wanted.shape and value.any()
        near = 0 if value.dtype == np.int8 else 1e-6
        np.testing.assert_allclose(value, wanted, near, near)
    return len(graph.nodes)


@pytest.mark.parametrize("name", NODES)
def test_what_tensorflow_wrote(name: str) -> None:
    assert compare(FOLDER, name, False) == NODES[name]


@pytest.mark.parametrize("name", ["keras_dense", "keras_dense_int8"])
def test_a_larger_batch_is_each_sample_by_itself(name: str) -> None:
    path = FOLDER / f"{name}.tflite"
    one = load(path.name, path.read_bytes(), {})
    three = load(path.name, path.read_bytes(), {one.inputs[0]: 3})
    kind = one.tensors[one.inputs[0]].dtype.numpy
    draw = np.random.default_rng(1).integers(-128, 128, (3, 5, 4))
    x = (draw / 64 if kind == np.float32 else draw).astype(kind)
    wanted = [interpret(one, {one.inputs[0]: row[None]}) for row in x]
    found = interpret(three, {three.inputs[0]: x})[three.outputs[0]]
    assert found.shape == (3, 5, 3)
    rows = np.concatenate([w[one.outputs[0]] for w in wanted])
    np.testing.assert_allclose(found, rows, 1e-6, 1e-6)


def _pieces(reader: str) -> bytes:
    """x[0:0] beside y, joined or added."""

    def ints(name: str, value: tuple[int, ...]) -> FileTensor:
        return FileTensor(name, (2,), "INT32", np.asarray(value, np.int32))

    tensors = [
        FileTensor("x", (2, 3), "FLOAT32"), ints("begin", (1, 0)), ints("size", (0, 3)),
        FileTensor("none", (0, 3), "FLOAT32"), FileTensor("y", (2, 3), "FLOAT32"),
    ]  # fmt: skip
    options = {"Axis": 0} if reader == "CONCATENATION" else {}
    table = "ConcatenationOptions" if options else "AddOptions"
    return write(
        tensors,
        [
            FileOperator("SLICE", (0, 1, 2), (3,), "SliceOptions"),
            FileOperator(reader, (3, 0), (4,), table, options),
        ],
        [0],
        [4],
    )


def test_a_piece_without_elements_is_joined_to_others() -> None:
    data = _pieces("CONCATENATION")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = load("m.tflite", data, {})
    assert all(graph.tensors[n].size for node in graph.nodes for n in node.inputs)
    found = interpret(graph, {"x": x})["y"]
    assert np.array_equal(found, run_litert(data, [{"x": x}])[0]["y"])


def test_nothing_else_reads_what_has_no_elements() -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", _pieces("ADD"), {})
    said = "m.tflite: node 'y' (ADD): reads 'none', which has no elements"
    assert said in [str(p) for p in caught.value.problems]


@pytest.mark.sweep
@pytest.mark.parametrize("name", NODES)
def test_what_tensorflow_wrote_is_compiled(name: str) -> None:
    compare(FOLDER, name, True)


@pytest.mark.sweep
def test_tensorflow_writes_them_anew(tmp_path: Path) -> None:
    """The converter that is installed, whatever it writes by now."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("tensorflow is not installed")
    script = str(FOLDER / "export_keras.py")
    subprocess.run([sys.executable, script, str(tmp_path)], check=True)
    for name in NODES:
        compare(tmp_path, name, True)
