"""Files of several subgraphs: composites, and signatures; what LiteRT gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.verify.reference import reference
from tests.ops.tflite_writer import FileOperator, FileTensor, write

Parts = tuple[list[FileTensor], list[FileOperator], list[int], list[int]]
RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(0, 1, (16, 8)).astype(np.float32)


def _known(name: str, value: Any) -> FileTensor:
    array = np.asarray(value)
    return FileTensor(name, array.shape, array.dtype.name.upper(), array)


def _composite(number: int, name: str, *places: tuple[int, ...]) -> FileOperator:
    options = {
        "Name": name, "DecompositionSubgraphIndex": number,
        "CompositeAttributes": bytes(flexbuffers.Dumps({})),
    }  # fmt: skip
    table = "StableHLOCompositeOptions"
    return FileOperator("STABLEHLO_COMPOSITE", *places, table, options, late=True)


def _l2_norm() -> Parts:
    """x / sqrt(sum(x * x)), as litert-torch decomposes it; and the sum."""
    shapes = {"x": (2, 8), "square": (2, 8), "sum": (2, 1), "root": (2, 1), "y": (2, 8)}
    tensors = [FileTensor(name, shape) for name, shape in shapes.items()]
    tensors.append(_known("axes", np.asarray([1], np.int32)))
    operators = [
        FileOperator("MUL", (0, 0), (1,), "MulOptions"),
        FileOperator("SUM", (1, 5), (2,), "ReducerOptions", {"KeepDims": True}),
        FileOperator("RSQRT", (2,), (3,)),
        FileOperator("MUL", (0, 3), (4,), "MulOptions"),
    ]
    return tensors, operators, [0], [4, 2]


def _normalised() -> bytes:
    """Two calls of one composite, the second on what the first gives."""
    shapes = {"x": (2, 8), "a": (2, 8), "s": (2, 1), "b": (2, 8), "t": (2, 1)}
    tensors = [FileTensor(name, shape) for name, shape in shapes.items()]
    operators = [
        _composite(1, "odml.l2_norm", (0,), (1, 2)),
        _composite(1, "odml.l2_norm", (1,), (3, 4)),
    ]
    return write(tensors, operators, [0], [3, 4, 2], called=[_l2_norm()])


def _signed() -> bytes:
    """`prefill` of 4 rows and `decode` of one, with the same weights; the second calls
    a composite, the first of a file is what LiteRT runs by itself.
    """

    def parts(rows: int) -> Parts:
        tensors = [
            FileTensor("x", (rows, 8)),
            _known("w", WEIGHTS),
            FileTensor("y", (rows, 16)),
        ]
        table = "FullyConnectedOptions"
        layer = FileOperator("FULLY_CONNECTED", (0, 1, -1), (2,), table)
        return tensors, [layer], [0], [2]

    tensors, (layer,), _, _ = parts(1)
    tensors += [FileTensor("z", (1, 16))]
    inner: Parts = (
        [FileTensor("v", (1, 16)), FileTensor("r", (1, 16))],
        [FileOperator("RELU", (0,), (1,))], [0], [1],
    )  # fmt: skip
    decode: Parts = (
        tensors, [layer, _composite(2, "odml.relu", (2,), (3,))], [0], [3]
    )  # fmt: skip
    named = {"prefill": 0, "decode": 1}
    return write(*parts(4), called=[decode, inner], signatures=named)


def _equal(path: Path, model: pybuild.Model) -> None:
    """Both back ends give what LiteRT gives of the file, in a process of its own."""
    library = model.build(name="m")
    graph = library.plan.graph
    theirs = reference("litert", path, graph).run
    x: dict[str, Array] = {
        name: RNG.normal(0, 1, graph.tensor(name).shape).astype(np.float32)
        for name in graph.inputs
    }
    want = theirs(x)
    for code in ("c", "llvm"):
        net = library.host(code)
        net.run(**x)
        for name in graph.outputs:
            np.testing.assert_allclose(net.get_output(name), want[name], 1e-5, 1e-6)
        net.close()


def test_a_composite_is_its_subgraph(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_normalised())
    model = pybuild.load(path)
    _equal(path, model)
    assert model.graph.signatures == ()


@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_a_signature_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_signed())
    model = pybuild.load(path, signature=name)
    _equal(path, model)
    assert model.graph.signatures[0] == name
    assert main(["check", str(path), "--signature", name]) == 0


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    out, err = capsys.readouterr()
    return out + err


def test_signatures_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_signed())
    assert _said(capsys, "inspect", str(path)) == (
        "m.tflite: has 2 signatures: 'prefill', 'decode'. "
        "Hint: --signature prefill builds that one\n"
    )
    assert _said(capsys, "inspect", str(path), "--signature", "decod") == (
        "--signature: m.tflite has no 'decod'. "
        "Hint: did you mean 'decode'? one of prefill, decode\n"
    )
    said = _said(capsys, "inspect", str(path), "--signature", "decode")
    assert "signature decode of 2; others: prefill\n" in said


def test_a_signature_of_a_file_without_any(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_normalised())
    with pytest.raises(BuildError, match=r"m\.tflite has no 'a'\. Hint: leave it out"):
        pybuild.load(path, signature="a")
    with pytest.raises(BuildError, match=r"--signature: is for \.tflite files only"):
        pybuild.load('{"nodes": []}', signature="a")


def test_subgraphs_without_signatures_go_by_their_numbers() -> None:
    relu = FileOperator("RELU", (0,), (1,))
    tensors = [FileTensor("x", (1, 4)), FileTensor("y", (1, 4))]
    other = (tensors, [FileOperator("NEG", (0,), (1,))], [0], [1])
    data = write(tensors, [relu], [0], [1], called=[other])
    graph = load("m.tflite", data, {}, signature="subgraph_1")
    assert graph.nodes[0].attrs.get("fn") == "negate"


def test_signatures_share_their_weights(tmp_path: Path) -> None:
    """As models of an image, also by a project file."""
    path = tmp_path / "m.tflite"
    path.write_bytes(_signed())
    both = {name: pybuild.load(path, signature=name) for name in ("prefill", "decode")}
    image = pybuild.build_image(both)
    alone = [made.build(name="m").report.flash.weights for made in both.values()]
    assert image.report.flash.weights < max(alone) + WEIGHTS.nbytes // 4
    nets = image.host("llvm")
    x = RNG.normal(0, 1, (4, 8)).astype(np.float32)
    rows = nets["prefill"].run(x=x)["y"]
    row = nets["decode"].run(x=x[:1])["z"]
    np.testing.assert_allclose(row, np.maximum(rows[:1], 0), 1e-5, 1e-6)
    (tmp_path / "crt.toml").write_text(
        "".join(
            f'[models.{name}]\nfile = "m.tflite"\nsignature = "{name}"\n'
            for name in both
        )
        + '[images.both]\nmodels = ["prefill", "decode"]\n'
    )
    project = str(tmp_path / "crt.toml")
    assert main(["build", "--project", project]) == 0
    assert (tmp_path / "build" / "both" / "prefill.h").exists()
