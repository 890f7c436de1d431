"""Layers whose weights have nine bits, as a zero point that is taken out leaves them:
as numpy's through LLVM and as C, and on emulated cores; a byte of flash for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import run_recorded
from pybuild.dtype import Array
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.layers.zero_points import weights_zero
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

# rows, columns and inputs of a window, outputs, pixels of a row: odd numbers of each,
# an output that is alone, a sum in several runs, a pixel left over
WINDOWS = [
    (1, 1, 16, 8, 5), (3, 3, 3, 5, 7), (3, 3, 16, 1, 3), (3, 3, 72, 4, 3),
    (1, 1, 2, 3, 4), (2, 2, 6, 20, 4),
]  # fmt: skip
# rows of the input, inputs, outputs
DENSE = [(1, 64, 16), (3, 40, 13), (1, 1100, 3), (1, 5, 2)]
# rows and columns of a window, channels, outputs of each, pixels of a row, strides
DEPTHWISE = [
    (3, 3, 8, 1, 9, 1), (3, 3, 5, 1, 4, 2), (5, 5, 16, 1, 7, 1), (1, 3, 19, 1, 8, 1),
    (3, 3, 4, 2, 5, 1),
]  # fmt: skip
# the least weight: of all sizes, and those that leave no room for a sign
LEAST = (-110, -255, 0, -128)
TARGETS_OF = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc", "host")


def layer(op: str, sizes: tuple[int, ...], least: int, **attrs: Any) -> Graph:
    """A layer alone, of weights from `least` on, of which 255 more is the greatest."""
    net = GraphBuilder("nine")
    chance = np.random.default_rng((*sizes, least + 255))
    shape: tuple[int, ...]
    x: tuple[int, ...]
    if op == "dense":
        x, shape, axis = sizes[:2], (sizes[2], sizes[1]), 0
    elif op == "conv2d":
        groups = attrs.get("groups", 1)
        x, shape, axis = (1, 5, sizes[4], sizes[2] * groups), (sizes[3], *sizes[:3]), 0
    else:
        high, wide, channels, times, width, stride = sizes
        x, shape, axis = (1, 6, width, channels), (high, wide, channels * times), 2
        attrs |= {"strides": (stride, stride)}
    if op != "dense":
        window = shape[1:3] if op == "conv2d" else shape[:2]
        attrs |= {"pads": tuple(side // 2 for side in (*window, *window))}
    weights = chance.normal(least + 127, 50, shape).clip(least, least + 255)
    weights = weights.round().astype(np.int16)
    weights.reshape(-1)[:2] = least, least + 255
    weights.reshape(-1)[-1] = least
    outs = shape[axis]
    w = net.constant("w", weights, (0.01, 0))
    bias = chance.integers(-900, 900, outs).astype(np.int32)
    size = 0.0005 * float(np.sqrt((weights.astype(float) ** 2).sum() / outs))
    y = net.op(
        op, net.input("x", x, "int8", quant=(0.05, 3)), w,
        net.constant("b", bias, (0.0005, 0)), quant=(size * 2, -5), **attrs,
    )  # fmt: skip
    net.output(y, "y")
    return Model("nine", net.build(), "litert", "0" * 64).lower("litert")


def sums(of: Graph) -> Graph:
    """The layer's plain sums of an input without padding, int32."""
    (node,), net = of.nodes, GraphBuilder("sums")
    x, w = (of.tensor(name) for name in node.inputs[:2])
    attrs = {k: v for k, v in node.attrs.items() if k in ("strides", "groups")}
    y = net.op(
        f"{node.op}_sums", net.input("x", x.shape, "int8"),
        net.constant("w", of.constants[w.name]), dtype="int32", **attrs,
    )  # fmt: skip
    net.output(y, "y")
    return net.build()


def jobs_of(made: Graph, target: str) -> list[Job]:
    (node,) = made.nodes
    x = given(made)
    wanted = interpret(made, {"x": x})["y"]
    found = candidates(node, made, TARGETS[target], "balanced")
    return [Job(one, {"x": x}, {"y": wanted}) for one in found]


@SOME
@pytest.mark.parametrize("target", TARGETS_OF)
def test_by_llvm_and_c(target: str, some: Some, tmp_path: Path) -> None:
    graphs = [
        layer(op, sizes, LEAST[number % len(LEAST)])
        for op, each in (
            ("conv2d", WINDOWS), ("dense", DENSE), ("depthwise_conv2d", DEPTHWISE),
        )
        for number, sizes in enumerate(each)
    ]  # fmt: skip
    graphs.append(layer("conv2d", (3, 3, 8, 16, 6), -90, groups=2))
    graphs.append(layer("depthwise_conv2d", (3, 3, 8, 1, 9, 1), -90, dilations=(1, 2)))
    graphs += [sums(graphs[i]) for i in (1, 3, 5, 7, 10, 14, 15)]
    jobs = [job for made in graphs for job in jobs_of(made, target)]
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_on_a_core(target: str, emit: str) -> None:
    """A few layers one after the other."""
    made = net((-100, -140, -30, -120))
    library = made.build(name="nine", target=target, emit=emit)
    board = device(CORES[target], "gcc", core=target)
    x = {"x": given(made.lower("litert"))}
    found = run_recorded(board, library, x)
    np.testing.assert_array_equal(found["y"], interpret(made.lower("litert"), x)["y"])


def net(least: tuple[int, ...], nine: bool = True) -> Model:
    """A convolution, a depthwise one, a pointwise one, and a dense layer; of eight bits
    with the same sizes."""
    made, chance = GraphBuilder("net"), np.random.default_rng(7)
    y = made.input("x", (1, 12, 10, 8), "int8", quant=(0.05, 3))
    one = {"pads": (1, 1, 1, 1)}
    layers: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
        ("conv2d", (24, 3, 3, 8), one), ("depthwise_conv2d", (3, 3, 24), one),
        ("conv2d", (32, 1, 1, 24), {}), ("dense", (10, 32), {}),
    ]  # fmt: skip
    for number, ((op, shape, attrs), low) in enumerate(zip(layers, least, strict=True)):
        weights: Array = chance.normal(low + 128, 40, shape).clip(low, low + 255)
        weights.reshape(-1)[:2] = low, low + 255
        if not nine:
            weights = (weights - low - 128).clip(-127, 127)
        kind = np.int16 if nine else np.int8
        w = made.constant(f"w{number}", weights.round().astype(kind), (0.01, 0))
        outs = shape[2] if op == "depthwise_conv2d" else shape[0]
        bias = chance.integers(-900, 900, outs).astype(np.int32)
        b = made.constant(f"b{number}", bias, (0.0005 * (1 + number), 0))
        quant = (0.05 * (1 + number) * np.sqrt(weights.size / outs) * 0.5, -5)
        y = made.op(op, y, w, b, quant=quant, **attrs)
    made.output(y, "y")
    return Model("net", made.build(), "litert", "0" * 64)


@pytest.mark.parametrize(
    ("board", "most"), [("mps2-an386", 1.1), ("mps3-an547", 1.25), ("microbit", 1.1)]
)
def test_they_take_as_much_as_eight(board: str, most: float) -> None:
    """Instructions and flash beside a net of weights of eight bits."""
    core = {"mps2-an386": "cortex-m4", "mps3-an547": "cortex-m55"}
    core["microbit"] = "cortex-m0"
    totals, flash = [], []
    for nine in (True, False):
        made = net((-100, -140, -30, -120), nine).build(name="net", target=core[board])
        bench = bench_on_board(device(board, "gcc"), made)
        totals.append(bench.instructions)
        flash.append(sum(c.array.nbytes for c in weights_of(made)))
    assert totals[0] <= most * totals[1]
    assert flash[0] <= 1.15 * flash[1]  # of a depthwise layer, they take two bytes each


def weights_of(library: Any) -> list[Any]:
    steps = (step.candidate.constants for step in library.plan.steps)
    return [one for few in steps for one in few if one.role == "weights"]


def test_what_makes_bytes_of_them() -> None:
    whole = np.arange(-100, 156, dtype=np.int16)
    assert weights_zero(whole) == 100
    assert weights_zero(np.array([-1, 255], np.int16)) is None
    assert weights_zero(np.array([3, 255], np.int16)) == 0
