"""Decisions after a net that runs again and again: scores smoothed over time, the best
above a threshold, held until it falls, and reported once. Exact for integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Types,
    Values,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    value,
)

KINDS = (DType.INT8, DType.INT16, DType.FLOAT32)
MOST_RUNS = 1024  # of which int32 holds the sum
NONE = -1  # no class


def _scores(node: Node, graph: Graph) -> Tensor:
    x = operand(node, graph, 0)
    if x.dtype not in KINDS or not x.size:
        what = f"'{x.name}' is {x.dtype.value}{list(x.shape)}"
        raise invalid(node, graph, what, "scores are int8, int16 or float32")
    return x


def limit(x: Tensor, real: float) -> int | float:
    """The least number of x's type that means at least `real`."""
    if x.dtype is DType.FLOAT32:
        return float(np.float32(real))
    scale, zero = (x.scale, x.zero_point) if x.quant else (1.0, 0)
    with np.errstate(over="ignore"):
        steps = real / scale + zero
    return math.ceil(min(max(steps, -(2.0**20)), 2.0**20))


# ---- moving_average ----------------------------------------------------------------


def infer_moving_average(node: Node, graph: Graph) -> Types:
    """Shapes  x[..], past[W - 1, ..]; y[..], past of the next run"""
    x, past = _scores(node, graph), operand(node, graph, 1)
    must_have_type(node, graph, past, x.dtype)
    runs = past.shape[0] if past.shape else 0
    must_have_shape(node, graph, past, (runs, *x.shape))
    if not 1 <= runs < MOST_RUNS:
        raise invalid(node, graph, f"an average of {runs + 1} runs, not 2 to 1024")
    return ((x.shape, x.dtype), (past.shape, past.dtype))


def moving_average(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = the mean of x and of what it was before; a half is rounded up"""
    x, past = value(values, 0), value(values, 1)
    every = np.concatenate([past, x[None]])
    if x.dtype == np.float32:
        total = every[0]
        for one in every[1:]:
            total = total + one
        made = total / np.float32(len(every))
    else:
        total = every.sum(0, dtype=np.int64)
        made = (2 * total + len(every)) // (2 * len(every))
    return made.astype(x.dtype), every[1:]


# ---- best_above, hysteresis --------------------------------------------------------


def infer_best_above(node: Node, graph: Graph) -> Types:
    """attrs least, ignore. Shapes  x[C] of any rank; y int32[1]: its index, or -1"""
    _scores(node, graph)
    return (((1,), DType.INT32),)


def infer_hysteresis(node: Node, graph: Graph) -> Types:
    """attrs high, low, ignore. Shapes  x[C], held int32[1]; y int32[1]"""
    _scores(node, graph)
    held = operand(node, graph, 1)
    must_have_type(node, graph, held, DType.INT32)
    must_have_shape(node, graph, held, (1,))
    if node.attrs["low"] > node.attrs["high"]:
        raise invalid(node, graph, "low lies above high")
    return (((1,), DType.INT32),)


def _best(x: Array, least: int | float, ignored: tuple[int, ...]) -> int:
    """The first of the greatest; none where a score is NaN: the net has failed."""
    if (x != x).any():
        return NONE
    best, most = 0, x[0]
    for index, score in enumerate(x):
        if score > most:
            best, most = index, score
    return best if most >= least and best not in ignored else NONE


def best_above(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = the class of the greatest score, if that is `least` or more"""
    least = limit(graph.tensor(node.inputs[0]), node.attrs["least"])
    found = _best(value(values, 0).reshape(-1), least, node.attrs["ignore"])
    return (np.array([found], np.int32),)


def hysteresis(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = the best, if that is `high` or more; else what is held, while it is `low`"""
    tensor, x = graph.tensor(node.inputs[0]), value(values, 0).reshape(-1)
    held = int(value(values, 1)[0])
    high, low = (limit(tensor, node.attrs[name]) for name in ("high", "low"))
    found = _best(x, high, node.attrs["ignore"])
    lasts = 0 <= held < len(x) and x[held] >= low and not (x != x).any()
    if found == NONE and lasts:
        found = held
    return (np.array([found], np.int32),)


# ---- refractory --------------------------------------------------------------------


def infer_refractory(node: Node, graph: Graph) -> Types:
    """attrs runs. Shapes  x int32[1]; kept int32[2]: x before, runs to wait; y int32[1]
    and what is kept
    """
    for index, shape in enumerate(((1,), (2,))):
        tensor = operand(node, graph, index)
        must_have_type(node, graph, tensor, DType.INT32)
        must_have_shape(node, graph, tensor, shape)
    return (((1,), DType.INT32), ((2,), DType.INT32))


def refractory(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = x where it begins, but in the `runs` runs after another; else -1"""
    x, (before, wait) = int(value(values, 0)[0]), value(values, 1).tolist()
    wait = max(wait - 1, 0)
    found = NONE
    if x >= 0 and x != before and wait == 0:
        found, wait = x, int(node.attrs["runs"]) + 1
    return np.array([found], np.int32), np.array([x, wait], np.int32)


Meaning = Callable[[Node, Graph, Values], tuple[Array, ...]]
DECIDE: dict[str, tuple[Callable[[Node, Graph], Types], Meaning]] = {
    "best_above": (infer_best_above, best_above),
    "hysteresis": (infer_hysteresis, hysteresis),
    "moving_average": (infer_moving_average, moving_average),
    "refractory": (infer_refractory, refractory),
}
