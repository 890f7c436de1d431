"""A user's samples through a build: each layer's error is that of numpy by hand, what
is cut off is counted, classes are those of `crt check`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.html.samples import SampleFacts
from pybuild.ir.graph import Quant
from pybuild.library import Library
from pybuild.verify.over_samples import BESIDE
from pybuild.verify.real_numbers import in_real_numbers
from tests.verify.test_own_samples import INT8, LABELS, REAL, RIGHT

STEP, SCALES = 0.05, np.array([0.01, 0.02, 0.04])
WEIGHTS = np.array([[50, -100, 7], [3, 127, -20], [-64, 9, 90]], np.int8)
BIAS = np.array([400, -90, 25], np.int32)
F32 = INT8.with_name("digits_f32.onnx")
ONNX, CALIBRATION = (INT8.with_name(n) for n in ("digits_int8.onnx",
                                                 "digits_calibration.npz"))  # fmt: skip


def facts(library: Library, data: object) -> SampleFacts:
    found = library.sample_facts(data)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def two_layers() -> Library:
    """A dense layer whose integers end at 6.35, and ReLU as integers from 0."""
    net = GraphBuilder("two")
    x = net.input("x", (1, 3), "int8", quant=(STEP, 3))
    w = net.constant("w", WEIGHTS, Quant(tuple(map(float, SCALES)), (0,) * 3, 0))
    b = net.constant("b", BIAS)
    y = net.op("dense", x, w, b, quant=(STEP, 0), name="first")
    z = net.op("quantize", y, quant=(STEP, -128), dtype="int8", name="second")
    net.output(z)
    return pybuild.build(net.build())


def by_hand(x: Array) -> tuple[Array, float]:
    """The last layer in real numbers; what share of the first is cut off."""
    real = STEP * (x.astype(np.float64) - 3)
    y = real @ (WEIGHTS * SCALES[:, None]).T + BIAS * SCALES * STEP
    kept = np.clip(y, -128 * STEP, 127 * STEP)
    far = (y >= 127.5 * STEP) | (y <= -128.5 * STEP)
    return np.maximum(kept, 0), float(far.mean())


def test_errors_are_those_by_hand(two_layers: Library) -> None:
    chance = np.random.default_rng(1)
    given = chance.integers(-128, 128, (20, 1, 3)).astype(np.int8)
    found = facts(two_layers, {"x": given})
    assert found.ok and found.count == 20 and found.beside == BESIDE
    net = two_layers.host()
    signal = noise = 0.0
    cut = []
    (last,) = two_layers.graph.outputs
    for x in given:
        second, beyond = by_hand(x)
        cut.append(beyond)
        z = STEP * (net(x=x)[last].astype(np.float64) + 128)
        signal += np.square(second).sum()
        noise += np.square(z - second).sum()
    net.close()
    one, two = found.layers
    assert 0 < np.mean(cut) < 1 and one.cut_off == pytest.approx(np.mean(cut))
    assert two.cut_off == 0  # integers that begin at 0 are ReLU: nothing is lost
    assert two.error == pytest.approx(np.sqrt(noise / signal), rel=1e-4)
    assert two.snr == pytest.approx(-20 * np.log10(two.error), rel=1e-6)
    assert one.error is not None and 0 < one.error < 0.02
    assert (one.unequal, one.max_abs) == (0.0, 0.0)


def test_classes_are_those_of_check() -> None:
    library = pybuild.load(INT8).build()
    found = library.sample_facts({"image": REAL}, LABELS)
    assert found is not None and found.classes is not None
    right = {"reference": RIGHT, "build": RIGHT}
    assert {n: found.classes["right"][n] for n in right} == right
    assert set(found.classes["right"]) == {*right, "real numbers"}
    assert found.labelled and "LiteRT" in found.reference
    assert [row.name for row in found.layers] == [r.name for r in library.report.layers]
    assert all(row.unequal == 0 for row in found.layers if row.unequal is not None)
    assert all(0 < row.error < 0.05 for row in found.layers if row.error is not None)


def test_floats_are_beside_the_reference() -> None:
    library = pybuild.load(F32).build()
    found = facts(library, REAL.reshape(-1, 1, 8, 8)[:5])
    assert "ONNX Runtime" in found.beside and found.ok
    dense = next(row for row in found.layers if row.op == "dense")
    assert dense.error is not None and dense.error < 1e-5
    assert dense.cut_off is None and dense.unequal is None


def test_what_is_integers_by_itself() -> None:
    """A table of values has no meaning in real numbers."""
    net = GraphBuilder("table")
    x = net.input("x", (1, 8), "int8", quant=(0.1, 0))
    table = net.constant("t", np.arange(-128, 128).astype(np.int8)[::-1].copy())
    net.output(net.op("lookup", x, table, quant=(0.1, 0)))
    library = pybuild.build(net.build())
    assert in_real_numbers(library.plan.graph) is None
    found = facts(library, np.zeros((2, 1, 8), np.int8))
    assert found.beside.startswith("numpy") and found.layers[0].error == 0


def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(ONNX), "--data", str(CALIBRATION)]
    page = tmp_path / "report.html"
    assert main(["report", *words, "-o", str(page), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["samples"]
    assert told["count"] == 200 and told["classes"]["accuracy"]["build"] == 0.995
    tree = tmp_path / "tree"
    assert main(["build", *words, "--html", "-o", str(tree)]) == 0
    assert '"samples":{"count":200' in (tree / "report.html").read_text("utf-8")
    capsys.readouterr()
    for wrong, text in (
        (["report", str(INT8), "--labels", "x.npy"], "--labels: needs --data"),
        (["build", *words, "-o", "x"], "--data: is drawn on a page"),
        (["report", *words, "--stream", "1"], "--data: "),
    ):
        assert main(wrong) in (2, 64) and text in capsys.readouterr().err


def test_samples_that_do_not_fit() -> None:
    library = pybuild.load(INT8).build()
    with pytest.raises(BuildError, match=r"float32\[2, 5\]"):
        library.to_html(np.zeros((2, 5), np.float32))
