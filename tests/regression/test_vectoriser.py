"""LLVM's SLP vectoriser lost the high halves of sums of two int16 in a word, and of
products that are scaled by a power of two. Floats it may have: without it networks of
floats took up to five times as long on hosts."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from pybuild.emit.llvm import passes as llvm_passes
from pybuild.emit.llvm.model import module
from pybuild.graph_builder import GraphBuilder
from pybuild.host.jit import bitcode
from pybuild.kernels.base.builder import Builder
from pybuild.ops.interpret import interpret
from tests.graphs.rows import model_of
from tests.plan.test_rows import inputs_of, must_equal, outputs_of


@pytest.mark.parametrize("shape", [(1, 7, 4, 12), (1, 10, 4, 16)])
def test_means_of_a_constant_count(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the loop that the kernel keeps rolled since then written out."""
    plain = Builder.loop

    def loop(self: Builder, *args: Any, rolled: bool = False, **words: Any) -> Any:
        return plain(self, *args, **words)

    monkeypatch.setattr(Builder, "loop", loop)
    net = GraphBuilder("means")
    x = net.input("x", shape, "int8", quant=(0.1, 3))
    y = net.op("mean", x, axes=(1, 2), keepdims=True, quant=(0.07, -3))
    net.output(y)
    library = model_of(net.build()).build(target="cortex-m4", optimise="speed")
    graph = library.plan.graph
    wanted = interpret(graph, inputs_of(graph))
    must_equal(outputs_of(library), [wanted[name] for name in graph.outputs])


@pytest.mark.parametrize("up", [0.25, 1.0, 2.0])
def test_products_scaled_by_a_power_of_two(up: float) -> None:
    """Such as those by a mask of ones."""
    net = GraphBuilder("product")
    a, b = (net.input(name, (1, 2, 8, 16), "int8", (1.0, 5)) for name in "ab")
    net.output(net.op("mul", a, b, quant=(1 / up, -5)))
    for target in ("cortex-m4", "cortex-m55"):
        library = model_of(net.build()).build(target=target)
        graph = library.plan.graph
        wanted = interpret(graph, inputs_of(graph))
        must_equal(outputs_of(library), [wanted[name] for name in graph.outputs])


def test_floats_side_by_side_are_vectors() -> None:
    net = GraphBuilder("floats")
    x = net.input("x", (1, 4, 4, 16))
    w = net.constant("w", np.ones((16, 3, 3, 16), np.float32))
    net.output(net.op("conv2d", x, w, pads=(1, 1, 1, 1)))
    library = model_of(net.build()).build()
    parsed = llvm.parse_bitcode(bitcode(functools.partial(module, library.tables)))
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3)
    llvm_passes.optimise(parsed, machine, host=True)
    assert "fmul <" in str(parsed)
