"""What joins a row, softmax and norms: rows of every magnitude in float32 and float16,
near float64; no number where ONNX Runtime has none.

    GlobalAveragePool of float16 values of 300: their sum is no float16, their mean is
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper, shape_inference

from pybuild.dtype import Array
from pybuild.frontends.onnx import load
from tests.frontends.onnx.models import session
from tests.magnitudes.runs import results
from tests.toolchains import require

_COUNT = 32


@dataclass(frozen=True)
class Row:
    """An operator of x[rows, 1, 32], or in the shape of a picture.

    true   of float64[rows, 32]
    close  relative to the greatest of a row's results, in float32
    lost   what may be lost of the greatest input, over `over` of the row
    reach  rows whose greatest input is between: of squares in float32
    """

    kind: str
    true: Callable[[Any], Any]
    close: float = 2e-6
    lost: float = 0.0
    attrs: dict[str, Any] = field(default_factory=dict)
    axes: bool = False
    picture: bool = False
    reach: tuple[float, float] = (0.0, 4e38)
    over: Callable[[Any], Any] = lambda x: 1.0
    more: tuple[float, ...] = ()


def rows(kind: str) -> Array:
    """Of each magnitude two rows; some with what is no usual number."""
    rng = np.random.default_rng(5)
    few = (0.0, 1e-30, 1e-6, 0.01, 1.0, 12.0, 88.0, 300.0, 2e3, 6e4, 1e9, 3e18, 1e30,
           1e37)  # fmt: skip
    made = []
    for size in few if kind == "float32" else (*few[:1], *few[2:10]):
        made += [size * rng.uniform(-1, 1, _COUNT), np.full(_COUNT, size)]
        made.append(size * rng.uniform(0.9, 1, _COUNT))
    special = np.tile(rng.uniform(-3, 3, _COUNT), (6, 1))
    for row, values in enumerate(
        ([np.nan], [np.inf], [-np.inf], [np.inf, -np.inf], [np.nan, np.inf])
    ):
        special[row, 3 : 3 + len(values)] = values
    special[5] = -np.inf
    with np.errstate(over="ignore"):
        return np.concatenate([made, special]).astype(kind)


def _softmax(x: Any) -> Any:
    power = np.exp(x - x.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


def _log_sum(x: Any) -> Any:
    most = x.max(-1, keepdims=True)
    most = np.where(np.isinf(most), 0, most)
    return np.log(np.exp(x - most).sum(-1, keepdims=True)) + most


def _log_softmax(x: Any) -> Any:
    left = x - x.max(-1, keepdims=True)
    return left - np.log(np.exp(left).sum(-1, keepdims=True))


def _normal(x: Any, epsilon: float = 1e-5) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)


def _shared(x: Any, size: Any) -> Any:
    return np.where(size == 0, 0.0, x / np.where(size == 0, 1.0, size))


def _sum(x: Any) -> Any:
    return x.sum(-1, keepdims=True)


_ROOT = (1e-15, 1.8e18)  # whose 32 squares are a float32
_ANY = (0.0, 1.8e18)


def _deviation(x: Any) -> Any:
    return np.sqrt(x.var(-1, keepdims=True) + 1e-5)


ROWS: dict[str, Row] = {
    "GlobalAveragePool": Row(
        "GlobalAveragePool",
        lambda x: x.mean(-1, keepdims=True),
        lost=1e-6,
        picture=True,
        reach=(0.0, 1e37),
    ),
    "AveragePool": Row(
        "AveragePool",
        lambda x: x.reshape(-1, 16, 2).mean(-1),
        lost=1e-6,
        attrs={"kernel_shape": [1, 2], "strides": [1, 2]},
        picture=True,
    ),
    "InstanceNormalization": Row(
        "InstanceNormalization",
        _normal,
        1e-5,
        1e-6,
        over=_deviation,
        picture=True,
        reach=_ANY,
        more=(1.0, 0.0),
    ),
    "LayerNormalization": Row(
        "LayerNormalization",
        _normal,
        1e-5,
        1e-6,
        over=_deviation,
        reach=_ANY,
        more=(1.0, 0.0),
    ),
    "LogSoftmax": Row("LogSoftmax", _log_softmax, lost=1e-6),
    "LpNormalization": Row(
        "LpNormalization", lambda x: _shared(x, np.sqrt(_sum(x * x))), reach=_ROOT
    ),
    "LpNormalization1": Row(
        "LpNormalization",
        lambda x: _shared(x, _sum(abs(x))),
        attrs={"p": 1},
        reach=(0.0, 1e37),
    ),
    "MeanVarianceNormalization": Row(
        "MeanVarianceNormalization",
        lambda x: (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-9),
        1e-5,
        1e-6,
        {"axes": [3]},
        picture=True,
        reach=_ANY,
        over=lambda x: x.std(-1, keepdims=True) + 1e-9,
    ),
    "ReduceL1": Row("ReduceL1", lambda x: _sum(abs(x)), axes=True),
    "ReduceL2": Row("ReduceL2", lambda x: np.sqrt(_sum(x * x)), axes=True, reach=_ROOT),
    "ReduceLogSum": Row(
        "ReduceLogSum", lambda x: np.log(_sum(x)), lost=1e-6, axes=True
    ),
    "ReduceLogSumExp": Row("ReduceLogSumExp", _log_sum, lost=1e-6, axes=True),
    "ReduceMax": Row("ReduceMax", lambda x: x.max(-1, keepdims=True), 0.0, axes=True),
    "ReduceMean": Row(
        "ReduceMean",
        lambda x: x.mean(-1, keepdims=True),
        lost=1e-6,
        axes=True,
        reach=(0.0, 1e37),
    ),
    "ReduceMin": Row("ReduceMin", lambda x: x.min(-1, keepdims=True), 0.0, axes=True),
    "ReduceProd": Row(
        "ReduceProd", lambda x: x.prod(-1, keepdims=True), 4e-6, axes=True
    ),
    "ReduceSum": Row("ReduceSum", _sum, lost=4e-6, axes=True),
    "ReduceSumSquare": Row("ReduceSumSquare", lambda x: _sum(x * x), 4e-6, axes=True),
    "Softmax": Row("Softmax", _softmax, 4e-6),
}


def _model(x: Array, operators: dict[str, Row]) -> bytes:
    kind, last = helper.np_dtype_to_tensor_dtype(x.dtype), [np.asarray([-1], np.int64)]
    nodes, constants = [], [numpy_helper.from_array(last[0], "last")]
    count = len(x)
    shapes = {"x": (count, 1, _COUNT), "p": (count, 1, 1, _COUNT)}
    made = []
    for name, row in operators.items():
        reads = ["p" if row.picture else "x"]
        reads += ["last"] if row.axes else []
        size = 1 if row.picture else _COUNT
        for number, value in enumerate(row.more):
            reads.append(f"{name}_{number}")
            array = np.full(size, value, x.dtype)
            constants.append(numpy_helper.from_array(array, reads[-1]))
        nodes.append(helper.make_node(row.kind, reads, [f"y_{name}"], **row.attrs))
        made.append(helper.make_tensor_value_info(f"y_{name}", kind, None))
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    graph = helper.make_graph(nodes, "rows", inputs, made, constants)
    imports = [helper.make_opsetid("", 20)]
    whole = helper.make_model(graph, opset_imports=imports, ir_version=9)
    return bytes(shape_inference.infer_shapes(whole).SerializeToString())


def _wrong(row: Row, x: Array, y: Array) -> list[str]:
    """Rows that are too far from float64."""
    with np.errstate(all="ignore"):
        true = row.true(x.astype(np.float64))
        near = true.astype(y.dtype).astype(np.float64)
        found = y.reshape(true.shape).astype(np.float64)
        step = np.abs(np.spacing(np.where(np.isfinite(near), near, 0).astype(y.dtype)))
        usual = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0)
        lost = row.lost * usual.max(-1, keepdims=True) / row.over(x.astype(np.float64))
        most = np.abs(true).max(-1, keepdims=True)
        room = row.close * most + lost + (0.51 * step if y.dtype == np.float16 else 0)
        alike = (np.isnan(found) & np.isnan(near)) | (found == near)
        bad = ~(alike | (np.abs(found - true) <= np.where(np.isnan(room), 0, room)))
        size = np.abs(x.astype(np.float64)).max(-1)
        low, high = row.reach
        inside = (size == 0) | ((low <= size) & (size < high))
        bad &= (~np.isfinite(size) | inside)[:, None]
    return [f"{x[i][:3]}: {found[i][:3]}, not {true[i][:3]}"
            for i in np.flatnonzero(bad.any(-1))[:3]]  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_rows_of_every_magnitude(kind: str, tmp_path: Path) -> None:
    require("gcc")
    x = rows(kind)
    # of float16 ONNX's own definition of it mixes types
    without = () if kind == "float32" else ("MeanVarianceNormalization",)
    chosen = {name: row for name, row in ROWS.items() if name not in without}
    data = _model(x, chosen)
    inputs = {"x": x[:, None], "p": x[:, None, None]}
    made = results("rows", load("rows.onnx", data, {}), inputs, tmp_path)
    wrong = [
        f"{name} {text}"
        for name, row in chosen.items()
        for text in _wrong(row, x, made[f"y_{name}"])
    ]
    assert not wrong, "\n".join(wrong)


def test_rows_are_no_numbers_where_onnx_runtime_says_so(tmp_path: Path) -> None:
    x = rows("float32")[-6:]
    net = session(_model(x, ROWS))
    theirs = net.run(None, {"x": x[:, None], "p": x[:, None, None]})
    for (name, row), found in zip(ROWS.items(), theirs, strict=True):
        if name in ("ReduceMax", "ReduceMin"):
            continue  # those of ONNX Runtime may lose NaN; ours do not
        with np.errstate(all="ignore"):
            ours = row.true(x.astype(np.float64))
        np.testing.assert_array_equal(
            np.isnan(ours), np.isnan(found.reshape(ours.shape)), name
        )
