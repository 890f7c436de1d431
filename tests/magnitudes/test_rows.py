"""What joins a row, softmax and norms: rows of every magnitude in float32 and float16,
near float64; no number where ONNX Runtime has none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper, shape_inference

from pybuild.dtype import Array
from pybuild.frontends.onnx import load
from tests.frontends.onnx.models import session
from tests.magnitudes.composed import COUNT, ROWS, Row, rows, wrong
from tests.magnitudes.runs import results
from tests.toolchains import require

GIVEN = {"rows": (1, COUNT), "pictures": (1, 1, COUNT), "channels": (COUNT, 1, 1)}


def given(x: Array) -> dict[str, Array]:
    """The inputs of a model: the same rows, as each operator wants them."""
    return {name: x.reshape(-1, *shape) for name, shape in GIVEN.items()}


def _model(x: Array, operators: dict[str, Row]) -> bytes:
    kind, last = helper.np_dtype_to_tensor_dtype(x.dtype), [np.asarray([-1], np.int64)]
    nodes, constants = [], [numpy_helper.from_array(last[0], "last")]
    made, info = [], helper.make_tensor_value_info
    for name, row in operators.items():
        reads = [row.given, *(["last"] if row.axes else [])]
        size = 1 if row.given == "pictures" else COUNT
        for number, value in enumerate(row.more):
            reads.append(f"{name}_{number}")
            array = np.full(size, value, x.dtype)
            constants.append(numpy_helper.from_array(array, reads[-1]))
        nodes.append(helper.make_node(row.kind, reads, [f"y_{name}"], **row.attrs))
        ends = row.true(np.ones((1, COUNT))).shape[-1]
        shape = [ends if n == COUNT else n for n in GIVEN[row.given]]
        made.append(info(f"y_{name}", kind, (len(x), *shape)))
    inputs = [info(name, kind, value.shape) for name, value in given(x).items()]
    graph = helper.make_graph(nodes, "rows", inputs, made, constants)
    imports = [helper.make_opsetid("", 23)]
    whole = helper.make_model(graph, opset_imports=imports, ir_version=11)
    return bytes(shape_inference.infer_shapes(whole).SerializeToString())


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_rows_of_every_magnitude(kind: str, tmp_path: Path) -> None:
    require("gcc")
    x = rows(kind)
    # of float16 ONNX's own definition of it mixes types
    without = () if kind == "float32" else ("MeanVarianceNormalization",)
    chosen = {name: row for name, row in ROWS.items() if name not in without}
    data = _model(x, chosen)
    made = results("rows", load("rows.onnx", data, {}), given(x), tmp_path)
    far = [
        f"{name} {text}"
        for name, row in chosen.items()
        for text in wrong(row, x, made[f"y_{name}"])
    ]
    assert not far, "\n".join(far)


def test_rows_are_no_numbers_where_onnx_runtime_says_so(tmp_path: Path) -> None:
    x = rows("float32")[-6:]
    net = session(_model(x, ROWS))
    theirs = net.run(None, given(x))
    for (name, row), found in zip(ROWS.items(), theirs, strict=True):
        # those of ONNX Runtime may lose NaN, or hand it on to every later channel
        if name in ("LRN", "ReduceMax", "ReduceMin"):
            continue
        with np.errstate(all="ignore"):
            ours = row.true(x.astype(np.float64))
        np.testing.assert_array_equal(
            np.isnan(ours), np.isnan(found.reshape(ours.shape)), name
        )
