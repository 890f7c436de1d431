"""Each operator of ONNX on one float, at every magnitude, in float32 and float16: near
float64, and no number where ONNX Runtime has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import defs, helper, numpy_helper

from pybuild.dtype import Array
from pybuild.frontends.onnx import load
from tests.frontends.onnx.models import session
from tests.magnitudes.doors import CLAMPS, ONNX, Operator
from tests.magnitudes.grid import Bound, excess, grid, halves
from tests.magnitudes.runs import results
from tests.toolchains import require

OPSET = {"Swish": 24}
TYPES = {"float32": "float", "float16": "float16"}
_HALF = Bound(0.1, 1e-7)


def types(one: Operator) -> set[str]:
    """Of its first input."""
    schema = defs.get_schema(one.kind, OPSET.get(one.kind, 22), "")
    kinds = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return set(kinds[schema.inputs[0].type_str])


def written(operators: dict[str, Operator], x: Array) -> bytes:
    """One model of them all: x -> y_NAME."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes, constants = [], []
    for name, one in operators.items():
        reads = ["x"]
        for number, value in enumerate(one.more):
            reads.append(f"c_{name}_{number}")
            array = np.asarray(value, x.dtype)
            if one.kind == "PRelu":
                array = array.reshape(1)
            constants.append(numpy_helper.from_array(array, reads[-1]))
        nodes.append(helper.make_node(one.kind, reads, [f"y_{name}"], **one.attrs))
    graph = helper.make_graph(
        nodes, "magnitudes", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info(f"y_{n}", kind, x.shape) for n in operators],
        constants,
    )  # fmt: skip
    opset = max(OPSET.get(one.kind, 22) for one in operators.values())
    imports = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_each_operator_at_every_magnitude(kind: str, tmp_path: Path) -> None:
    require("gcc")
    x = grid() if kind == "float32" else halves()
    has = {n: one for n, one in ONNX.items() if f"tensor({TYPES[kind]})" in types(one)}
    graph = load("magnitudes.onnx", written(has, x), {})
    made = results("onnx", graph, {"x": x}, tmp_path)
    wrong = []
    for name, one in has.items():
        y = made[f"y_{name}"]
        with np.errstate(all="ignore"):
            true = one.function.true(x.astype(np.float64))
        true = np.where(np.isnan(x) & (name in CLAMPS), y, true)
        bad, _ = excess(y, true, one.function.bound if kind == "float32" else _HALF)
        places = np.flatnonzero(bad)[:3]
        wrong += [f"{name}({x[i]}) = {y[i]}, not {true[i]}" for i in places]
    assert not wrong, "\n".join(wrong)


def test_no_number_is_where_onnx_runtime_has_none() -> None:
    x = np.asarray([np.nan, np.inf, -np.inf, 0.5, -0.5, 2, -2, 0], np.float32)
    told = {n: one for n, one in ONNX.items() if one.kind not in OPSET}
    net = session(written(told, x))
    theirs = dict(zip((o.name for o in net.get_outputs()), net.run(None, {"x": x}),
                      strict=True))  # fmt: skip
    wrong: list[Any] = []
    for name, one in told.items():
        with np.errstate(all="ignore"):
            ours = np.asarray(one.function.true(x.astype(np.float64)))
        if not np.array_equal(np.isnan(ours), np.isnan(theirs[f"y_{name}"])):
            wrong.append((name, ours, theirs[f"y_{name}"]))
    assert not wrong, "\n".join(map(str, wrong))
