"""Attention over the rows that a mask lets through: found however the mask is spelt,
the numbers of plain numpy at every position; and masks for which it must not be done.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array

GROUPS, ROWS, DEPTH, WINDOW = 2, 3, 6, 20
NUMBERS = np.arange(WINDOW)
FAR = np.float32(-1e9)


class Net:
    """The ONNX graph being written."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: list[onnx.TensorProto] = []

    def op(self, op: str, *inputs: str, out: str = "", **attrs: object) -> str:
        out = out or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attrs))
        return out

    def const(self, value: object, dtype: type = np.float32) -> str:
        name = f"c{len(self.held)}"
        self.held.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def numbers(self) -> str:
        return self.const(NUMBERS, np.int64)


Write = Callable[[Net, str], str]
Shows = Callable[[int], Array]


def chosen(net: Net, scores: str) -> str:
    """masked_fill of torch."""
    later = net.op("Greater", net.numbers(), "at")
    return net.op("Where", later, net.const(-np.inf), scores)


def kept(net: Net, scores: str) -> str:
    """The other way round, with the least float."""
    live = net.op("LessOrEqual", net.numbers(), "at")
    return net.op("Where", live, scores, net.const(np.finfo(np.float32).min))


def added(net: Net, scores: str) -> str:
    later = net.op("Greater", net.numbers(), "at")
    mask = net.op("Where", later, net.const(FAR), net.const(0))
    return net.op("Add", scores, mask)


def arithmetic(net: Net, scores: str) -> str:
    """(1 - live) * -1e10, as BERT has it."""
    live = net.op("LessOrEqual", net.numbers(), "at")
    live = net.op("Cast", live, to=TensorProto.FLOAT)
    hidden = net.op("Sub", net.const(1), live)
    return net.op("Add", net.op("Mul", hidden, net.const(-1e10)), scores)


def row_of_a_table(net: Net, scores: str) -> str:
    table = np.where(np.tri(WINDOW, dtype=bool), np.float32(0), FAR)
    return net.op("Add", scores, net.op("Gather", net.const(table), "at", axis=0))


def newest_last(net: Net, scores: str) -> str:
    back = net.const(WINDOW - 1 - NUMBERS, np.int64)
    later = net.op("Greater", back, "at")
    return net.op("Where", later, net.const(-np.inf), scores)


def sliding(net: Net, scores: str) -> str:
    """The last five rows."""
    first = net.op("Sub", "at", net.const([5], np.int64))
    behind = net.op("LessOrEqual", net.numbers(), first)
    hides = net.op("Or", behind, net.op("Greater", net.numbers(), "at"))
    return net.op("Where", hides, net.const(-np.inf), scores)


FOUND: dict[Write, Shows] = {
    chosen: lambda at: at >= NUMBERS, kept: lambda at: at >= NUMBERS,
    added: lambda at: at >= NUMBERS, arithmetic: lambda at: at >= NUMBERS,
    row_of_a_table: lambda at: at >= NUMBERS,
    newest_last: lambda at: WINDOW - 1 - at <= NUMBERS,
    sliding: lambda at: (at >= NUMBERS) & (at - 5 < NUMBERS),
}  # fmt: skip


def every_other(net: Net, scores: str) -> str:
    odd = net.const(NUMBERS % 2 == 1, np.bool_)
    hides = net.op("Or", odd, net.op("Greater", net.numbers(), "at"))
    return net.op("Where", hides, net.const(-np.inf), scores)


def soft(net: Net, scores: str) -> str:
    """Rows that count less."""
    later = net.op("Greater", net.numbers(), "at")
    mask = net.op("Where", later, net.const(-5), net.const(0))
    return net.op("Add", scores, mask)


def by_data(net: Net, scores: str) -> str:
    """Where the mask is an input, too."""
    later = net.op("Greater", net.numbers(), "at")
    hides = net.op("Or", later, net.op("Greater", "data", net.const(100)))
    return net.op("Where", hides, net.const(-np.inf), scores)


def never_at_first(net: Net, scores: str) -> str:
    """No row at position 0: all weights are NaN."""
    later = net.op("GreaterOrEqual", net.numbers(), "at")
    return net.op("Where", later, net.const(-np.inf), scores)


def read_elsewhere(net: Net, scores: str) -> str:
    net.op("Identity", scores, out="scores")
    return chosen(net, scores)


NOT_FOUND = (every_other, soft, by_data, never_at_first, read_elsewhere)


def model(write: Write, across: bool = False) -> pybuild.Model:
    net, real = Net(), TensorProto.FLOAT
    keys = "k" if across else net.op("Transpose", "k", perm=[0, 2, 1])
    scores = net.op("MatMul", "q", keys)
    masked = write(net, net.op("Mul", scores, net.const(0.4)))
    net.op("MatMul", net.op("Softmax", masked, axis=-1), "v", out="y")
    shapes = {"q": (GROUPS, ROWS, DEPTH), "k": (GROUPS, WINDOW, DEPTH),
              "v": (GROUPS, WINDOW, 5), "data": (WINDOW,)}  # fmt: skip
    if across:
        shapes["k"] = (GROUPS, DEPTH, WINDOW)
    inputs = [helper.make_tensor_value_info(n, real, s) for n, s in shapes.items()]
    inputs += [helper.make_tensor_value_info("at", TensorProto.INT64, [1])]
    made = {"y": (GROUPS, ROWS, 5), "scores": (GROUPS, ROWS, WINDOW)}
    names = {name for node in net.nodes for name in node.output}
    outputs = [
        helper.make_tensor_value_info(n, real, s) for n, s in made.items() if n in names
    ]
    used = {name for node in net.nodes for name in node.input}
    inputs = [one for one in inputs if one.name in used]
    graph = helper.make_graph(net.nodes, "net", inputs, outputs, net.held)
    opset = helper.make_opsetid("", 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    return pybuild.load(proto)


def drawn(across: bool = False) -> dict[str, Array]:
    chance = np.random.default_rng(3)
    q, k, v = (
        chance.normal(0, 1, (GROUPS, n, d)).astype(np.float32)
        for n, d in ((ROWS, DEPTH), (WINDOW, DEPTH), (WINDOW, 5))
    )
    return {"q": q, "k": k.swapaxes(1, 2).copy() if across else k, "v": v,
            "data": np.zeros(WINDOW, np.float32)}  # fmt: skip


def wanted(given: dict[str, Array], bias: Array, across: bool) -> Array:
    keys = given["k"] if across else given["k"].swapaxes(1, 2)
    scores = given["q"] @ keys * np.float32(0.4) + bias
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ given["v"])


def ops(library: pybuild.Library) -> list[str]:
    return [step.node.op for step in library.plan.steps]


@pytest.mark.parametrize("across", [False, True], ids=["rows", "across"])
@pytest.mark.parametrize("write", FOUND)
def test_rows_that_a_mask_hides_are_not_read(write: Write, across: bool) -> None:
    library = model(write, across).build()
    assert {"attention"} == set(ops(library)) - {"gather", "transpose", "reshape"}
    net, given = library.host("llvm"), drawn(across)
    given.pop("data")
    for at in (0, 1, 7, WINDOW - 1):
        shown = FOUND[write](at)
        want = wanted(given, np.where(shown, 0, -np.inf).astype("f4"), across)
        places = (slice(None), slice(None), ~shown) if across else (slice(None), ~shown)
        spoilt = {name: value.copy() for name, value in given.items()}
        spoilt["k"][places] = np.nan
        spoilt["v"][:, ~shown] = np.nan
        for one in (given, spoilt):
            made = net.run(**one, at=np.array([at]))["y"]
            np.testing.assert_allclose(made, want, 1e-5, 1e-6)
    net.close()


@pytest.mark.parametrize("write", NOT_FOUND)
def test_other_masks_stay_as_they_are(write: Write) -> None:
    found = model(write)
    library = found.build()
    assert "softmax" in ops(library) and "attention" not in ops(library)
    net, given = library.host("llvm"), drawn()
    bias = {
        every_other: np.where((NUMBERS <= 7) & (NUMBERS % 2 == 0), 0, -np.inf),
        soft: np.where(NUMBERS <= 7, 0, -5), never_at_first:
        np.where(NUMBERS < 7, 0, -np.inf),
    }.get(write, np.where(NUMBERS <= 7, 0, -np.inf))  # fmt: skip
    inputs = {name: given[name] for name in found.graph.inputs if name in given}
    made = net.run(**inputs, at=np.array([7]))["y"]
    want = wanted(given, bias.astype(np.float32), across=False)
    np.testing.assert_allclose(made, want, 1e-5, 1e-6)
    net.close()


def test_a_mask_that_may_be_replaced_is_read() -> None:
    library = model(added).build(params="replaceable")
    assert "softmax" in ops(library) and "attention" not in ops(library)
