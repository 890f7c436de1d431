"""Each operator of .tflite on one float, at every magnitude, and no number where LiteRT
has none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from tests.magnitudes.doors import CLAMPS, TFLITE, Operator
from tests.magnitudes.grid import excess, grid
from tests.magnitudes.runs import results
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require

# those whose inf - inf or 0 * inf LiteRT has otherwise
OTHERWISE = ("GELU", "GELU_TANH")


def written(operators: dict[str, Operator], size: int) -> bytes:
    """One model of them all: x -> y_NAME."""
    tensors = [FileTensor(n, (size,)) for n in ("x", *(f"y_{n}" for n in operators))]
    nodes = []
    for number, one in enumerate(operators.values(), 1):
        ((table, options),) = one.attrs.items() if one.attrs else (("", {}),)
        nodes.append(FileOperator(one.kind, (0,), (number,), table, options))
    return write(tensors, nodes, [0], list(range(1, len(tensors))))


def test_each_operator_at_every_magnitude(tmp_path: Path) -> None:
    require("gcc")
    x = grid()
    graph = load("magnitudes.tflite", written(TFLITE, x.size), {})
    made = results("tflite", graph, {"x": x}, tmp_path)
    wrong = []
    for name, one in TFLITE.items():
        y = made[f"y_{name}"]
        with np.errstate(all="ignore"):
            true = one.function.true(x.astype(np.float64))
        true = np.where(np.isnan(x) & (name in CLAMPS), y, true)
        bad, _ = excess(y, true, one.function.bound)
        places = np.flatnonzero(bad)[:3]
        wrong += [f"{name}({x[i]}) = {y[i]}, not {true[i]}" for i in places]
    assert not wrong, "\n".join(wrong)


def _litert(data: bytes, x: Array) -> dict[str, Array]:
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType
    net = interpreter.Interpreter(
        model_content=data,
        experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    net.allocate_tensors()
    net.set_tensor(net.get_input_details()[0]["index"], x)
    net.invoke()
    return {o["name"]: net.get_tensor(o["index"]) for o in net.get_output_details()}


def test_no_number_is_where_litert_has_none() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    x = np.asarray([np.nan, np.inf, -np.inf, 0.5, -0.5, 2, -2, 0], np.float32)
    theirs = _litert(written(TFLITE, x.size), x)
    wrong = []
    for name, one in TFLITE.items():
        with np.errstate(all="ignore"):
            ours = np.asarray(one.function.true(x.astype(np.float64)))
        if not np.array_equal(np.isnan(ours), np.isnan(theirs[f"y_{name}"])):
            wrong.append((name, ours, theirs[f"y_{name}"]))
    assert not wrong, "\n".join(map(str, wrong))
