"""Pools, norms, reductions and softmax as functions of float64, rows of every
magnitude, and how near a result must be.

    GlobalAveragePool of float16 values of 300: their sum overflows, their mean not
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pybuild.dtype import Array

COUNT = 32


@dataclass(frozen=True)
class Row:
    """An operator of 32 numbers a row; `given` says what they are: the last axis, the
    width of a picture of one channel ("pictures"), or its channels ("channels").

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
    given: str = "rows"
    reach: tuple[float, float] = (0.0, 4e38)
    over: Callable[[Any], Any] = lambda x: 1.0
    more: tuple[float, ...] = ()


def rows(kind: str) -> Array:
    """Of each magnitude two rows; some with what is not a usual number."""
    rng = np.random.default_rng(5)
    few = (0.0, 1e-30, 1e-6, 0.01, 1.0, 12.0, 88.0, 300.0, 2e3, 6e4, 1e9, 3e18, 1e30,
           1e37)  # fmt: skip
    made = []
    for size in few if kind == "float32" else (*few[:1], *few[2:10]):
        made += [size * rng.uniform(-1, 1, COUNT), np.full(COUNT, size)]
        made.append(size * rng.uniform(0.9, 1, COUNT))
    special = np.tile(rng.uniform(-3, 3, COUNT), (6, 1))
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


def _response(x: Any) -> Any:
    """Over three channels, outside of which are zeros."""
    wide = np.pad(x * x, ((0, 0), (1, 1)))
    square = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    return x / (2 + 0.5 / 3 * square) ** 0.75


def _mean_root(x: Any) -> Any:
    return np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _pairs(x: Any) -> Any:
    return x.reshape(-1, 16, 2)


ROWS: dict[str, Row] = {
    "BatchNormalization": Row(
        "BatchNormalization",
        lambda x: (x - 0.5) / np.sqrt(2 + 1e-5) * 3 + 1,
        lost=1e-6,
        given="channels",
        reach=(0.0, 1e37),
        more=(3.0, 1.0, 0.5, 2.0),
    ),
    "GroupNormalization": Row(
        "GroupNormalization",
        lambda x: _normal(x.reshape(-1, 4, 8)).reshape(x.shape),
        1e-5,
        1e-6,
        {"num_groups": 4},
        given="channels",
        reach=_ANY,
        over=lambda x: _deviation(x.reshape(-1, 4, 8)).repeat(8, -1).reshape(x.shape),
        more=(1.0, 0.0),
    ),
    "LRN": Row(
        "LRN",
        _response,
        4e-6,
        attrs={"size": 3, "alpha": 0.5, "beta": 0.75, "bias": 2.0},
        given="channels",
        reach=_ANY,
    ),
    "LpPool": Row(
        "LpPool",
        lambda x: np.sqrt((_pairs(x) ** 2).sum(-1)),
        attrs={"kernel_shape": [1, 2], "strides": [1, 2], "p": 2},
        given="pictures",
        reach=_ROOT,
    ),
    "RMSNormalization": Row(
        "RMSNormalization",
        lambda x: x / _mean_root(x),
        4e-6,
        attrs={"axis": -1, "epsilon": 1e-5},
        reach=_ANY,
        more=(1.0,),
    ),
    "GlobalAveragePool": Row(
        "GlobalAveragePool",
        lambda x: x.mean(-1, keepdims=True),
        lost=1e-6,
        given="pictures",
        reach=(0.0, 1e37),
    ),
    "AveragePool": Row(
        "AveragePool",
        lambda x: _pairs(x).mean(-1),
        lost=1e-6,
        attrs={"kernel_shape": [1, 2], "strides": [1, 2]},
        given="pictures",
    ),
    "InstanceNormalization": Row(
        "InstanceNormalization",
        _normal,
        1e-5,
        1e-6,
        over=_deviation,
        given="pictures",
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
        given="pictures",
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


def wrong(row: Row, x: Array, y: Array) -> list[str]:
    """Rows that are too far from float64."""
    with np.errstate(all="ignore"):
        true = row.true(x.astype(np.float64))
        near = true.astype(y.dtype).astype(np.float64)
        found = y.reshape(true.shape).astype(np.float64)
        step = np.abs(np.spacing(np.where(np.isfinite(near), near, 0).astype(y.dtype)))
        usual = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0)
        lost = row.lost * usual.max(-1, keepdims=True) / row.over(x.astype(np.float64))
        finite = np.where(np.isfinite(true), np.abs(true), 0)
        most = finite.max(-1, keepdims=True)
        room = row.close * most + lost + (0.51 * step if y.dtype == np.float16 else 0)
        alike = (np.isnan(found) & np.isnan(near)) | (found == near)
        bad = ~(alike | (np.abs(found - true) <= np.where(np.isnan(room), 0, room)))
        size = np.abs(x.astype(np.float64)).max(-1)
        low, high = row.reach
        inside = (size == 0) | ((low <= size) & (size < high))
        bad &= (~np.isfinite(size) | inside)[:, None]
    return [f"{x[i][:3]}: {found[i][:3]}, not {true[i][:3]}"
            for i in np.flatnonzero(bad.any(-1))[:3]]  # fmt: skip
