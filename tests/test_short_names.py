"""Names for people: short, unique, the same every time; and those of the file, which
remain the keys of every call."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError, LimitError
from pybuild.ir.graph import Graph
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.regions.regions import largest
from pybuild.text.short_names import LONGEST, brief, short_names
from tests.conftest import model_path
from tests.frontends.onnx.models import model as onnx_bytes

Capture = pytest.CaptureFixture[str]


def fused(layer: str, number: int, last: str) -> str:
    """As TensorFlow's converter names a layer with what it fused into it."""
    parts = [
        f"net/activation_{number}/Relu",
        f"net/batch_normalization_{number}/FusedBatchNormV3",
        f"net/{layer}/BiasAdd/ReadVariableOp/resource",
        f"net/{layer}/BiasAdd",
        "net/conv2d_4/Conv2D",
        f"net/{layer}/{last}1",
    ]
    return ";".join(parts)


TFLITE = {
    fused("conv2d", 0, "Conv2D"): "conv2d",
    fused("depthwise_conv2d", 1, "depthwise"): "depthwise_conv2d",
    fused("conv2d_1", 2, "Conv2D"): "conv2d_1",
    fused("depthwise_conv2d_1", 3, "depthwise"): "depthwise_conv2d_1",
    fused("conv2d_4", 4, "Conv2D"): "conv2d_4",
    "net/activation_5/Relu;net/dense/BiasAdd": "dense",
    "net/activation_6/Relu;net/add_1/add": "add_1",
    "net/average_pooling2d/AvgPool": "average_pooling2d",
    "net/re_lu_1_2/Relu;net/batch_normalization_2/batchnorm/add_1;"
    "net/separable_1/separable;net/batch_normalization_2/batchnorm/sub1": "separable_1",
    "StatefulPartitionedCall:0": "statefulpartitionedcall",
    "Identity": "Identity",
}
TORCH = {
    "/layer1/layer1.0/conv1/Conv": "layer1_0_conv1",
    "/layer1/layer1.1/conv1/Conv": "layer1_1_conv1",
    "/layer1/layer1.1/shortcut/Conv": "shortcut",
    "/attention/MatMul": "attention_matmul",
    "/attention/MatMul_1": "attention_matmul_1",
    "/attention/Softmax": "attention_softmax",
    "/fc/Gemm": "fc",
    "/Flatten": "flatten",
    "node_conv2d_12": "node_conv2d_12",
}


@pytest.mark.parametrize("wanted", [TFLITE, TORCH], ids=["tflite", "torch"])
def test_layers_are_called_by_what_they_are(wanted: dict[str, str]) -> None:
    assert short_names((name, name) for name in wanted) == wanted


def test_a_name_depends_on_none_that_is_unlike_it() -> None:
    alone = short_names((name, name) for name in TFLITE)
    both = short_names((name, name) for name in (*TORCH, *TFLITE))
    turned = short_names((name, name) for name in reversed((*TORCH, *TFLITE)))
    assert both == turned
    assert {name: both[name] for name in TFLITE} == alone


def test_an_output_shares_the_short_name_of_its_layer() -> None:
    layers = [("/fc/Gemm", "/fc/Gemm_output_0"), ("/act/Relu", "y")]
    made = short_names(layers, ["/fc/Gemm_output_0", "y", "/fc/Gemm_other"])
    assert made["/fc/Gemm_output_0"] == made["/fc/Gemm"] == "fc"
    assert (made["y"], made["/fc/Gemm_other"]) == ("y", "fc_gemm_other")


def test_weights_are_not_taken_for_layers() -> None:
    weights = ["net/conv2d/Conv2D", "net/conv2d/BiasAdd/ReadVariableOp/resource"]
    layer = fused("conv2d", 0, "Conv2D")
    made = short_names([(layer, layer)], [], weights)
    assert [made[name] for name in (layer, *weights)] == [
        "conv2d", "conv2d_conv2d", "conv2d_biasadd",
    ]  # fmt: skip


def test_whatever_names_are_they_become_short_unique_identifiers() -> None:
    names = [
        "",
        "/",
        ";",
        "a" * 300,
        "a" * 299 + "b",
        "für",
        "日本",
        "日本語",
        "1",
        "x y",
    ]
    names += [f"{'scope/' * 40}layer/Op_{i}" for i in range(12)]
    names += ["X", "x", "x_", "x/", "/x/x", "x:0", "x_2", "int"]
    made = short_names([(name, name) for name in names[::2]], names)
    found = [made[name] for name in names]
    assert all(re.fullmatch(r"[A-Za-z][0-9A-Za-z_]*", one) for one in found)
    assert len({one.lower() for one in found}) == len(found)
    assert max(map(len, found)) <= LONGEST + len("_12")
    assert made["x y"] == "x_y" and made["X"] != made["x"]


def test_thousands_of_like_names_take_no_time() -> None:
    names = [f"same/{'x' * 40}/{chr(0x4E00 + i)}" for i in range(5000)]
    start = time.process_time()
    made = short_names((name, name) for name in names)
    assert time.process_time() - start < 0.5
    assert len(set(made.values())) == len(names)


def test_messages_without_a_graph_are_brief() -> None:
    assert brief(fused("conv2d_1", 2, "Conv2D")) == "conv2d_1"
    assert brief("net/conv2d/Conv2D") == "net/conv2d/Conv2D"


def test_a_message_has_no_fused_name_and_json_has_it_whole() -> None:
    name = fused("conv2d_1", 2, "Conv2D")
    error = BuildError(f"kws.tflite: node '{name}' (CONV_2D)", f"'{name}' is odd", "no")
    text = "kws.tflite: node 'conv2d_1' (CONV_2D): 'conv2d_1' is odd. Hint: no"
    assert str(error) == str(error.problems[0]) == text
    assert name in error.problems[0].what
    assert "'a;b'" in str(BuildError("", "there is no 'a;b'"))


# ---- in a build ---------------------------------------------------------------

SCOPE = "/encoder/blocks/blocks.0/projection"
LAYERS = [f"{SCOPE}/{name}/Gemm" for name in ("first", "second", "third")]
WEIGHTS = [
    f"{SCOPE}/{name}/weight/of/the/layer" for name in ("first", "second", "third")
]
GIVEN, GOT = "serving/default/input:0", "serving/default/output:0"
X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three dense layers with names such as PyTorch's exporter writes."""
    rng = np.random.default_rng(5)
    names = [GIVEN, f"{LAYERS[0]}_output_0", f"{LAYERS[1]}_output_0", GOT]
    nodes = [("Gemm", [names[i], WEIGHTS[i]], [names[i + 1]], {}) for i in range(3)]
    values = {w: rng.normal(0, 0.4, (8, 8)).astype(np.float32) for w in WEIGHTS}
    whole = onnx.load_from_string(onnx_bytes(nodes, {GIVEN: X}, [GOT], values))
    for node, name in zip(whole.graph.node, LAYERS, strict=True):
        node.name = name
    path = tmp_path_factory.mktemp("names") / "net.onnx"
    path.write_bytes(whole.SerializeToString())
    return path


def test_c_has_short_names_and_calls_those_of_the_file(file: Path) -> None:
    library = pybuild.load(file).build(name="net")
    symbols = [c.symbol for c in library.tables.constants]
    wanted = {f"net_{name}_weights" for name in ("first", "second", "third")}
    assert wanted <= set(symbols)
    text = "".join(map(str, (library.files()[n] for n in ("net.c", "net_weights.c"))))
    assert " second: " in text and SCOPE not in text
    net = library.host()
    net.set_input(GIVEN, X)
    net.run()
    assert net.get_output(GOT).shape == (1, 8)


def test_the_report_has_both_names(file: Path, tmp_path: Path) -> None:
    pybuild.load(file).build(tmp_path / "net")
    facts = json.loads((tmp_path / "net" / "report.json").read_text())
    shorts = ["first", "second", "third"]
    assert [x["name"] for x in facts["layers"]] == LAYERS
    assert [x["short"] for x in facts["layers"]] == shorts
    tensors = {x["tensor"]: x["short"] for x in facts["tensors"]}
    assert tensors[f"{LAYERS[1]}_output_0"] == "second"
    assert facts["inputs"][0]["name"] == GIVEN


@pytest.mark.parametrize(
    "words",
    [
        ["inspect"],
        ["bench", "--runs", "1"],
        ["debug", "--ref", "numpy"],
        ["inspect", "--params", "replaceable"],
    ],
    ids=" ".join,
)
def test_tables_have_short_names_or_with_long_those_of_the_file(
    file: Path,
    words: list[str],
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    verb, *rest = words
    assert main([verb, str(file), *rest]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^ ?second +dense", shown, re.M) and SCOPE not in shown
    assert main([verb, str(file), *rest, "--long"]) == 0
    assert re.search(rf"^ ?{LAYERS[1]} +dense", capsys.readouterr().out, re.M)


@pytest.mark.parametrize(
    "names", [("second", "third"), LAYERS[1:]], ids=["short", "full"]
)
def test_layers_are_asked_for_by_either_name(
    file: Path, names: tuple[str, str]
) -> None:
    model = pybuild.load(file)
    placed = model.build(target={0: "generic", 1: "cortex-m4"}, place={names[0]: 1})
    found = {n.name: n.device for n in placed.plan.graph.nodes if n.op == "dense"}
    assert found == {LAYERS[0]: 0, LAYERS[1]: 1, LAYERS[2]: 0}
    samples = {GIVEN: np.random.default_rng(1).normal(size=(16, 1, 8)).astype("f4")}
    made = pybuild.quantise(
        model, samples, keep_float=[names[0]], int16=[names[1]], equalise=False,
        fit_weights=False, bias_correction=False,
    )  # fmt: skip
    kinds = {row.short: row.kind for row in made.report.layers}
    assert (kinds["second"], kinds["third"]) == ("float32", "int16")


def test_weights_and_ends_are_asked_for_by_either_name(file: Path) -> None:
    model = pybuild.load(file)
    short = model.graph.shown(WEIGHTS[1])
    assert len(short) <= LONGEST < len(WEIGHTS[1])
    for name in (short, WEIGHTS[1]):
        library = model.build(params=[name], lazy=[model.graph.shown(GIVEN)])
        assert [s.name for s in library.slots] == [WEIGHTS[1]]
        assert library.plan.lazy == {GIVEN}
    assert library.report.parameters[0].short == short
    with pytest.raises(BuildError) as caught:
        model.build(params=["fourth"])
    text = str(caught.value)
    assert "there is no 'fourth'" in text and short in text and SCOPE not in text


def test_the_debug_executor_knows_layers_by_either_name(file: Path) -> None:
    library = pybuild.load(file).build(name="net", input="keep")
    module = library["debug_create"]("default", pybuild.cpu(0))
    module.set_input(GIVEN, X)
    module.run()
    values = [module.debug_get_output(name) for name in ("second", LAYERS[1])]
    np.testing.assert_array_equal(*(np.asarray(v) for v in values))


def test_a_limit_is_told_with_short_names_and_the_hint_is_near(file: Path) -> None:
    with pytest.raises(LimitError) as caught:
        pybuild.load(file).build(ram_limit=16)
    text = str(caught.value)
    assert SCOPE not in text and "'first' 32" in text
    assert "Hint: " in text[:200]


def test_the_largest_blocks_are_named_and_the_others_counted() -> None:
    blocks = [Block(f"b{i}", 100 - i, 0, 1) for i in range(9)]
    told = largest(blocks, str.upper)
    assert told == (
        "'B0' 100, 'B1' 99, 'B2' 98, 'B3' 97, 'B4' 96, 'B5' 95, 3 smaller 279"
    )
    assert largest(blocks[:7], str).endswith("'b5' 95, 'b6' 94")


def test_what_is_alive_in_many_blocks_is_told_in_one_line() -> None:
    path = model_path("vww_int8.tflite")
    with pytest.raises(LimitError) as caught:
        pybuild.load(path).build(ram_limit=1000)
    text = str(caught.value)
    assert "Hint: " in text[:400] and " smaller " in text and "/" not in text


@pytest.mark.parametrize(
    "name",
    ["kws_int8.tflite", "vww_int8.tflite", "ic_int8.tflite", "ad_int8.tflite",
     "kws_f32.onnx", "ic_qdq.onnx"],
)  # fmt: skip
def test_real_models(name: str) -> None:
    graph = pybuild.load(model_path(name)).lower()
    called = [graph.called(node) for node in graph.nodes]
    assert len(set(called)) == len(called)
    assert max(map(len, called)) <= LONGEST
    if name == "kws_int8.tflite":
        assert called[:3] == ["conv2d", "depthwise_conv2d", "conv2d_1"]


def test_several_nodes_of_one_layer_are_told_apart() -> None:
    root = Path(__file__).resolve().parents[1]
    graph = pybuild.load(root / "examples" / "streams" / "tcn.onnx").lower()
    names = [node.name for node in graph.nodes]
    assert len(set(names)) < len(names)
    assert len({graph.called(node) for node in graph.nodes}) == len(names)


def test_what_belongs_to_a_tensor_is_called_after_it() -> None:
    library = pybuild.load(model_path("kws_int8.tflite")).build()
    graph: Graph = library.plan.graph
    full = graph.nodes[2].output
    assert graph.shown(f"{full} (scratch)") == "conv2d_1 (scratch)"
    assert graph.shown("no such name") == "no such name"


def test_a_word_for_an_operator_means_all_its_layers() -> None:
    """The first of them has that short name, too."""
    model = pybuild.load(model_path("ad_int8.tflite"))
    devices = {0: "generic", 1: "cortex-m4"}
    for word, count in (("dense", 10), ("dense_1", 1)):
        graph = model.build(target=devices, place={word: 1}).plan.graph
        placed = [node.device for node in graph.nodes if node.op == "dense"]
        assert placed.count(1) == count
