"""Post-training quantisation: what each of its parts does, and the whole of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph
from pybuild.ops.fixed_point.quant import quantized
from pybuild.ops.interpret import interpret
from pybuild.quantisation import mix
from tests.graphs.quantise import mixed, normal, report_of, samples_of, small
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import to_tflite

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
FLOAT = DIGITS / "digits_f32.onnx"
CALIBRATION = DIGITS / "digits_calibration.npz"
LAYERS = ("conv", "depthwise", "pointwise", "dense")


def held_out() -> dict[str, Array]:
    test = np.load(DIGITS / "digits_test.npz")
    images = test["images"].astype(np.float32)[:, None, None] / 16
    return {"image": images, "labels": test["labels"]}


# ---- the whole -----------------------------------------------------------------


@pytest.mark.parametrize("boundary", ["float", "int8"])
def test_digits(boundary: str) -> None:
    """As right as in float, and the board's bits are those that were measured."""
    test = held_out()
    made = pybuild.quantise(FLOAT, CALIBRATION, test=test, boundary=boundary)
    report = made.report
    assert report.score is not None
    assert (report.score.samples, report.score.right_float) == (360, 355)
    assert report.score.right_quantised >= 355 and report.loss <= 0
    assert report.error < 0.0098 and report.fitted
    assert [row.name for row in report.layers] == [
        "pointwise", "dense", "depthwise", "conv"
    ]  # fmt: skip
    assert all(row.kind == "int8" for row in report.layers)
    noise = [row.snr for row in report.layers if row.snr]
    assert len(noise) == 4 and noise == sorted(noise) and 37 < noise[0] < noise[-1] < 46
    assert (report.floats, report.equalised, report.bias_corrected) == ((), 3, True)
    library = made.model.build()
    (image,), (scores,) = library.report.inputs, library.report.outputs
    kind = {"float": "float32", "int8": "int8"}[boundary]
    assert (image.dtype, scores.dtype) == (kind, kind)
    assert (
        library.report.flash.weights < pybuild.load(FLOAT).build().report.flash.weights
    )
    net, right = library.host(), 0
    for value, label in zip(test["image"], test["labels"], strict=True):
        if boundary == "int8":
            assert image.scale is not None
            value = np.rint(value / np.float32(image.scale)) + image.zero_point
            value = value.astype(np.int8)
        net.run(image=value)
        right += int(net.get_output("scores").argmax() == label)
    assert right == report.score.right_quantised


def test_named_layers_stay_float() -> None:
    made = pybuild.quantise(FLOAT, CALIBRATION, keep_float=["pointwise", "scores"])
    kinds = {row.name: row.kind for row in made.report.layers}
    assert kinds == dict(
        conv="int8", depthwise="int8", pointwise="float32", dense="float32"
    )
    assert {(f.name, f.reason) for f in made.report.floats} >= {
        ("pointwise", "named to stay float"), ("dense", "named to stay float")
    }  # fmt: skip
    graph = made.model.lower()
    types = {n.name: graph.tensor(n.output).dtype.value for n in graph.nodes}
    assert [types[name] for name in LAYERS] == ["int8", "int8", "float32", "float32"]


@pytest.mark.parametrize("rounding", ["litert", "onnx"])
def test_every_operator(rounding: str) -> None:
    """The printed kernels give the bits that were measured, at little noise."""
    graph = mixed()
    data = samples_of(graph)
    made = pybuild.quantise(graph, data.inputs, rounding=rounding)
    assert {(row.op, row.kind) for row in made.report.layers} == {
        *((op, "int8") for op in (
            "depthwise_conv2d", "tanh", "mul", "leaky_relu", "clip", "avg_pool2d",
            "mean", "dense", "softmax", "logistic", "sub", "add",
        )),
        ("map", "float32"),
    }  # fmt: skip
    (stayed,) = made.report.floats
    assert (stayed.op, stayed.reason) == ("map", "'map' has no int8 form here")
    assert 25 < min(row.snr or 99 for row in made.report.layers) < 45
    library = made.model.build(rounding=rounding)
    net = library.host()
    for x in data.inputs["x"][:4]:
        want = interpret(library.plan.graph, {"x": x})
        net.run(x=x)
        for index, name in enumerate(("y", "shares")):
            assert np.abs(net.get_output(index) - want[name]).max() <= 1e-6


def test_state_is_given_by_samples_first() -> None:
    """Quantised with the old value as an input, then kept from run to run."""
    make = pybuild.GraphBuilder("kept")
    x, old = make.input("x", (1, 4)), make.input("old", (1, 4))
    w = make.constant("w", 0.5 * normal((4, 4)))
    joined = make.op("add", make.op("dense", x, w, name="dense"), old, name="joined")
    make.output(make.op("tanh", joined, name="new"), "new")
    graph = make.build()
    data = samples_of(graph).inputs
    model = pybuild.quantise(graph, data).model.with_state({"old": "new"})
    net, before = model.build(input="keep").host(), np.zeros((1, 4), np.float32)
    for value in data["x"][:5]:
        net.run(x=value)
        before = interpret(graph, {"x": value, "old": before})["new"]
        assert np.abs(net.get_output("new") - before).max() < 0.05
    with pytest.raises(pybuild.BuildError, match="keeps tensors from run to run"):
        pybuild.quantise(model, {"x": data["x"]})


def test_named_layers_in_int16() -> None:
    """Left is the noise of int8 weights; what only moves values keeps int16."""
    graph = small()
    data = samples_of(graph).inputs
    plain = pybuild.quantise(graph, data).report
    made = pybuild.quantise(graph, data, int16=["conv", "y"])
    kinds = {node.op: made.model.graph.tensor(node.output).dtype.value
             for node in made.model.graph.nodes}  # fmt: skip
    assert kinds == dict(
        quantize="int16", conv2d="int16", max_pool2d="int16", reshape="int16",
        dense="int16", dequantize="float32",
    )  # fmt: skip
    assert {row.kind for row in made.report.layers} == {"int16"}
    assert made.report.error < 0.7 * plain.error and made.report.floats == ()
    for choice in (["conv"], ["y"]):
        one = pybuild.quantise(graph, data, int16=choice).report
        assert made.report.error < one.error < 1.02 * plain.error
    model = pybuild.quantise(mixed(), samples_of(mixed()).inputs, int16=[
        "tanh", "scaled", "softmax", "logistic", "scores", "leaky_relu", "clip"
    ]).model  # fmt: skip
    library = model.build()
    net = library.host()
    for x in samples_of(mixed()).inputs["x"][:3]:
        want = interpret(library.plan.graph, {"x": x})
        net.run(x=x)
        assert np.abs(net.get_output(0) - want["y"]).max() <= 1e-6
    types = [
        library.plan.graph.tensor(n.output).dtype for n in library.plan.graph.nodes
    ]
    assert types.count(DType.INT16) >= 7 and DType.INT8 in types


def test_a_float_tflite_file_becomes_an_int8_one(tmp_path: Path) -> None:
    """What comes out, written to a file, is what LiteRT's kernels compute."""
    path = tmp_path / "small.tflite"
    path.write_bytes(to_tflite(small()))
    data = samples_of(small())
    made = pybuild.quantise(path, data.inputs, boundary="int8")
    graph = made.model.graph
    assert {t.dtype.value for t in graph.tensors.values()} == {"int8", "int32"}
    x = quantized(data.inputs["x"], graph.tensor("x"), "even")
    net = made.model.build().host()
    for value, seen in zip(x[:5], run_litert(
        to_tflite(graph), [{"x": value} for value in x[:5]]
    ), strict=True):  # fmt: skip
        net.run(x=value)
        assert np.array_equal(net.get_output("y"), seen["y"])


def test_what_an_operator_refuses_stays_float() -> None:
    make = pybuild.GraphBuilder("wide")
    two = make.constant("two", np.float32(2))
    x = make.op("mul", make.input("x", (1, 5000)), two)
    make.output(make.op("softmax", x, name="wide", axis=1, beta=1.0), "y")
    (stayed,) = report_of(make.build(), 3).floats
    what = "5000 values in a row, at most 4095 in int8"
    assert (stayed.name, stayed.reason) == ("wide", what)


def test_small_weights_under_a_large_bias() -> None:
    """A bias in steps of tiny weights would not fit int32."""
    make = pybuild.GraphBuilder("bias")
    w = np.stack([np.full(4, 1e-7, np.float32), normal((4,))])
    weights = make.constant("w", w)
    bias = make.constant("b", np.float32([7, 1]))
    y = make.op("dense", make.input("x", (1, 4)), weights, bias, name="y")
    make.output(y)
    graph = make.build()
    for boundary in ("float", "int8"):
        report = report_of(graph, boundary=boundary)
        assert report.error < 0.01 and report.floats == ()


def test_weights_that_can_be_replaced_stay_float() -> None:
    model = pybuild.load(FLOAT).with_parameters(["pointwise_w"])
    report = pybuild.quantise(model, CALIBRATION).report
    (stayed,) = [f for f in report.floats if f.name == "pointwise"]
    assert stayed.reason == "its weights 'pointwise_w.moved' are not constant"


# ---- the cheapest mix ----------------------------------------------------------


def bad_layer() -> Graph:
    """`huge`: one weight 100,000 times the others, so int8 keeps none of them."""
    make = pybuild.GraphBuilder("bad")
    x = make.input("x", (1, 8))
    first, last = normal((8, 8)), normal((4, 8), 3)
    huge = np.full((8, 8), 1e-3, np.float32) * normal((8, 8), 5)
    huge[:, 0] = 0
    huge = np.concatenate([huge, np.full((8, 1), 100, np.float32)], 1)
    flat = make.op("dense", x, make.constant("a", first), name="first")
    zero = make.op(
        "mul",
        make.op("slice", flat, begin=(0, 0), end=(1, 1), strides=(1, 1)),
        make.constant("z", np.float32(0)),
    )
    wide = make.op("concat", flat, zero, axis=1)
    bad = make.op("dense", wide, make.constant("h", huge), name="huge")
    make.output(make.op("dense", bad, make.constant("c", last), name="last"), "y")
    return make.build()


def test_the_cheapest_mix_is_the_layer_that_errs() -> None:
    graph = bad_layer()
    whole = report_of(graph)
    assert whole.loss == whole.error > 0.5
    least = report_of(graph, max_loss=0.02)
    assert least.loss <= 0.02
    assert [(f.name, f.reason) for f in least.floats] == [
        ("huge", "in int8 it costs more accuracy than --max-loss")
    ]
    assert report_of(graph, max_loss=0.0).loss == 0.0
    # a layer that was tried first, in vain, becomes int8 again
    order = {"first": 3.0, "huge": 2.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mix, "_gain", lambda *given: order.get(given[-1].name, 1.0))
        again = report_of(graph, max_loss=0.02)
    assert [f.name for f in again.floats] == ["huge"]
    least = report_of(small(), max_loss=0.05)
    assert least.floats == () and least.fitted
    none = report_of(small(), max_loss=0.0)
    assert none.loss == 0.0 and not none.fitted and none.equalised == 0


def test_int16_of_what_was_zero_on_all_samples() -> None:
    """Its outputs are small biases: in steps of 1 sums scaled to those left int32."""
    make = pybuild.GraphBuilder("dead")
    x = make.input("x", (1, 4))
    w, bias = normal((3, 4)), normal((3,), 1) / 100
    reads = x, make.constant("w", w), make.constant("b", bias)
    make.output(make.op("dense", *reads, name="dense"), "y")
    zeros = np.zeros((2, 1, 4), np.float32)
    made = pybuild.quantise(make.build(), {"x": zeros}, int16=["dense"])
    got = made.model.build().host()(x=zeros[0])["y"]
    np.testing.assert_allclose(got, bias[None], atol=1e-4)


def test_the_cheapest_mix_has_int16_where_that_is_enough() -> None:
    """Channels far apart: int8 loses the small ones, int16 keeps them."""
    graph = small(np.logspace(-0.75, 0.75, 6))
    assert report_of(graph, equalise=False).loss > 0.06
    least = report_of(graph, equalise=False, max_loss=0.045)
    assert least.loss <= 0.045 and least.floats == ()
    assert {row.kind for row in least.layers} == {"int16"}


# ---- the command ---------------------------------------------------------------


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = [str(FLOAT), "--quantise", str(CALIBRATION)]
    options = ["--calibrate", "percentile", "--percentile", "99.9", "--no-equalise"]
    options += [
        "--no-fit-weights",
        "--no-bias-correction",
        "--keep-float",
        "conv",
        "--max-loss",
        "0.5%",
    ]
    assert main(["build", *words, *options, "-o", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    report = json.loads((out / "report.json").read_text())
    assert len(report.pop("example")["sha256"]) == 64
    assert report == facts
    made = facts["quantisation"]
    assert (made["method"], made["samples"], made["equalised"]) == (
        "percentile",
        200,
        0,
    )
    assert made["score"]["right_float"] == 199 and not made["bias_corrected"]
    assert not made["fitted"]
    assert made["floats"][0]["reason"] == "named to stay float"
    assert main(["inspect", *words, "--boundary", "int8"]) == 0
    shown = capsys.readouterr().out
    assert "signal to noise" in shown and "right  199 of 200 in float, 199" in shown
    few = tmp_path / "few.npz"
    np.savez(few, **{name: value[:20] for name, value in np.load(CALIBRATION).items()})
    words = [str(FLOAT), "--quantise", str(few)]
    more = ["--samples", "3", "--backend", "llvm", "--per-layer", "--json"]
    assert main(["check", *words, *more]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["ok"] and facts["reference"].startswith("numpy")
    assert main(["debug", *words]) == 0
    assert "zeros     how many values are 0; of integers" in capsys.readouterr().out


def test_max_loss_is_a_share(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", str(FLOAT), "--quantise", str(CALIBRATION), "--max-loss"]
    assert main([*words, "half"]) == 64
    assert "'half' is not a share. Hint: like 0.5%" in capsys.readouterr().err
