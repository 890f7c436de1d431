"""A function of one byte is one lookup, however it is written and through each door:
for each of the 256 bytes what ONNX Runtime and LiteRT make of it, bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.dtype import DType
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require_module

EVERY = np.arange(-128, 128).astype(np.int8).reshape(1, 2, 16, 8)
X, Y, SHARE = (0.05, 3), (0.03, -100), (1 / 256, -128)


class _Qdq:
    """An ONNX graph of one int8 input, each tensor quantised where it is asked for."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, Any] = {"s": np.float32(X[0]), "z": np.int8(X[1])}
        self.x = self._op("DequantizeLinear", "x", "s", "z")

    def _op(self, kind: str, *reads: str, **attrs: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(reads), [name], **attrs))
        return name

    def op(self, kind: str, *reads: Any, **attrs: Any) -> str:
        """Numbers are constants."""
        return self._op(
            kind, *(r if isinstance(r, str) else self._number(r) for r in reads),
            **attrs,
        )  # fmt: skip

    def _number(self, value: Any) -> str:
        name = f"n{len(self.held)}"
        self.held[name] = np.float32(value)
        return name

    def whole(self, name: Any, scale: float, zero: int = 0) -> str:
        read = name if isinstance(name, str) else self._number(name)
        at = len(self.held)
        self.held |= {f"s{at}": np.float32(scale), f"z{at}": np.int8(zero)}
        made = self._op("QuantizeLinear", read, f"s{at}", f"z{at}")
        return self._op("DequantizeLinear", made, f"s{at}", f"z{at}")

    def data(self, y: str, shape: tuple[int, ...] = EVERY.shape) -> bytes:
        last = self.nodes.pop()
        assert last.output[0] == y
        x, y = (
            helper.make_tensor_value_info(n, TensorProto.INT8, s)
            for n, s in (("x", EVERY.shape), (last.input[0], shape))
        )
        held = [numpy_helper.from_array(np.asarray(v), n) for n, v in self.held.items()]
        graph = helper.make_graph(self.nodes, "g", [x], [y], held)
        opset = [helper.make_opsetid("", 20)]
        made = helper.make_model(graph, opset_imports=opset, ir_version=8)
        data: bytes = made.SerializeToString()
        return data


def _silu(g: _Qdq) -> str:
    return g.op("Mul", g.x, g.whole(g.op("Sigmoid", g.x), *SHARE))


def _silu_of_floats(g: _Qdq) -> str:
    return g.op("Mul", g.op("Sigmoid", g.x), g.x)


def _hard_swish(g: _Qdq) -> str:
    return g.op("HardSwish", g.x)


def _hard_sigmoid(g: _Qdq) -> str:
    share = g.op("HardSigmoid", g.x, alpha=1 / 6, beta=0.5)
    return g.op("Mul", g.x, g.whole(share, *SHARE))


def _relu6(g: _Qdq) -> str:
    more = g.whole(g.op("Add", g.x, g.whole(3.0, 0.025)), 0.07, -30)
    held = g.whole(g.op("Clip", more, 0.0, 6.0), 6 / 255, -128)
    return g.op("Mul", g.whole(g.op("Mul", g.x, held), 0.1, -90), g.whole(1 / 6, 1e-3))


def _gelu(g: _Qdq) -> str:
    small = g.whole(g.op("Div", g.x, g.whole(1.4142, 0.012)), 0.04)
    more = g.whole(
        g.op("Add", g.whole(g.op("Erf", small), 1 / 127), 1.0), 2 / 255, -128
    )
    return g.op("Mul", g.whole(g.op("Mul", g.x, more), 0.05, -90), g.whole(0.5, 0.004))


def _square(g: _Qdq) -> str:
    return g.op("Mul", g.x, g.x)


def _again(g: _Qdq) -> str:
    return g.whole(g.whole(g.x, 0.06, 1), 0.04, 2)


SPELLINGS = (_silu, _silu_of_floats, _hard_swish, _hard_sigmoid, _relu6, _gelu, _square,
             _again)  # fmt: skip


def _ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda one: one.__name__[1:])
def test_of_onnx(spelling: Any) -> None:
    g = _Qdq()
    _must_be_equal(g.data(g.whole(spelling(g), *Y)), ["lookup"])


def test_behind_a_convolution() -> None:
    """Where channels come last, constants of one number are reshaped."""
    g = _Qdq()
    weights = np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1)
    layer = g.op("Conv", g.x, g.whole(weights, 1 / 127))
    g.x = g.whole(layer, 0.061, 5)
    ends = ["transpose", "conv2d", "lookup", "transpose"]
    _must_be_equal(g.data(g.whole(_relu6(g), *Y)), ends)


def test_before_a_concat_that_is_quantised() -> None:
    """The function's floats are quantised as the concat is: before it they are bytes,
    also where another quantize reads them."""
    g = _Qdq()
    made = _silu_of_floats(g)
    turned = g.op("Transpose", g.op("Concat", made, g.x, axis=3), perm=[0, 1, 3, 2])
    other = g.op("Transpose", g.whole(made, 0.07, 4), perm=[0, 1, 3, 2])
    both = g.op("Concat", g.whole(turned, 0.05, -9), other, axis=2)
    kinds = {"lookup", "concat", "transpose", "quantize"}
    _must_be_equal(g.data(g.whole(both, 0.061, -9), (1, 2, 24, 16)), kinds)


def _must_be_equal(data: bytes, ops: list[str] | set[str]) -> None:
    """The graph has these operators, in this order or of these kinds, without floats;
    and ONNX Runtime's values of all bytes."""
    graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
    assert (_ops(graph) if isinstance(ops, list) else {*_ops(graph)}) == ops
    assert all(graph.tensor(n.output).dtype is DType.INT8 for n in graph.nodes)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    (want,) = onnxruntime.InferenceSession(data, options).run(None, {"x": EVERY})
    np.testing.assert_array_equal(
        interpret(graph, {"x": EVERY})[graph.outputs[0]], want
    )


def _file(name: str, quant: tuple[float, int], data: Any = None) -> FileTensor:
    shape = EVERY.shape if data is None else ()
    held = None if data is None else np.asarray(data, np.int8)
    return FileTensor(name, shape, "INT8", held, (quant[0],), (quant[1],))


def _op(code: str, reads: tuple[int, ...], y: int, **options: int) -> FileOperator:
    table = {"ADD": "AddOptions", "MUL": "MulOptions"}.get(code, "")
    return FileOperator(code, reads, (y,), table, options)


# of each the tensors, and operators; 0 is x, the last y
TFLITE: dict[str, tuple[list[FileTensor], list[FileOperator]]] = {
    "silu": (
        [_file("x", X), _file("s", SHARE), _file("y", Y)],
        [_op("LOGISTIC", (0,), 1), _op("MUL", (0, 1), 2)],
    ),
    "hard swish and more": (
        [_file("x", X), _file("h", Y), _file("y", (0.06, -64))],
        [_op("HARD_SWISH", (0,), 1), _op("ADD", (1, 0), 2)],
    ),
    "relu6": (
        [_file("x", X), _file("3", (0.025, 0), 120), _file("a", (6 / 255, -128)),
         _file("m", (0.1, -90)), _file("6th", (1 / 762, 0), 127), _file("y", Y)],
        [_op("ADD", (0, 1), 2, FusedActivationFunction=3), _op("MUL", (0, 2), 3),
         _op("MUL", (3, 4), 5)],
    ),
    "again": (
        [_file("x", X), _file("a", (0.06, 1)), _file("y", Y)],
        [_op("QUANTIZE", (0,), 1), _op("QUANTIZE", (1,), 2)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("spelling", TFLITE)
def test_of_tflite(spelling: str) -> None:
    require_module("ai_edge_litert")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    tensors, operators = TFLITE[spelling]
    data = write(tensors, operators, [0], [len(tensors) - 1])
    graph = run(load_tflite("m.tflite", data, {}), PassOptions("litert"))
    assert _ops(graph) == ["lookup"]
    net = Interpreter(
        model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    net.allocate_tensors()
    net.set_tensor(net.get_input_details()[0]["index"], EVERY)
    net.invoke()
    want = net.get_tensor(net.get_output_details()[0]["index"])
    np.testing.assert_array_equal(
        interpret(graph, dict.fromkeys(graph.inputs, EVERY))[graph.outputs[0]], want
    )
