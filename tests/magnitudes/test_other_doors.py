"""What is not a number or has no end, through .pt2 and graph JSON: near float64 as in
test_functions.py, on numbers of that grid and all that are not finite, by C and LLVM.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.frontends import graphjson
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.operators.elements import ELEMENTS
from pybuild.frontends.torch.reader.program import Call, Kind, Program, Ref
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from tests.magnitudes.composed_doors import ATEN_ROWS
from tests.magnitudes.doors import ATEN
from tests.magnitudes.functions import FUNCTIONS, Function
from tests.magnitudes.grid import excess, grid
from tests.magnitudes.runs import joined, results
from tests.magnitudes.test_functions import of_map
from tests.toolchains import ROOT, require

ENDLESS = np.float32([np.nan, -np.nan, np.inf, -np.inf, 0, -0.0])
# Q(x) in steps of a half about 3, of int8
STEPS = {np.nan: 3, np.inf: 127, -np.inf: -128, 1e30: 127, -1e30: -128, 1.0: 5}


def numbers() -> Array:
    return np.concatenate([ENDLESS, grid()[::61]])


def ran_by(calls: list[Call], x: Array, kinds: dict[str, str]) -> Graph:
    """A program of x that torch.export would have written, as a graph."""
    names = ("x", *kinds)
    program = Program(
        "net", tuple(calls), ("x",), tuple(kinds), {}, dict.fromkeys(names, x.shape),
        {"x": "float32", **kinds},
    )  # fmt: skip
    message, _ = converted(program)
    return load_onnx("net.pt2", message.SerializeToString(), {})


def call(target: str, output: str, **more: object) -> Call:
    return Call(target, output, more, (output,), f"net: node '{output}'")


def through_json(graph: Graph) -> Graph:
    text, params = graphjson.dump(graph)
    return graphjson.load("model.json", text.encode(), params)


def test_each_function(tmp_path: Path) -> None:
    require("gcc")
    x = numbers()
    calls = [
        call(f"aten.{one.kind}.default", f"y_{name}", self=Ref("x"), **one.attrs)
        for name, one in ATEN.items()
    ]
    graphs = {
        "pt2": ran_by(calls, x, {one.name: "float32" for one in calls}),
        "json": through_json(of_map(DType.FLOAT32, x.size)),
    }
    functions: dict[str, Function] = {
        f"json_{name}": FUNCTIONS[name.removeprefix("layer_")]
        for name in graphs["json"].outputs
    }
    functions |= {f"pt2_y_{name}": one.function for name, one in ATEN.items()}
    made = results("doors", joined(graphs), {"x": x}, tmp_path)
    assert made.keys() == functions.keys()
    wrong = []
    for name, y in made.items():
        with np.errstate(all="ignore"):
            true = functions[name].true(x.astype(np.float64))
        bad, _ = excess(y, true, functions[name].bound)
        wrong += [
            f"{name}({x[i]}) = {y[i]}, not {true[i]}" for i in np.flatnonzero(bad)[:3]
        ]
        assert np.isnan(y[:2]).all(), name
    assert not wrong, "\n".join(wrong)


def quantised(door: str, x: Array) -> Graph:
    """x in steps of a half about 3."""
    if door == "pt2":
        target = "quantized_decomposed.quantize_per_tensor.default"
        more = {"scale": 0.5, "zero_point": 3, "quant_min": -128, "quant_max": 127}
        made = call(target, "y", input=Ref("x"), dtype=Kind("int8"), **more)
        return ran_by([made], x, {"y": "int8"})
    tensors = {"x": Tensor("x", x.shape, DType.FLOAT32)}
    tensors["y"] = Tensor("y", x.shape, DType.INT8, Quant((0.5,), (3,)))
    node = Node("quantize", "q", ("x",), ("y",), {})
    return through_json(Graph("q", "q", (node,), tensors, ("x",), ("y",)))


@pytest.mark.parametrize("door", ["pt2", "json"])
def test_an_integer_of_nan_is_the_zero_point(door: str, tmp_path: Path) -> None:
    """And infinity is the end of the type."""
    require("gcc")
    x = np.float32([*STEPS])
    made = results("steps", quantised(door, x), {"x": x}, tmp_path)
    np.testing.assert_array_equal(made["y"], np.int8([*STEPS.values()]))


def test_a_file_of_torch_export() -> None:
    """A whole network in int8: NaN is 0 there, infinity the greatest number."""
    path = ROOT / "examples" / "pytorch" / "digits_int8.pt2"
    net = pybuild.load(path).build(input="keep").host("llvm")
    (name,) = net.plan.graph.inputs
    x = np.random.default_rng(0).uniform(0, 1, net.plan.graph.tensor(name).shape)
    given = x.astype(np.float32)
    seen = set()
    for bad, number in ((np.nan, 0.0), (np.inf, 1e30), (-np.inf, -1e30)):
        found = []
        for value in (bad, number):
            given.reshape(-1)[::5] = value
            (made,) = net(**{name: given}).values()
            found.append(made.copy())
        np.testing.assert_array_equal(*found)
        assert np.isfinite(found[0]).all()
        seen.add(found[0].tobytes())
    assert len(seen) == 2  # its input begins at 0


# elementwise operators of ATen that are not a function of one float, or only move it;
# log_sigmoid_forward is log_sigmoid with a second output that nothing reads
OTHERS = frozenset((
    "__and__", "__or__", "__xor__", "_to_copy", "add", "addcdiv", "addcmul",
    "alias", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "contiguous", "copy", "detach", "div", "divide", "dropout", "eq",
    "feature_dropout", "floor_divide", "fmod", "ge", "glu", "gt", "hypot", "isinf",
    "isnan", "le", "lerp", "lift_fresh_copy", "log_sigmoid_forward", "log_softmax",
    "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "lt", "masked_fill", "maximum", "minimum", "mul",
    "multiply", "native_dropout", "ne", "prelu", "remainder", "rsub", "softmax",
    "sub", "subtract", "to", "true_divide", "type_as", "where",
))  # fmt: skip


def test_no_operator_is_without_a_row() -> None:
    """A new one gets a line in doors.py or composed_doors.py, or above; `relu_` is relu
    in place."""
    held = {one.kind for one in ATEN.values()}
    held |= {one.kind.partition(".")[0] for one in ATEN_ROWS.values()}
    in_place = {f"{name}_" for name in ELEMENTS}
    assert ELEMENTS.keys() - in_place - held == OTHERS
    assert not held & OTHERS
