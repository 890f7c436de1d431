"""Inputs and outputs under names that the user chose: in C, in Python, in crt.toml; the
file's own interpreter is still asked by the file's names, and a new export of the net
keeps the API."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.verify.check import check
from tests.toolchains import ROOT

FOLDER = ROOT / "examples" / "digits"
FILES = ("digits_int8.tflite", "digits_f32.onnx", "digits_int8.onnx")
NAMES = {"image": "pixels", "output:0": "classes"}


@pytest.mark.parametrize("file", FILES)
def test_the_reference_is_asked_by_the_files_names(file: str) -> None:
    model = pybuild.load(FOLDER / file, rename=NAMES)
    library = model.build(name="digits")
    plain = pybuild.load(FOLDER / file).build(name="digits")
    (old,) = plain.plan.graph.outputs
    assert library.plan.graph.inputs == ("pixels",)
    assert library.plan.graph.outputs == ("classes",)
    result = check(FOLDER / file, library, backends=["llvm"], samples=3, per_layer=True)
    assert result.ok and "numpy" not in result.reference
    header = str(library.files()["digits.h"])
    assert "digits_pixels(" in header and "digits_set_pixels(" in header
    assert "digits_classes(" in header and f"digits_{old}(" not in header
    x = library.plan.graph.tensor("pixels")
    pixels = np.arange(64, dtype=x.dtype.numpy).reshape(x.shape)
    found = library.host("llvm").run(pixels=pixels)["classes"]
    np.testing.assert_array_equal(found, plain.host("llvm").run(image=pixels)[old])


def test_in_a_file_and_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.tflite").write_bytes((FOLDER / FILES[0]).read_bytes())
    text = '[models.d]\nfile = "d.tflite"\nrename = { "output:0" = "classes" }\n'
    Path("crt.toml").write_text(text)
    assert main(["inspect", "d", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["outputs"][0]["name"] == "classes"
    assert "--rename output:0=classes" in facts["command"]
    words = ["build", "d.tflite", "-o", "tree", "--rename", "image=pixels"]
    assert main(words) == 0
    assert main(["rebuild", "tree", "--from", "d.tflite"]) == 0
    assert capsys.readouterr().out.endswith("equal\n")


def test_a_new_export_keeps_the_api() -> None:
    """Of the same net, with another name of its output."""
    onnx = pytest.importorskip("onnx")
    proto = onnx.load(FOLDER / "digits_f32.onnx")
    old = proto.graph.output[0].name
    proto.graph.output[0].name = "StatefulPartitionedCall:0"
    for node in proto.graph.node:
        for index, name in enumerate(node.output):
            node.output[index] = "StatefulPartitionedCall:0" if name == old else name
    headers = [
        str(pybuild.load(data, rename=NAMES).build(name="digits").files()["digits.h"])
        for data in (FOLDER / "digits_f32.onnx", proto)
    ]
    one, other = (text[text.index("#include") :] for text in headers)
    assert one == other


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ({"scoers": "classes"}, "there is no input or output 'scoers'. Hint: did you"),
        ({"output:1": "classes"}, "there is no input or output 'output:1'"),
        ({"image": "scores"}, "'scores' is the name of another tensor"),
        ({"image": "x", "output:0": "x"}, "'x' is the name of another tensor"),
        ({"image": ""}, "'image' gets no name"),
    ],
)
def test_names_that_cannot_be(names: dict[str, str], what: str) -> None:
    with pytest.raises(BuildError) as caught:
        pybuild.load(FOLDER / FILES[0], rename=names)
    assert what in str(caught.value)


def test_two_names_may_change_places() -> None:
    make = pybuild.GraphBuilder("two")
    one, other = make.input("a", (1, 4)), make.input("b", (1, 4))
    make.output(make.op("sub", one, other), "c")
    from pybuild.ir.renamed import as_in_file, with_names

    graph = make.build()
    made = with_names(graph, {"a": "b", "b": "a"})
    assert made.inputs == ("b", "a") and made.nodes[0].inputs[:2] == ("b", "a")
    assert as_in_file(made) == graph
