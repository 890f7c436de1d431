"""Small graphs for the tests of passes, and what a pass must leave as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor, verify
from pybuild.ops import OPERATORS
from pybuild.ops.interpret import check_types, interpret

F = np.float32
Q = Quant((0.05,), (3,))
RELU, RELU6 = (0.0, None), (0.0, 6.0)
ONES = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}


class Small:
    """Collects nodes; the types of outputs are inferred."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, Array] = {}
        self.inputs: list[str] = []

    def input(self, name: str, *shape: int, quant: Quant | None = None) -> str:
        kind = DType.FLOAT32 if quant is None else DType.INT8
        self.tensors[name] = Tensor(name, shape, kind, quant)
        self.inputs.append(name)
        return name

    def constant(self, name: str, value: Array, quant: Quant | None = None) -> str:
        self.tensors[name] = Tensor(name, value.shape, DType.of(value), quant)
        self.constants[name] = value
        return name

    def weights(self, name: str, *shape: int, seed: int = 0) -> str:
        chance = np.random.default_rng((seed, len(self.constants)))
        return self.constant(name, chance.standard_normal(shape).astype(F))

    def node(
        self,
        op: str,
        reads: str,
        output: str,
        shape: tuple[int, ...] = (),
        quant: Quant | None = None,
        **attrs: Any,
    ) -> str:
        """`reads`: names with spaces between; `shape`: of a reshape."""
        inputs = tuple("" if n == "-" else n for n in reads.split())
        kind = self.tensors[inputs[0]].dtype
        if op == "quantize":
            kind = DType.INT8
        made = Node(op, output, inputs, (output,), attrs)
        self.tensors[output] = Tensor(output, shape, kind, quant)
        found, dtype = OPERATORS[op].infer(made, self.graph())[0]
        if dtype is DType.INT8 and quant is None:
            quant = self.tensors[inputs[0]].quant
        self.tensors[output] = Tensor(output, found, dtype, quant)
        self.nodes.append(made)
        return output

    def graph(self, *outputs: str) -> Graph:
        names = tuple(self.inputs)
        return Graph(
            "small", "small", tuple(self.nodes), dict(self.tensors), names, outputs,
            dict(self.constants),
        )  # fmt: skip


def inputs_of(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Normal floats, uniform integers."""
    chance = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if tensor.dtype is DType.FLOAT32:
            made[name] = chance.standard_normal(tensor.shape).astype(F) * F(4)
        else:
            low, high = tensor.dtype.low, tensor.dtype.high + 1
            made[name] = chance.integers(low, high, tensor.shape, tensor.dtype.numpy)
    return made


def after(
    one: Callable[[Graph], Graph],
    graph: Graph,
    tolerance: float = 0.0,
    settled: bool = True,
) -> Graph:
    """The graph after a pass, proven valid and to mean the same.

    tolerance   of float outputs, of their range; integers are equal
    settled     the same pass again finds nothing more
    """
    verify(graph)
    before_dump = graph.dump()
    made = one(graph)
    verify(made)
    assert check_types(made) == []
    assert graph.dump() == before_dump
    assert (made.inputs, made.outputs) == (graph.inputs, graph.outputs)
    assert not settled or ops(one(made)) == ops(made)
    for seed in range(3):
        values = inputs_of(graph, seed)
        want, have = interpret(graph, values), interpret(made, values)
        for name in graph.outputs:
            assert have[name].dtype == want[name].dtype
            assert have[name].shape == want[name].shape
            far = np.abs(have[name].astype(np.float64) - want[name]).max()
            assert far <= tolerance * max(float(np.ptp(want[name])), 1e-3), name
    return made


def ops(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def rounded(graph: Graph, rule: str) -> Graph:
    nodes = tuple(node.with_attrs(rounding=rule) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def conv(g: Small, x: str, out: str, channels: int = 2, **attrs: object) -> str:
    w = g.weights(f"{out}_w", 3, 1, 1, channels)
    b = g.weights(f"{out}_b", 3)
    return g.node("conv2d", f"{x} {w} {b}", out, **{**ONES, "groups": 1, **attrs})
