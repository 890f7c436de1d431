"""How large floats can be, by what the graph says: never less than they are."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.kernels.layers.largest import largest

F, H = DType.FLOAT32, DType.FLOAT16


def _graph() -> Graph:
    tensors = {
        "x": Tensor("x", (4,), F), "h": Tensor("h", (4,), H),
        "q": Tensor("q", (4,), DType.INT8, Quant((0.5,), (-128,))),
        "c": Tensor("c", (4,), F), "flag": Tensor("flag", (4,), DType.BOOL),
    }  # fmt: skip
    nodes = []

    def node(op: str, name: str, *reads: str, kind: DType = F, **attrs: object) -> None:
        fn = {"fn": op} if op not in ("clip", "tanh", "dequantize", "add") else {}
        one = Node("map" if fn else op, name, reads, (name,), {**fn, **attrs})
        tensors[name] = Tensor(name, (4,), kind)
        nodes.append(one)

    node("tanh", "t", "x")
    node("clip", "six", "x", clamp=(-1.0, 6.0))
    node("clip", "above", "x", clamp=(0.0, None))
    node("dequantize", "d", "q")
    node("multiply", "product", "t", "d")
    node("add", "sum", "six", "d", clamp=(None, None))
    node("add", "lifted", "t", "t", clamp=(9.0, None))
    node("where", "either", "flag", "t", "six")
    node("cast", "narrow", "big", kind=H)
    node("multiply", "big", "d", "c")
    node("multiply", "huge", "big", "big")
    constants = {"c": np.asarray([1, -1000, np.nan, 3], np.float32)}
    return Graph("g", "g", tuple(nodes), tensors, ("x", "q", "flag"), (), constants)


def test_bounds() -> None:
    graph = _graph()
    true = {"x": np.inf, "t": 1, "six": 6, "above": np.inf, "d": 127.5, "c": 1000,
            "product": 127.5, "sum": 133.5, "lifted": 9, "either": 6, "big": 127500,
            "narrow": np.inf, "huge": 127500.0**2}  # fmt: skip
    for name, size in true.items():
        found = largest(graph, name)
        assert size <= found <= size * 1.01, (name, found)
