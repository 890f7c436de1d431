"""`check` itself: does it see a wrong layer, say what it skipped, replace samples?

The back ends here are numpy with faults put in on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array, DType
from pybuild.entry import load
from pybuild.errors import BuildError
from pybuild.frontends.tflite.reader.flat import FlatModel, FlatOperator, FlatTensor
from pybuild.frontends.tflite.reader.flat_facts import is_hybrid
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops.interpret import interpret
from pybuild.verify import check as checking
from pybuild.verify.check import check
from pybuild.verify.other_kernels import beside
from pybuild.verify.reference import auto_kind, reference
from tests.ops.tflite_writer import FileOperator, FileTensor, write

X, Y = Quant((0.25,), (3,)), Quant((0.5,), (-1,))
Fault = Callable[[dict[str, Array]], None]


def graph() -> Graph:
    tensors = {
        "x": Tensor("x", (1, 4, 4, 2), DType.INT8, X),
        "sum": Tensor("sum", (1, 4, 4, 2), DType.INT8, Y),
        "y": Tensor("y", (1, 2, 2, 2), DType.INT8, Y),
    }
    pool = {"kernel": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0)}
    nodes = (
        Node("add", "twice", ("x", "x"), ("sum",), {"rounding": "double"}),
        Node("max_pool2d", "pool", ("sum",), ("y",), pool),
    )
    return Graph("g", "g.tflite", nodes, tensors, ("x",), ("y",))


@dataclass
class Net:
    """Numpy with a fault."""

    graph: Graph
    fault: Fault
    closed: bool = False
    inputs: tuple[()] = ()  # none is lazy
    results: tuple[()] = ()

    def run(self, **inputs: Array) -> dict[str, Array]:
        self.values = interpret(self.graph, inputs)
        self.fault(self.values)
        return self.outputs()

    def outputs(self) -> dict[str, Array]:
        return {name: self.values[name] for name in self.graph.outputs}

    def recorded(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.run(**inputs)
        return self.values

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def nets_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "recorded", Net.recorded)


class Library:
    """What check() needs of a build."""

    def __init__(self, graph: Graph, faults: dict[str, Fault]) -> None:
        self.plan = self
        self.report = self
        self.graph = graph
        self.rounding = "litert"
        self.nets = {name: Net(graph, fault) for name, fault in faults.items()}

    def host(self, backend: str) -> Net:
        if backend not in self.nets:
            raise BuildError("--backend c", "there is no C compiler")
        return self.nets[backend]


@pytest.fixture(autouse=True)
def _numpy_records(monkeypatch: pytest.MonkeyPatch) -> None:
    def recorded(net: Net, inputs: Mapping[str, Array]) -> dict[str, Array]:
        return net.run_recorded(inputs)

    monkeypatch.setattr("pybuild.verify.check.recorded", recorded)


def fine(values: dict[str, Array]) -> None:
    """No fault."""


def one_step(values: dict[str, Array]) -> None:
    """One element of the first layer, and of the output, one step too far."""
    for name in ("sum", "y"):
        value = values[name].copy()
        value.flat[0] += 1 if value.flat[0] < 127 else -1
        values[name] = value


def checked(library: Library, **options: Any) -> dict[str, Any]:
    facts = check("models/g.tflite", library, ref="numpy", **options)
    assert all(net.closed for net in library.nets.values())
    return facts.to_json()


def test_equal_back_ends() -> None:
    facts = checked(Library(graph(), {"c": fine, "llvm": fine}), samples=8)
    assert facts["ok"]
    assert facts["model"] == "g.tflite"
    assert facts["samples"] == 8
    assert facts["backends"]["c"] == {
        "mismatches": 0,
        "max_abs": 0,
        "first_layer": None,
        "unequal": 0,
        "elements": 8 * 8,
    }


@pytest.mark.parametrize(("per_layer", "bad"), [(False, 1), (True, 2)])
def test_one_wrong_element_is_traced_to_its_layer(per_layer: bool, bad: int) -> None:
    """Without --per-layer only outputs count, and the layer is still named."""
    library = Library(graph(), {"c": fine, "llvm": one_step})
    facts = checked(library, samples=3, per_layer=per_layer)
    assert not facts["ok"]
    assert facts["backends"]["c"]["mismatches"] == 0
    llvm = facts["backends"]["llvm"]
    assert (llvm["mismatches"], llvm["max_abs"]) == (3 * bad, 1)
    assert llvm["first_layer"] == "twice"


def test_a_missing_compiler_is_a_note_unless_asked_for() -> None:
    facts = checked(Library(graph(), {"llvm": fine}), samples=1)
    assert facts["ok"]
    assert list(facts["backends"]) == ["llvm"]
    assert "there is no C compiler" in facts["notes"][0]
    with pytest.raises(BuildError, match="there is no C compiler"):
        checked(Library(graph(), {"llvm": fine}), backends=("c",))


def test_a_sample_that_says_nothing_is_replaced() -> None:
    """All-equal inputs give all-equal sums here."""
    facts = checked(Library(graph(), {"llvm": fine}), samples=7)
    replaced = [note for note in facts["notes"] if note.startswith("sample ")]
    assert [note.split(":")[0] for note in replaced] == [
        "sample 2",
        "sample 4",
        "sample 6",
    ]
    assert all(note.endswith("replaced it: blobs") for note in replaced)
    assert facts["samples"] == 7


def test_floats_within_the_tolerance() -> None:
    tensors = {n: Tensor(n, (4,), DType.FLOAT32) for n in ("x", "y")}
    node = Node("leaky_relu", "leaky", ("x",), ("y",), {"alpha": 0.5})
    floats = Graph("f", "f.tflite", (node,), tensors, ("x",), ("y",))

    def off(by: float) -> Fault:
        def fault(values: dict[str, Array]) -> None:
            values["y"] = values["y"] + np.float32(by)

        return fault

    assert checked(Library(floats, {"llvm": off(1e-6)}), samples=4)["ok"]
    assert not checked(Library(floats, {"llvm": off(1e-4)}), samples=4)["ok"]


def test_the_reference_that_fits_the_rounding() -> None:
    file = Path("m.tflite")
    assert auto_kind(file, "tflm") == "tflm"
    assert auto_kind(file, "single") == "numpy"
    assert auto_kind(file, "onnx") == "numpy"
    assert auto_kind(Path("m.onnx"), "litert") == "numpy"


def test_tflm_rounds_twice_whatever_the_build_does() -> None:
    once = graph()
    nodes = (once.nodes[0].with_attrs(rounding="single"), *once.nodes[1:])
    twice = reference("tflm", "g.tflite", replace(once, nodes=nodes))
    x = np.arange(-128, -96, dtype=np.int8).reshape(1, 4, 4, 2)
    assert np.array_equal(
        twice.run({"x": x})["sum"], interpret(graph(), {"x": x})["sum"]
    )


@pytest.mark.parametrize(
    ("kind", "file", "text"),
    [
        ("ort", "m.tflite", "--ref ort cannot read this file"),
        ("litert", "m.onnx", "--ref litert cannot read this file"),
        ("fortran", "m.onnx", "'fortran' is unknown"),
    ],
)
def test_a_reference_that_does_not_fit(kind: str, file: str, text: str) -> None:
    with pytest.raises(BuildError, match=text):
        reference(kind, file, graph())


def elu(scale: tuple[float, ...]) -> bytes:
    kind = {"kind": "INT8", "scale": scale, "zero_point": (0,)} if scale else {}
    tensors = [FileTensor("x", (1, 4), **kind), FileTensor("y", (1, 4), **kind)]
    return write(tensors, [FileOperator("ELU", (0,), (1,))], [0], [1])


def test_what_litert_has_no_reference_kernel_for(tmp_path: Path) -> None:
    """Floats are its other kernels' matter, of integers those are a step off."""
    pytest.importorskip("ai_edge_litert")
    floats, bytes_ = tmp_path / "f.tflite", tmp_path / "i.tflite"
    floats.write_bytes(elu(()))
    bytes_.write_bytes(elu((0.25,)))
    for path, name in ((floats, " kernels"), (bytes_, "numpy")):
        known = reference("auto", path, load(path).graph)
        assert name in known.name
        assert ("of ELU: compared with our own" in known.missing) == (name == "numpy")
    with pytest.raises(BuildError, match="LiteRT has no reference kernel"):
        reference("litert", bytes_, load(bytes_).graph)
    notes = check(bytes_, pybuild.load(bytes_).build(), ("llvm",), samples=4).notes
    assert "LiteRT's other kernels give the same 16 numbers" in notes


def test_how_far_other_kernels_of_litert_are(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "i.tflite"
    path.write_bytes(elu((0.25,)))
    made = load(path).graph
    x = {"x": np.asarray([[-9, 0, 3, 4]], np.int8)}
    [y] = (reference("numpy", path, made).run(x)[name] for name in made.outputs)
    off = {made.outputs[0]: (y - np.int8([0, 2, 0, 1])).astype(np.int8)}
    said = "LiteRT's other kernels: 2 of 4 numbers differ by 2 steps at most"
    assert beside(path, made, [x], [off]) == said


def test_what_an_interpreter_says_is_told(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "f.tflite"
    path.write_bytes(elu(()))
    known = reference("litert", path, load(path).graph)
    with pytest.raises(BuildError, match="--ref litert cannot run it: "):
        known.run({"x": np.zeros((3, 3), np.float32)})


def test_weights_of_bytes_in_a_subgraph_make_a_file_hybrid() -> None:
    """As in the loop of a Keras LSTM."""
    kinds = ("FLOAT32", "INT8", "FLOAT32")
    tensors = tuple(
        FlatTensor("", (), (), kind, np.empty(0, np.uint8), (), (), 0, False, False)
        for kind in kinds
    )
    layer = FlatOperator("FULLY_CONNECTED", (0, 1, -1), (2,), None)
    body = FlatModel(tensors, (layer,), (0,), (2,), number=1)
    calling = FlatOperator("WHILE", (0,), (2,), None, calls=(1,))
    outer = FlatModel(tensors, (calling,), (0,), (2,))
    outer = replace(outer, subgraphs=(outer, body))
    assert is_hybrid(outer) and not is_hybrid(replace(outer, operators=()))
    assert not is_hybrid(replace(body, operators=(replace(layer, inputs=(0, 2)),)))


@pytest.mark.parametrize(
    ("file", "package"),
    [("digits_int8.tflite", "ai-edge-litert"), ("digits_f32.onnx", "onnxruntime")],
)
def test_a_missing_interpreter_is_a_note(
    file: str,
    package: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pybuild.verify.reference._installed", lambda kind: False)
    path = Path(__file__).parents[2] / "examples" / "digits" / file
    words = ["check", str(path), "--samples", "1", "--backend", "llvm"]
    said = f"{package} is not installed: compared with our own numpy model only. "
    said += f"Hint: pip install {package}, it is in the extra 'verify'"
    assert main(words) == 0
    assert f"note: {said}\nequal\n" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["notes"] == [said]
    assert f"note: {said}\n" in err
    assert main([*words, "--ref", "numpy", "--json"]) == 0
    assert not json.loads(capsys.readouterr().out)["notes"]
