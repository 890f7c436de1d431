"""Operators of .tflite and ATen that join a row, each by its row of composed.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.magnitudes.composed import COUNT, ROWS, Row


def _of(name: str, kind: str, **attrs: Any) -> Row:
    return replace(ROWS[name], kind=kind, attrs=attrs)


def _unit(x: Any) -> Any:
    return x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-6)


def _root_of_mean(x: Any) -> Any:
    return np.sqrt((x.reshape(-1, COUNT // 2, 2) ** 2).mean(-1))


_WINDOW = {"StrideW": 2, "StrideH": 1, "FilterWidth": 2, "FilterHeight": 1}
_KEEP = {"ReducerOptions": {"KeepDims": True}}
TFLITE_ROWS = {
    row.kind: row
    for row in (
        _of("AveragePool", "AVERAGE_POOL_2D", Pool2DOptions=_WINDOW),
        replace(
            _of("LpNormalization", "L2_NORMALIZATION", L2NormOptions={}), true=_unit
        ),
        replace(_of("LpPool", "L2_POOL_2D", Pool2DOptions=_WINDOW), true=_root_of_mean),
        _of("LogSoftmax", "LOG_SOFTMAX", LogSoftmaxOptions={}),
        _of("ReduceMean", "MEAN", **_KEEP),
        _of("ReduceMax", "REDUCE_MAX", **_KEEP),
        _of("ReduceMin", "REDUCE_MIN", **_KEEP),
        _of("ReduceProd", "REDUCE_PROD", **_KEEP),
        _of("ReduceSum", "SUM", **_KEEP),
        _of("Softmax", "SOFTMAX", SoftmaxOptions={"Beta": 1.0}),
    )
}
_LAST = {"dim": [-1], "keepdim": True}
_ROW = {"normalized_shape": [COUNT], "eps": 1e-5}
ATEN_ROWS = {
    name: _of(row, target, **attrs)
    for name, row, target, attrs in (
        ("amax", "ReduceMax", "amax.default", _LAST),
        ("amin", "ReduceMin", "amin.default", _LAST),
        ("avg_pool1d", "AveragePool", "avg_pool1d.default", {"kernel_size": [2]}),
        ("group_norm", "GroupNormalization", "group_norm.default",
         {"num_groups": 4, "eps": 1e-5}),
        ("layer_norm", "LayerNormalization", "layer_norm.default", _ROW),
        ("logsumexp", "ReduceLogSumExp", "logsumexp.default", _LAST),
        ("mean", "ReduceMean", "mean.dim", _LAST),
        ("norm", "ReduceL2", "linalg_vector_norm.default", {"ord": 2, **_LAST}),
        ("rms_norm", "RMSNormalization", "rms_norm.default", _ROW),
        ("sum", "ReduceSum", "sum.dim_IntList", _LAST),
        ("prod", "ReduceProd", "prod.dim_int", {**_LAST, "dim": -1}),
        ("_softmax", "Softmax", "_softmax.default",
         {"dim": -1, "half_to_float": False}),
        ("_log_softmax", "LogSoftmax", "_log_softmax.default",
         {"dim": -1, "half_to_float": False}),
    )
}  # fmt: skip
