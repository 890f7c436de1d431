"""Graph JSON that is wrong: each inconsistency with its node; nothing crashes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.params.blob import write_blob
from tests.near.examples import few

Change = Callable[[dict[str, Any]], object]


def _graph() -> Graph:
    """x -> dense -> h -> clip -> y; quantised."""
    quant = Quant((0.5,), (3,))
    tensors = {
        "x": Tensor("x", (2, 3), DType.INT8, quant),
        "w": Tensor("w", (4, 3), DType.INT8, Quant((0.25,) * 4, (0,), 0)),
        "h": Tensor("h", (2, 4), DType.INT8, quant),
        "y": Tensor("y", (2, 4), DType.INT8, quant),
    }
    nodes = (
        Node("dense", "fc", ("x", "w", ""), ("h",), {"rounding": "double"}),
        Node("clip", "relu", ("h",), ("y",), {"clamp": (0.0, None)}),
    )
    w = np.ones((4, 3), np.int8)
    return Graph("net", "net.py", nodes, tensors, ("x",), ("y",), {"w": w})


TEXT, PARAMS = graphjson.dump(_graph())


def _said(change: Change, params: bytes | None = PARAMS) -> list[str]:
    """What is said about the graph after a change."""
    top = json.loads(TEXT)
    change(top)
    with pytest.raises(BuildError) as caught:
        graphjson.load("net.json", json.dumps(top).encode(), params)
    return [line.removeprefix("net.json: ") for line in str(caught.value).splitlines()]


def _put(*path: Any) -> Change:
    """Sets the place that all but the last name to the last."""

    def change(top: Any) -> None:
        for key in path[:-2]:
            top = top[key]
        top[path[-2]] = path[-1]

    return change


def _drop(*path: Any) -> Change:
    def change(top: Any) -> None:
        for key in path[:-1]:
            top = top[key]
        del top[path[-1]]

    return change


FC, RELU = ("nodes", 2), ("nodes", 3)
LISTS = ("attrs",)

CASES: list[tuple[Change, str]] = [
    (_drop("heads"), "has no 'heads'"),
    (_put("extra", 1), "the key 'extra' is not known. Hint: nodes, arg_nodes, "
     "node_row_ptr, heads, attrs"),
    (_put("nodes", {}), "'nodes' is not a list"),
    (_put("arg_nodes", ["x"]), "'arg_nodes' is not a list of integers"),
    (_put("node_row_ptr", [0.5]), "'node_row_ptr' is not a list of integers"),
    (_put("heads", [[1]]), "'heads' is not a list of [node, output]"),
    (_put("nodes", 2, 7), "node 2: is not an object"),
    (_put(*FC, "op", "relu"), "node 'fc': 'op' is 'relu', not \"null\" or \"tvm_op\""),
    (_put(*FC, "name", 3), "node 2: 'name' is not a text"),
    (_put(*FC, "name", "\ud800"), "node 2: 'name' is not a text"),
    (_put(*FC, "inputs", [[0, 0, 0, 0]]), "node 'fc': 'inputs' is not a list of "
     "[node, output]"),
    (_put(*FC, "attrs", {"op": 1}), "node 'fc': 'attrs' is not an object of texts"),
    (_put(*FC, "attr", {}), "node 'fc': has both 'attr' and 'attrs'"),
    (_put(*FC, "colour", "red"), "node 'fc': the key 'colour' is not known"),
    (_put("attrs", 3), "'attrs' is not an object"),
    (_drop(*LISTS, "shape"), "has no 'attrs.shape'"),
    (_put(*LISTS, "shape", [[1]]), "'attrs.shape' is not a pair of a type and values"),
    (_put(*LISTS, "shape", ["list_int", [1]]), "'attrs.shape' is of type list_int, not "
     "list_shape"),
    (_put(*LISTS, "shape", ["list_shape", [1]]), "'attrs.shape' is not a list_shape"),
    (_put(*LISTS, "other", ["list_str", []]), "'attrs.other' is not known"),
    (_put(*LISTS, "shape", ["list_shape", [[1]]]), "'attrs.shape' has 1 values for 4 "
     "outputs"),
    (_put("nodes", 0, "inputs", [[0, 0]]), "node 'x' (null): is an input, but reads "
     "other nodes"),
    (_drop(*FC, "attrs", "func_name"), "node 'fc' (tvm_op): has no 'attrs.func_name'"),
    (_drop(*FC, "attrs", "flatten_data"), "node 'fc' (dense): has no "
     "'attrs.flatten_data'"),
    (_put(*FC, "attrs", "num_outputs", "-1"), "node 'fc' (dense): 'attrs.num_outputs' "
     "is '-1', no number in range"),
    (_put(*FC, "attrs", "num_outputs", "9999999"), "node 'fc' (dense): "
     "'attrs.num_outputs' is '9999999', no number in range"),
    (_put(*FC, "attrs", "num_inputs", "3"), "node 'fc' (dense): 'attrs.num_inputs' is "
     "3, but it reads 2"),
    (_put(*FC, "attrs", "flatten_data", "2"), "node 'fc' (dense): 'attrs.flatten_data' "
     "is not \"0\" or \"1\""),
    (_put(*FC, "attrs", "flatten_data", "1"), "node 'fc' (dense): needs x[...,K] and "
     "w[O,K], has (6,) and (12,)"),
    (_put(*FC, "inputs", [[0, 0], [9, 0]]), "node 'fc' (dense): reads node 9, which "
     "does not exist"),
    (_put(*FC, "inputs", [[0, 0], [3, 0]]), "node 'fc' (dense): reads node 3 ('relu') "
     "too early"),
    (_put(*FC, "inputs", [[0, 0], [1, 1]]), "node 'fc' (dense): reads output 1 of 'w'"),
    (_put("node_row_ptr", [0, 1, 2, 3]), "'node_row_ptr' has 4 numbers for 4 nodes. "
     "Hint: it must have 5"),
    (_put("node_row_ptr", [0, 1, 2, 4, 4]), "node 'relu' (clip): 'node_row_ptr[3]' is "
     "4, it must be 3"),
    (_put("node_row_ptr", [0, 1, 2, 3, 5]), "'node_row_ptr[4]' is 5, it must be 4"),
    (_put("arg_nodes", [0, 1, 7]), "'arg_nodes' has node 7, which does not exist"),
    (_put("arg_nodes", [0, 1, 3]),
     "node 'relu' (clip): is in 'arg_nodes', but computes"),
    (_put("arg_nodes", [0, 1, 1]), "node 'w' (null): is in 'arg_nodes' twice"),
    (_put("arg_nodes", [1]),
     "node 'x' (null): is an input that 'arg_nodes' leaves out"),
    (_put("nodes", 1, "name", "x"), "node 'x' (null): another input has the same name"),
    (_put("heads", [[4, 0]]), "'heads' has node 4, which does not exist"),
    (_put("heads", [[3, 1]]), "node 'relu' (clip): 'heads' has its output 1"),
    (_put(*LISTS, "dltype", 1, 2, "int4"), "node 'fc' (dense): the type 'int4' is not "
     "supported. Hint: one of bool, int8, uint8, int16, int32, int64, float32"),
    (_put(*LISTS, "shape", 1, 2, [2, -1]), "node 'fc' (dense): has shape [2, -1]"),
    (_put(*LISTS, "storage_id", 1, 2, -2), "node 'fc' (dense): 'attrs.storage_id' is "
     "-2"),
    (_put(*LISTS, "lazy_init_input", ["list_str", ["z"]]), "'attrs.lazy_init_input' has"
     " 'z', which is not an input. Hint: inputs are x, w"),
    (_put(*LISTS, "lazy_init_input", ["list_str", ["w"]]), "node 'w' (null): is bound "
     "late ('lazy_init_input'), but has a parameter"),
    (_put("metadata", {"pybuild": {"version": 2}}), "'metadata.pybuild' is not of "
     "version 1"),
    (_put(*LISTS, "storage_id", 1, [0, 1, 0, 3]), "node 'fc' (dense): writes over 'x' "
     "(storage 0), an input"),
    (_put(*LISTS, "storage_id", 1, [0, 0, 2, 3]), "node 'w' (null): is an input, but "
     "shares storage 0 with 'x'"),
    (_put(*LISTS, "storage_id", 1, [0, 1, 2, 2]), "node 'relu' (clip): writes over 'fc'"
     " (storage 2), which 'relu' reads"),
    (_put(*FC, "attrs", "op", "fly"), "node 'fc' (dense): the operator 'fly' does not "
     "exist. Hint: one of add, arg_reduce, assign, "),
    (_drop(*FC, "attrs", "op"), "1 nodes (fc) have no 'attrs.op' and call functions: "
     "dense. Hint: "),
    (_put(*FC, "attrs", "outputs", '["x"]'), "node 'fc' (dense): its output 'x' has the"
     " name of another tensor"),
    (_put(*FC, "attrs", "outputs", '["a", "b"]'), "node 'fc' (dense): 'attrs.outputs' "
     "is not a list of 1 names"),
    (_put(*FC, "attrs", "absent", "[1]"), "node 'fc' (dense): 'attrs.absent' does not "
     "list places of inputs that may be absent"),
    (_put(*FC, "attrs", "quant", "[]"), "node 'fc' (dense): 'attrs.quant' is not a list"
     " of 1 quantisations"),
    (_put(*FC, "attrs", "quant", '[{"scale": [-1]}]'), "node 'fc' (dense): its "
     "quantisation is wrong: its scale is not a list of positive numbers"),
    (_put(*FC, "attrs", "quant", '[{"scale": [1, 2]}]'), "node 'fc' (dense): its "
     "quantisation is wrong: 2 scales and 1 zero points for shape [2, 4], axis None"),
    (_put(*FC, "attrs", "quant", '[{"scale": [1], "axis": 2}]'), "node 'fc' (dense): "
     "its quantisation is wrong: axis 2 of a tensor of rank 2"),
    (_put(*RELU, "attrs", "clamp", "{}"), "node 'relu' (clip): 'attrs.clamp' is a JSON "
     "object"),
    (_put(*RELU, "attrs", "clamp", "6"), "node 'relu' (clip): 'clamp' is 6, it must be "
     "two numbers or nulls"),
    (_put(*RELU, "attrs", "klamp", "6"), "node 'relu' (clip): has an attribute 'klamp';"
     " known are clamp, rounding"),
    (_put(*RELU, "attrs", "op", "mean"), "node 'relu' (mean): has no attribute 'axes'"),
    (_put(*RELU, "attrs", "op", "add"), "node 'relu' (add): has 1 inputs, not 2"),
    (_put(*RELU, "attrs", "rounding", "up"),
     "node 'relu' (clip): 'rounding' is 'up', it"
     " must be one of double, away, single, even, wide"),
    (_put(*LISTS, "shape", 1, 3, [8]), "node 'relu' (clip): 'y' is int8[8], it must be "
     "int8[2,4]"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "wanted"), CASES, ids=[text for _, text in CASES])
def test_is_said(change: Change, wanted: str) -> None:
    said = _said(change)
    fold = [line.replace(", ", ",") for line in said]
    assert any(line.startswith(wanted.replace(", ", ",")) for line in fold), said


def test_all_at_once() -> None:
    def change(top: dict[str, Any]) -> None:
        top["nodes"][2]["inputs"] = [[0, 0], [1, 1]]
        top["nodes"][3]["attrs"]["num_inputs"] = "x"
        top["arg_nodes"] = [0]
        top["heads"] = [[9, 0]]

    assert _said(change) == [
        "node 'fc' (dense): reads output 1 of 'w'",
        "node 'relu' (clip): 'attrs.num_inputs' is 'x', no number in range",
        "node 'w' (null): is an input that 'arg_nodes' leaves out",
        "'heads' has node 9, which does not exist",
    ]


def test_parameters_that_do_not_fit() -> None:
    blob = write_blob({"w": np.ones((3, 4), np.int8)})
    assert _said(lambda top: None, blob) == [
        "node 'w' (null): its parameter is int8[3, 4], not int8[4, 3]"
    ]
    with pytest.raises(BuildError, match=r"^net.params: holds no parameters"):
        graphjson.load("net.json", TEXT.encode(), b"what is this")


@pytest.mark.parametrize(
    ("storages", "devices", "said"),
    [
        ([0, 1, 2, 3], [0, 0, 0, 0], None),
        ([0, 1, 2, 3], [0, 0, 0, 1],
         "node 'relu' (clip): is on device 1, but reads 'h', which is on device 0. "
         "Hint: put a node with func_name \"__copy\" between them"),
        ([0, 1, 2, 0], [0, 0, 0, 1],
         "node 'relu' (clip): shares storage 0 with 'x', on device 1 and 0"),
    ],
)  # fmt: skip
def test_devices(storages: list[int], devices: list[int], said: str | None) -> None:
    top = json.loads(TEXT)
    top["attrs"]["storage_id"][1] = storages
    top["attrs"]["device_index"] = ["list_int", devices]
    data = json.dumps(top).encode()
    if said is None:
        assert [n.device for n in graphjson.load("n", data, PARAMS).nodes] == [0, 0]
        return
    with pytest.raises(BuildError) as caught:
        graphjson.load("n", data, PARAMS)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is not valid JSON"),
        (b"[]", "is not a graph: its JSON is not an object"),
        (b"\xff", "is not UTF-8"),
        (b'{"nodes": [], "nodes": []}', "the key 'nodes' is given twice"),
        (b'{"heads": NaN}', "NaN is not a number"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"{}", "has no 'nodes'"),
    ],
)
def test_is_not_json(data: bytes, what: str) -> None:
    with pytest.raises(BuildError) as caught:
        graphjson.load("n.json", data, None)
    assert what in str(caught.value)


# ---- hostile files ------------------------------------------------------------


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            found += _places(value[key], (*path, key))
    return found


TOP = json.loads(TEXT)
OPS = ["conv2d", "depthwise_conv2d", "avg_pool2d", "mean", "softmax", "pad", "concat"]
OPS += ["reshape", "transpose", "slice", "quantize", "dequantize", "copy", "add"]
ATTRS = {
    "strides": "[1, 1]", "pads": "[0, 0, 0, 0]", "kernel": "[9, 9]", "axes": "[1, 1]",
    "keepdims": "true", "axis": "7", "beta": "Infinity", "perm": "[0, 0]",
    "begin": "[0]", "end": "[-1]", "groups": "3", "value": "1e99", "alpha": "1e999",
}  # fmt: skip
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from([2**31, -1, 10**30]),
    st.floats(allow_nan=False), st.sampled_from([*OPS, "0", "9", "[]", "[0]", "", "w"]),
    st.text(max_size=3), st.sampled_from([[], [0], [[0, 0]], [[2, 0]], {}, [[[]]]]),
)  # fmt: skip


def test_what_is_wrong_with_one_node_does_not_hide_another() -> None:
    def change(top: dict[str, Any]) -> None:
        _drop(*FC, "attrs", "op")(top)
        _put(*LISTS, "shape", 1, 3, [8])(top)

    assert [line[:20] for line in _said(change)] == [
        "1 nodes (fc) have no",
        "node 'relu' (clip): ",
    ]


@settings(max_examples=few(400, 2500))
@given(
    st.lists(st.tuples(st.sampled_from(_places(TOP)), JUNK), max_size=3),
    st.one_of(st.none(), st.sampled_from(OPS)),
    st.lists(st.sampled_from(sorted(ATTRS)), max_size=5),
)
def test_no_graph_crashes_the_reader(
    changes: list[tuple[tuple[Any, ...], Any]], op: str | None, attrs: list[str]
) -> None:
    top = copy.deepcopy(TOP)
    if op:
        top["nodes"][3]["attrs"]["op"] = op
        del top["nodes"][3]["attrs"]["clamp"]
    for key in attrs:
        top["nodes"][3]["attrs"][key] = ATTRS[key]
    for path, value in changes:
        place = top
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = copy.deepcopy(value)
        except (LookupError, TypeError):
            continue  # an earlier change took the place away
    try:
        graph = graphjson.load("n.json", json.dumps(top).encode(), PARAMS)
    except BuildError:
        return
    text, params = graphjson.dump(graph)
    assert graphjson.load("n.json", text.encode(), params) is not None


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with pytest.raises(BuildError):
        graphjson.load("n.json", data, None)
