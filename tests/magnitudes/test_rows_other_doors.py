"""What joins a row, through .tflite, .pt2 and graph JSON: near float64 at every
magnitude, by C and LLVM; no number where LiteRT has none.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.reader.program import Program, Ref
from pybuild.ir.graph import Graph
from tests.magnitudes.composed import COUNT, Row, rows, wrong
from tests.magnitudes.composed_doors import ATEN_ROWS, TFLITE_ROWS
from tests.magnitudes.runs import joined, results
from tests.magnitudes.test_other_doors import call, through_json
from tests.magnitudes.test_tflite import ran_by_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require


def _file(count: int) -> bytes:
    """x[count, 1, 32, 1] and the same as rows -> y_OPERATOR."""
    tensors = [
        FileTensor("pictures", (count, 1, COUNT, 1)),
        FileTensor("rows", (count, COUNT)),
        FileTensor("last", (1,), "INT32", np.int32([-1])),
    ]
    nodes = []
    for row in TFLITE_ROWS.values():
        ((table, options),) = row.attrs.items()
        reads = (0,) if row.given == "pictures" else (1, *((2,) if row.axes else ()))
        nodes.append(FileOperator(row.kind, reads, (len(tensors),), table, options))
        ends = row.true(np.ones((1, COUNT))).shape[-1]
        shape = (count, 1, ends, 1) if row.given == "pictures" else (count, ends)
        tensors.append(FileTensor(f"y_{row.kind}", shape))
    return write(tensors, nodes, [0, 1], list(range(3, len(tensors))))


def _inputs(x: Array) -> dict[str, Array]:
    return {"pictures": x[:, None, :, None], "rows": x}


def _program(count: int) -> Graph:
    """A program of torch.export of rows[count, 1, 32]."""
    x = "x"
    calls, shapes = [], {x: (count, 1, COUNT), "wide": (count, COUNT)}
    flat = call("aten.reshape.default", "wide", self=Ref(x), shape=[count, COUNT])
    calls.append(flat)
    for name, row in ATEN_ROWS.items():
        first = "self" if "norm." not in row.kind or "vector" in row.kind else "input"
        reads = "wide" if row.given == "channels" else x
        more = {first: Ref(reads), **row.attrs}
        calls.append(call(f"aten.{row.kind}", f"y_{name}", **more))
        ends = row.true(np.ones((1, COUNT))).shape[-1]
        shapes[f"y_{name}"] = (*shapes[reads][:-1], ends)
    outputs = tuple(f"y_{name}" for name in ATEN_ROWS)
    program = Program(
        "net", tuple(calls), (x,), outputs, {}, shapes, dict.fromkeys(shapes, "float32")
    )
    message, _ = converted(program)
    return load_onnx("net.pt2", message.SerializeToString(), {})


def _far(table: dict[str, Row], x: Array, made: dict[str, Array]) -> list[str]:
    return [
        f"{name} {text}"
        for name, row in table.items()
        for text in wrong(row, x, made[f"y_{name}"])
    ]


def test_rows_of_tflite_and_json(tmp_path: Path) -> None:
    require("gcc")
    x = rows("float32")
    graph = load_tflite("rows.tflite", _file(len(x)), {})
    graphs = joined({"tflite": graph, "json": through_json(graph)})
    made = results("rows", graphs, _inputs(x), tmp_path)
    for door in ("tflite", "json"):
        mine = {name: made[f"{door}_{name}"] for name in graph.outputs}
        far = _far(TFLITE_ROWS, x, mine)
        assert not far, "\n".join(far)


def test_rows_of_a_torch_program(tmp_path: Path) -> None:
    require("gcc")
    x = rows("float32")
    made = results("torch", _program(len(x)), {"x": x[:, None]}, tmp_path)
    far = _far(ATEN_ROWS, x, made)
    assert not far, "\n".join(far)


def test_rows_are_no_numbers_where_litert_says_so() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    x = rows("float32")[-6:]
    theirs = ran_by_litert(_file(len(x)), _inputs(x))
    for name, row in TFLITE_ROWS.items():
        if name in ("REDUCE_MAX", "REDUCE_MIN"):
            continue  # LiteRT's may lose NaN; ours do not
        with np.errstate(all="ignore"):
            ours = row.true(x.astype(np.float64))
        found = theirs[f"y_{name}"].reshape(ours.shape)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(found), name)
