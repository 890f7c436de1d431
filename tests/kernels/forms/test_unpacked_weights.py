"""Depthwise layers whose weights have 2 or 4 bits: packed in flash, unpacked to scratch
by each call; as numpy's through LLVM and as C, and on emulated cores.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.layers.weights import PACKED
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

# rows, columns, channels and outputs of each, pixels of a row; bits of weights
LAYERS = [
    ((3, 3, 20, 1, 6), 4), ((5, 3, 5, 1, 4), 4), ((3, 3, 16, 2, 9), 4),
    ((3, 3, 18, 1, 12), 2), ((1, 7, 8, 1, 9), 4),
]  # fmt: skip
TARGETS_OF = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")


def layer(sizes: tuple[int, ...], bits: int, least: int = 0) -> Graph:
    """A depthwise convolution; least: a weight beyond those bits."""
    height, width, channels, each, pixels = sizes
    net, half = GraphBuilder("unpacked"), 1 << bits - 1
    chance = np.random.default_rng((*sizes, bits))
    weights = chance.integers(-half, half, (height, width, channels * each))
    weights = weights.astype(np.int8)
    weights.reshape(-1)[:2] = least or -half, half - 1
    x = net.input("x", (1, 6, pixels, channels), "int8", quant=(0.05, 3))
    w = net.constant("w", weights, (0.08, 0))
    bias = chance.integers(-900, 900, channels * each).astype(np.int32)
    b = net.constant("b", bias, (0.004, 0))
    edge = (height // 2, width // 2) * 2
    y = net.op("depthwise_conv2d", x, w, b, quant=(0.01 * 4**bits, -5), pads=edge)
    net.output(y, "y")
    return Model("unpacked", net.build(), "litert", "0" * 64).lower("litert")


def packed(made: Graph, target: str, optimise: str = "size") -> list[Candidate]:
    (node,) = made.nodes
    found = candidates(node, made, TARGETS[target], optimise)
    roles = {c.constants[0].role for c in found if not c.spare}
    assert roles <= {"weights"} or not roles & {"weights"}
    return [c for c in found if c.constants[0].role in PACKED.values()]


@SOME
@pytest.mark.parametrize("target", TARGETS_OF)
def test_by_llvm_and_c(target: str, some: Some, tmp_path: Path) -> None:
    jobs = []
    for sizes, bits in LAYERS:
        made = layer(sizes, bits)
        x = {"x": given(made)}
        real = interpret(made, x)
        offers = packed(made, target)
        assert offers
        for one in offers:
            (role,) = {p.role for p in one.constants} & {*PACKED.values()}
            assert one.func and (role == PACKED[bits] or "int4" in one.func.name)
        jobs += [Job(one, x, real) for one in offers]
    fewer = some(jobs)
    for tried, results in ((jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path))):
        for job, result in zip(tried, results, strict=True):
            assert job.candidate.func
            name = job.candidate.func.name
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


def behind(sides: int) -> Graph:
    """A depthwise layer behind one that makes its input smaller, or alone."""
    net = GraphBuilder("room")
    x = net.input("x", (1, 6 * sides, 6 * sides, 128), "int8", quant=(0.05, 3))
    if sides > 1:
        x = net.op("max_pool2d", x, kernel=(sides, sides), strides=(sides, sides))
    weights = np.random.default_rng(1).integers(-8, 8, (3, 3, 128)).astype(np.int8)
    w = net.constant("w", weights, (0.08, 0))
    net.output(net.op("depthwise_conv2d", x, w, quant=(0.2, 0), pads=(1,) * 4), "y")
    return net.build()


@pytest.mark.parametrize(
    ("target", "emit"), [("cortex-m4", "c"), ("cortex-m0", "obj"), ("cortex-m55", "c")]
)
def test_on_a_core(target: str, emit: str) -> None:
    board = device(CORES[target], "gcc", core=target)
    model = Model("room", behind(3), "litert", "0" * 64)
    library = model.build(
        name="room", target=target, emit=emit, optimise="size", plan="whole"
    )
    assert library.plan.steps[-1].candidate.constants[0].role == "weights4"
    x = {"x": given(model.graph)}
    found = run_recorded(board, library, x)
    np.testing.assert_array_equal(found["y"], interpret(model.lower(), x)["y"])


def test_memory_goes_before_flash() -> None:
    """Weights are packed where unpacking them raises no peak of memory."""
    for sides, role in ((1, "weights"), (3, "weights4")):
        model = Model("room", behind(sides), "litert", "0" * 64)
        (*_, last) = model.build(name="room", target="cortex-m4").plan.steps
        assert last.candidate.constants[0].role == role, sides


def test_what_is_packed() -> None:
    sizes = (3, 3, 128, 1, 7)
    made = layer(sizes, 4)
    for one in packed(made, "cortex-m0"):
        assert one.constants[0].array.nbytes == 3 * 3 * 128 // 2
    (image,) = (c for c in packed(layer(sizes, 2), "rv32imc") if c.bands == 1)
    assert image.constants[0].array.nbytes == 3 * 3 * 128 // 4
    assert not packed(layer(sizes, 4, least=-9), "cortex-m4")
    assert not packed(made, "cortex-m4", "speed")
    # a byte for each weight where they are few, on vectors, and on an unknown core
    assert packed(made, "cortex-m4", "balanced")
    assert not packed(layer((3, 3, 64, 1, 7), 4), "cortex-m4", "balanced")
    assert not packed(made, "cortex-m55", "balanced")
    assert not packed(made, "generic")
