"""Constants and parameters: what is offered, packed, replaced, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.host.abi import CrtError
from pybuild.host.parameter_image import Weights
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.select import parameters
from pybuild.select.parameters import with_values
from pybuild.verify.samples import example_inputs
from tests.conftest import ROOT, model_path
from tests.graphs import real_models
from tests.graphs.networks import Network, classifier

Arrays = dict[str, np.ndarray]
BACKENDS = ("llvm", "c")


def other_values(graph: Graph, seed: int = 5) -> Arrays:
    """New values of every parameter, of the same types and sizes."""
    chance = np.random.default_rng(seed)
    made = {}
    for name in graph.parameters:
        old = graph.constants[name]
        made[name] = chance.permutation(old.reshape(-1)).reshape(old.shape)
    return made


def outputs(library: Library, weights: Weights | None, backend: str) -> Arrays:
    net = library.host(backend)
    if weights is not None:
        net.load_params(weights)
    return net(**example_inputs(library.plan.graph))


def assert_same(a: Arrays, b: Arrays) -> None:
    assert all(a[name].tobytes() == b[name].tobytes() for name in a)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_replaced_values_equal_a_new_build(kind: str, backend: str) -> None:
    model = classifier(kind=kind).model()
    library = model.build(params="replaceable")
    plain = outputs(model.build(), None, backend)
    if kind == "int8":
        assert_same(outputs(library, None, backend), plain)
    values = other_values(library.model.graph)
    loaded = outputs(library, Weights(library.image(values)), backend)
    anew = replace(library.model, graph=with_values(library.model.graph, values))
    rebuilt = replace(anew, _lowered={}).build()
    assert_same(loaded, outputs(rebuilt, None, backend))
    assert any((loaded[n] != plain[n]).any() for n in plain)


# of the large nets one file, the small ones hold each format
LARGE = ("vww", "ic")
USUAL = ("vww_int8.tflite", "ic_qdq.onnx")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n, marks=[pytest.mark.sweep] * (n.startswith(LARGE) and n not in USUAL)
        )
        for n in real_models.FILES
    ],
)
def test_real_networks(name: str) -> None:
    """Every weight as a parameter, replaced in one image; integers to the bit."""
    model = pybuild.load(model_path(name))
    library = model.build(params="replaceable")
    assert {s for slot in library.plan.slots.values() for s in slot.sources}
    want = outputs(model.build(), None, "llvm")
    have = outputs(library, None, "llvm")
    for key, value in want.items():
        if value.dtype == np.float32:
            most = float(np.abs(value).max())
            assert float(np.abs(have[key] - value).max()) <= 1e-5 * most
        else:
            assert value.tobytes() == have[key].tobytes()


def test_constants_are_no_parameters() -> None:
    library = classifier().model().build()
    assert library.tables.parameters == () and not library.plan.slots


def test_some_by_name() -> None:
    library = classifier().model().build(params=["logits/w"])
    names = [slot.name for slot in library.plan.slots.values()]
    # its zero point times its sums goes into the bias that the kernel adds
    assert names == ["logits/w", "logits/w.bias"]
    bias = list(library.plan.slots.values())[1]
    assert bias.sources == ("logits/w",) and bias.layout != 0


def _scaled(net: Network) -> str:
    """A per-channel factor after a convolution, which a pass folds into weights."""
    net.conv("layer", 4)
    net.nodes[-1] = replace(
        net.nodes[-1],
        attrs={k: v for k, v in net.nodes[-1].attrs.items() if k != "clamp"},
    )
    return net._bias("factor", 4)


@pytest.mark.parametrize("free", ["layer/w", "factor"])
def test_parameters_are_not_folded(free: str) -> None:
    net = Network("folds", (1, 4, 4, 2), "float32", 1)
    factor = _scaled(net)
    net.add("mul", "scaled", (1, 4, 4, 4), factor)
    model = net.model()
    assert [n.op for n in model.build().plan.graph.nodes] == ["conv2d"]
    library = model.build(params=[free])
    assert [n.op for n in library.plan.graph.nodes] == ["conv2d", "mul"]
    values = {free: model.graph.constants[free] * np.float32(3)}
    rebuilt = replace(model, graph=with_values(model.graph, values), _lowered={})
    have = outputs(library, Weights(library.image(values)), "llvm")["scaled"]
    want = outputs(rebuilt.build(), None, "llvm")["scaled"]
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_an_unused_weight_is_not_offered() -> None:
    net = classifier()
    net._bias("nobody", 8)
    library = net.model().build(params="replaceable")
    offered = {s for slot in library.plan.slots.values() for s in slot.sources}
    assert "nobody" not in offered and "stem/w" in offered
    assert library.get_params().keys() == offered


def test_float_weights_stay_row_major() -> None:
    net = Network("shares", (1, 16), "float32", 2)
    net.dense("only", 24)
    library = net.model().build(params="replaceable")
    assert {slot.name: slot.layout for slot in library.plan.slots.values()} == {
        "only/w": 0,
        "only/b": 0,
    }


def test_one_image_serves_two_models() -> None:
    """Row-major weights of two models, by name, at one address."""
    nets = []
    for name in ("first", "second"):
        net = Network(name, (1, 16), "float32", 2)
        net.dense("only", 24)
        nets.append(net.model().build(params="replaceable"))
    weights = nets[0].weights
    one, two = (library.instance() for library in nets)
    one.load_params(weights)
    two.load_params(weights)
    assert one.parameter_address("only/w") == two.parameter_address("only/w")
    assert weights.users == 4
    with pytest.raises(CrtError, match="CRT_ERR_IN_USE"):
        weights.close()
    one.release_params()
    two.release_params()
    weights.close()


def test_another_arrangement_is_refused() -> None:
    """The folded bias depends on the zero point: images of models that differ in it."""
    made = []
    for zero in (3, 4):
        net = classifier()
        image = net.tensors["image"]
        assert image.quant is not None
        quant = replace(image.quant, zero_point=(zero,))
        net.tensors["image"] = replace(image, quant=quant)
        made.append(net.model().build(params="replaceable"))
    net = made[0].instance()
    with pytest.raises(CrtError, match="CRT_ERR_LAYOUT"):
        net.load_params(made[1].weights)
    assert made[1].weights.users == 0
    with pytest.raises(CrtError, match="CRT_ERR_UNBOUND"):
        net.setup()


def test_wrong_values_are_all_named() -> None:
    library = classifier().model().build(params="replaceable")
    wrong = {
        "stem/b": np.zeros(8, np.int64),
        "logits/w": np.zeros((5, 31), np.int8),
    }
    with pytest.raises(pybuild.BuildError) as caught:
        library.image(wrong)
    assert [str(p) for p in caught.value.problems] == [
        "tiny.test: parameter 'stem/b': is int32[8], not int64[8]",
        "tiny.test: parameter 'logits/w': is int8[5, 32], not int8[5, 31]",
    ]
    with pytest.raises(pybuild.BuildError, match="there is no 'stem/x'"):
        library.image({"stem/x": np.zeros(8, np.int32)})


def test_values_that_could_overflow_are_refused_where_they_are_packed() -> None:
    library = classifier().model().build(params="replaceable")
    huge = {"stem/b": np.full(8, 2**31 - 1, np.int32)}
    with pytest.raises(pybuild.BuildError, match="could overflow"):
        library.image(huge)


def test_code_that_depends_on_values_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that looks at a parameter's values would be wrong for others."""
    from pybuild.select import devices as module

    real = module.candidates

    def peeking(node, graph, *more):  # type: ignore[no-untyped-def]
        found = real(node, graph, *more)
        if node.op != "dense":
            return found
        total = int(graph.constants[node.inputs[1]].astype(np.int64).sum())
        return [replace(c, args=(*c.args[:-1], total)) for c in found]

    monkeypatch.setattr(module, "candidates", peeking)
    classifier().model().build()
    with pytest.raises(pybuild.BuildError, match="depends on the values"):
        classifier().model().build(params="replaceable")


def test_the_layout_is_of_the_arrangement_not_of_the_model() -> None:
    """Two models with the same layer have one layout; another stride, another."""
    found = []
    for name, stride in (("a", 1), ("b", 1), ("c", 2)):
        net = Network(name, (1, 6, 6, 3), "int8", 1)
        net.conv(f"{name}_layer", 8, stride)
        library = net.model().build(params="replaceable")
        found.append([slot.layout for slot in library.plan.slots.values()])
    assert found[0] == found[1] != found[2]
    assert any(found[0])


def test_a_second_arrangement_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One matrix read by two layers whose inputs differ in type of quantisation."""
    net = Network("twice", (1, 16), "int8", 4)
    first = net.dense("one", 16)
    bias = net._bias("two/b", 16)
    net.add("dense", "two", (1, 16), "one/w", bias)
    library = net.model(first, "two").build(params=["one/w"])
    rows = library.report.parameters
    names = [row.name for row in rows]
    assert names[0] == "one/w" and "one/w.bias" in names
    assert sum(row.bytes for row in rows if row.layout == 0) == 256


def test_both_arrangements_are_replaced() -> None:
    """One matrix, read as it is and transposed: new values reach both."""
    b = pybuild.GraphBuilder("tied")
    x = b.input("x", (1, 4), "float32")
    w = b.parameter("w", np.eye(4, dtype=np.float32))
    b.output(b.op("dense", x, w), "rows")
    b.output(b.op("dense", x, b.op("transpose", w, perm=(1, 0))), "columns")
    library = pybuild.build(b.build())
    assert [s.layout == 0 for s in library.plan.slots.values()] == [True, False]
    new = np.arange(16, dtype=np.float32).reshape(4, 4)
    net = library.instance()
    net.load_params(Weights(library.image({"w": new})))
    have = net(x=np.ones((1, 4), np.float32))
    assert have["rows"].tolist() == [new.sum(1).tolist()]
    assert have["columns"].tolist() == [new.sum(0).tolist()]


@pytest.mark.parametrize("name", ["digits_f32.onnx", "digits_int8.onnx"])
def test_onnx_weights_have_the_name_and_the_order_of_the_file(name: str) -> None:
    path = ROOT / "examples" / "digits" / name
    file = {t.name: onnx.numpy_helper.to_array(t)
            for t in onnx.load(path).graph.initializer}  # fmt: skip
    library = pybuild.load(path).build(params="replaceable")
    graph = library.model.graph
    assert {"conv_w", "depthwise_w", "dense_w", "dense_b"} <= graph.parameters.keys()
    for weight in graph.parameters:
        np.testing.assert_array_equal(graph.constants[weight], file[weight])
    chance = np.random.default_rng(3)
    values = {
        n: chance.permutation(file[n].reshape(-1)).reshape(file[n].shape)
        for n in ("conv_w", "depthwise_w", "pointwise_w", "dense_w", "dense_b")
    }
    anew = replace(library.model, graph=with_values(graph, values), _lowered={})
    plain = anew.with_parameters("constant").build()
    have = outputs(library, Weights(library.image(values)), "llvm")["scores"]
    want = outputs(plain, None, "llvm")["scores"]
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
    one = pybuild.load(path).build(params=["conv_w"])
    assert one.report.parameters[0].name == "conv_w"


def test_moved_weights_are_shared_by_models_of_one_file(tmp_path: Path) -> None:
    """Of two batch sizes: what a kernel reads as it is has one layout in both."""
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["x", "w"], ["y"])], "n",
        [onnx.helper.make_tensor_value_info("x", 1, ["n", 2, 4, 4])],
        [onnx.helper.make_tensor_value_info("y", 1, ["n", 3, 2, 2])],
        [onnx.numpy_helper.from_array(np.ones((3, 2, 3, 3), np.float32), "w")],
    )  # fmt: skip
    path = tmp_path / "n.onnx"
    onnx.save(onnx.helper.make_model(graph), path)
    layouts = []
    for batch in (1, 4):
        model = pybuild.load(path, input_dims={"n": batch})
        library = model.build(params="replaceable")
        layouts.append([(s.name, s.layout) for s in library.plan.slots.values()])
    assert layouts[0] == layouts[1] and layouts[0][0][1] != 0


def test_probe_values_tell_every_order_apart() -> None:
    pattern = parameters._pattern(np.zeros((4, 5), np.float32))
    assert not np.array_equal(pattern.reshape(-1), pattern.T.reshape(-1))
    assert pattern.min() >= 1
