"""Graph JSON: every graph comes back as it was; TVM's own graphs are read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.frontends.graphjson.values import decode, encode
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops import OPERATORS
from pybuild.ops.base.signatures import SIGNATURES
from pybuild.params.codecs import CODECS, LZ4
from pybuild.params.image_write import plain, write_image
from tests.conftest import model_path
from tests.frontends.graphjson.tvm_graphs import call, duplex, null
from tests.ops.cases import Case, cases

MODELS = ("ad_int8.tflite", "ic_f32.tflite", "kws_int8.tflite", "vww_int8.tflite")
MODELS += ("ad_f32.onnx", "kws_qdq.onnx", "vww_qdq.onnx")


def assert_same(a: Graph, b: Graph) -> None:
    empty: dict[str, Array] = {}
    assert replace(a, constants=empty, source="") == replace(
        b, constants=empty, source=""
    )
    for x, y in zip(a.nodes, b.nodes, strict=True):  # 1, 1.0 and True are equal
        assert {k: repr(v) for k, v in x.attrs.items()} == {
            k: repr(v) for k, v in y.attrs.items()
        }
    assert a.constants.keys() == b.constants.keys()
    for name, value in a.constants.items():
        assert value.dtype == b.constants[name].dtype
        assert np.array_equal(value, b.constants[name])


def assert_comes_back(graph: Graph) -> None:
    text, params = graphjson.dump(graph)
    back = graphjson.load("model.json", text.encode(), params)
    assert_same(graph, back)
    assert graphjson.dump(back) == (text, params)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_operator_comes_back(case: Case) -> None:
    for rounding in ("litert", "onnx"):
        assert_comes_back(case.graph(rounding))


@pytest.mark.parametrize("name", MODELS)
def test_real_models_come_back(name: str) -> None:
    model = pybuild.load(model_path(name))
    assert_comes_back(model.graph)
    assert_comes_back(model.lower())


def test_every_operator_has_a_signature() -> None:
    assert SIGNATURES.keys() == OPERATORS.keys()


def _split() -> Graph:
    """Two outputs, an input that is also an output, a constant used twice, devices."""
    quant = Quant((0.5, 0.25), (3, -4), 1)
    tensors = {
        name: Tensor(name, (2, 2), DType.FLOAT32) for name in ("x", "w", "s", "t", "y")
    }
    tensors["q"] = Tensor("q", (2, 2), DType.INT8, quant)
    nodes = (
        Node("add", "same", ("x", "w"), ("s",), {"clamp": (0.0, None)}),
        Node("copy", "same", ("s",), ("t",), {}, device=2),
        Node("mul", "", ("t", "w"), ("y",), {}, device=2),
    )
    value = np.array([[1, np.nan], [-0.0, np.inf]], np.float32)
    return Graph(
        "net", "net.py", nodes, tensors, ("x", "q"), ("y", "x", "q", "s"), {"w": value},
        homes={"y": 2},
    )  # fmt: skip


def test_names_devices_and_bits_come_back() -> None:
    graph = _split()
    text, params = graphjson.dump(graph)
    back = graphjson.load("other.json", text.encode(), params)
    empty: dict[str, Array] = {}
    assert replace(back, constants=empty) == replace(
        graph, constants=empty, source="other.json"
    )
    assert back.constants["w"].tobytes() == graph.constants["w"].tobytes()
    top = json.loads(text)
    assert top["attrs"]["device_index"] == ["list_int", [0, 0, 0, 0, 2, 2]]


def test_what_is_written() -> None:
    text, _ = graphjson.dump(_split())
    top = json.loads(text)
    keys = ["nodes", "arg_nodes", "heads", "attrs", "node_row_ptr", "metadata"]
    assert list(top) == keys
    assert top["nodes"][0] == {"op": "null", "name": "x", "inputs": []}
    assert top["nodes"][3] == {
        "op": "tvm_op",
        "name": "same",
        "inputs": [[0, 0, 0], [2, 0, 0]],
        "attrs": {
            "func_name": "add",
            "num_inputs": "2",
            "num_outputs": "1",
            "flatten_data": "0",
            "op": "add",
            "outputs": '["s"]',
            "clamp": "[0.0, null]",
        },
    }
    assert top["arg_nodes"] == [0, 1, 2]
    assert top["node_row_ptr"] == [0, 1, 2, 3, 4, 5, 6]
    assert top["heads"] == [[5, 0, 0], [0, 0, 0], [1, 0, 0], [3, 0, 0]]
    assert top["attrs"]["shape"] == ["list_shape", [[2, 2]] * 6]
    assert top["attrs"]["storage_id"] == ["list_int", [0, 1, 2, 3, 4, 5]]
    quant = {"scale": [0.5, 0.25], "zero_point": [3, -4], "axis": 1}
    assert top["metadata"]["pybuild"]["quant"] == {"q": quant}


def test_parameters_of_any_file_and_more_than_needed() -> None:
    graph = _split()
    text, _ = graphjson.dump(graph)
    given = {"w": graph.constants["w"], "of another graph": np.zeros(3, np.float32)}
    for params in (
        write_image(plain(given)),
        write_image(plain(given), CODECS[LZ4]),
    ):
        back = graphjson.load("net.json", text.encode(), params)
        assert list(back.constants) == ["w"]
    assert graphjson.load("net.json", text.encode(), None).inputs == ("x", "q", "w")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"), (1.0, "1.0"), (True, "true"), (None, "null"), ("even", "even"),
        ("12", '"12"'), ("true", '"true"'), ("", ""), ('"', '"'), ("NaN", '"NaN"'),
        ((), "[]"), (((0, 1), (2, 3)), "[[0, 1], [2, 3]]"),
        ((0.1, None), "[0.1, null]"),
        (float("inf"), "Infinity"), ("{}", '"{}"'), ("é", "é"), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_attributes_are_exact(value: object, text: str | None) -> None:
    assert text in (None, encode(value))
    back = decode(encode(value))
    assert back == value and type(back) is type(value)


def test_attributes_without_a_text_are_named() -> None:
    node = Node("clip", "c", ("x",), ("y",), {"clamp": np.float32(1), "op": 2})
    tensors = {n: Tensor(n, (1,), DType.FLOAT32) for n in ("x", "y")}
    with pytest.raises(BuildError) as caught:
        graphjson.dump(Graph("n", "n.py", (node,), tensors, ("x",), ("y",)))
    assert str(caught.value).splitlines() == [
        "n.py: node 'c' (clip): the attribute 'clamp' is a float32 np.float32(1.0),"
        " which has no text",
        "n.py: node 'c' (clip): the attribute 'op' has a name that the format uses",
    ]


# ---- graphs as TVM's own tests make them --------------------------------------


def text_of(top: dict[str, Any]) -> bytes:
    return json.dumps(top).encode()


def test_reads_a_graph_of_functions() -> None:
    document = graphjson.read("duplex.json", text_of(duplex()))
    assert [item.name for item in document.items if item.is_input] == list("ABCD")
    assert document.heads == ((8, 0),)
    entry = document.entries[6]
    assert (entry.storage, entry.device, entry.shape) == (0, 2, (4,))


def test_functions_are_listed() -> None:
    with pytest.raises(BuildError) as caught:
        graphjson.load("duplex.json", text_of(duplex()), None)
    assert str(caught.value) == (
        "duplex.json: 3 nodes (add1, sub, add2) have no 'attrs.op' and call functions:"
        " elemwise_add, elemwise_sub. Hint: give functions= with a pybuild.function"
        " for each, or add 'op' and its attributes to the nodes"
    )


def test_operators_added_by_hand() -> None:
    """Only `op`: names of tensors are those of the nodes, __copy is known."""
    top = duplex()
    for node in top["nodes"]:
        if node.get("attrs", {}).get("func_name", "__").startswith("elemwise_"):
            node["attrs"]["op"] = node["attrs"]["func_name"].removeprefix("elemwise_")
    graph = graphjson.load("duplex.json", text_of(top), None)
    assert [(n.op, n.output, n.device) for n in graph.nodes] == [
        ("add", "add1", 2), ("copy", "copy1", 1), ("sub", "sub", 1),
        ("copy", "copy2", 2), ("add", "add2", 2),
    ]  # fmt: skip
    assert graph.inputs == ("A", "B", "C", "D") and graph.outputs == ("add2",)
    assert graph.name == "duplex"


def test_reshapes_share_a_name_and_a_storage() -> None:
    """As TVM writes them: `reshape_nop` twice, in the memory of the input."""
    nop = [
        call("reshape_nop", "__nop", [[0, 0]]),
        call("reshape_nop", "__nop", [[1, 0]]),
    ]
    top = {
        "nodes": [null("x"), *nop],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 2, 3],
        "heads": [[2, 0], [1, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32", "float", "float32"]],
            "storage_id": ["list_int", [0, 0, 0]],
            "shape": ["list_shape", [[4], [2, 2], [1, 4]]],
        },
    }
    graph = graphjson.load("views.json", text_of(top), None)
    assert [n.op for n in graph.nodes] == ["reshape", "reshape"]
    assert graph.outputs == ("reshape_nop:0.1", "reshape_nop")


def test_lazy_inputs_and_scopes_are_read() -> None:
    top = duplex()
    top["attrs"]["lazy_init_input"] = ["list_str", ["B", "D"]]
    top["attrs"]["storage_scope"] = ["list_str", ["global"] * 9]
    document = graphjson.read("d.json", text_of(top))
    assert document.lazy == ("B", "D") and document.entries[0].scope == "global"
