"""Layers of float32 whose weights are integers of 2 or 4 bits times scales: packed in
words, through LLVM and as C, and on emulated cores, with the bits of float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.dtype import Array
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels import table
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.layers.block_weights import block_weights
from pybuild.kernels.layers.weights import PACKED
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm

Sizes = tuple[int, ...]
# rows, inputs, outputs; or a window, inputs, outputs, pixels of a row; then taps of a
# scale, 0: those of a channel; with zero points; bits
LAYERS: list[tuple[Sizes, int, bool, int]] = [
    ((1, 64, 16), 32, False, 4), ((1, 64, 16), 16, True, 4),
    ((3, 64, 13), 0, False, 4), ((1, 128, 4), 32, True, 4),
    ((3, 3, 8, 16, 7), 0, False, 4), ((1, 1, 32, 10, 5), 16, False, 4),
    ((3, 3, 3, 8, 6), 0, True, 4), ((5, 32, 9), 16, True, 4),
    ((1, 64, 16), 32, False, 2), ((2, 64, 13), 16, True, 2),
    ((3, 3, 8, 16, 7), 0, True, 2), ((1, 128, 4), 0, False, 2),
]  # fmt: skip


def weights(shape: Sizes, block: int, points: bool, bits: int = 4) -> Array:
    """Integers of so many bits, less their zero points, times scales."""
    chance = np.random.default_rng((*shape, block))
    size = block or int(np.prod(shape[1:]))
    half = 1 << bits - 1
    q = chance.integers(-half, half, (shape[0], int(np.prod(shape[1:])) // size, size))
    if points:
        q = q - chance.integers(1 - half, half, (*q.shape[:2], 1))
    scale = chance.uniform(0.001, 0.1, (*q.shape[:2], 1)).astype(np.float32)
    made: Array = (q.astype(np.float32) * scale).reshape(shape)
    return made


def layer(sizes: Sizes, block: int, points: bool, bits: int = 4) -> Graph:
    net = GraphBuilder("scaled")
    if len(sizes) == 3:
        x = net.input("x", sizes[:2], "float32")
        w = net.constant("w", weights((sizes[2], sizes[1]), block, points, bits))
        net.output(net.op("dense", x, w), "y")
        return net.build()
    *window, outs, width = sizes
    x = net.input("x", (1, 5, width, window[2]), "float32")
    w = net.constant("w", weights((outs, *window), block, points, bits))
    edge = (window[0] // 2, window[1] // 2) * 2
    net.output(net.op("conv2d", x, w, pads=edge), "y")
    return net.build()


def reals(made: Graph) -> Array:
    chance = np.random.default_rng(1)
    return chance.normal(size=made.tensor("x").shape).astype(np.float32)


def packed(made: Graph, target: str, optimise: str = "balanced") -> list[Candidate]:
    found = candidates(made.nodes[0], made, TARGETS[target], optimise)
    return [c for c in found if c.constants[0].role in PACKED.values()]


@SOME
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "generic"])
def test_by_llvm_and_c(
    target: str, some: Some, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "_CODE", 0)
    jobs = []
    for one in LAYERS:
        made = layer(*one)
        x = reals(made)
        real = interpret(made, {"x": x})["y"]
        (wanted,) = run_llvm(
            [Job(candidates(made.nodes[0], made)[0], {"x": x}, {"y": real})]
        )
        offers = packed(made, target, "size")
        # those of an unknown core sum eight channels
        assert offers or (target == "generic" and one[0][-1] in (4, 6)), one
        assert all(c.constants[0].role == PACKED[one[3]] for c in offers), one
        jobs += [Job(offer, {"x": x}, wanted) for offer in offers]
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize(
    ("target", "emit"),
    [("cortex-m0", "c"), ("cortex-m4", "c"), ("cortex-m4", "obj"), ("rv32imc", "c")],
)
def test_bits_of_float32_on_a_core(target: str, emit: str) -> None:
    board = device(CORES[target], "gcc", core=target)
    for one in (
        ((1, 64, 40), 32, True, 4), ((3, 3, 8, 16, 5), 0, False, 4),
        ((1, 64, 40), 32, True, 2),
    ):  # fmt: skip
        made = layer(*one)
        model = Model("scaled", made, "litert", "0" * 64)
        x = {"x": reals(made)}
        found = []
        for optimise in ("balanced", "speed"):
            library = model.build(
                name="scaled", target=target, emit=emit, optimise=optimise
            )
            (step,) = library.plan.steps
            is_packed = step.candidate.constants[0].role == PACKED[one[3]]
            assert is_packed == (optimise == "balanced")
            found.append(run_recorded(board, library, x)["y"])
        np.testing.assert_array_equal(found[0], found[1])


def test_what_integers_are_found() -> None:
    """The largest blocks, their numbers and scales; and where there are none."""
    for shape, block, points, bits in (
        ((8, 256), 32, False, 4), ((8, 256), 64, True, 4), ((4, 3, 3, 5), 0, False, 4),
        ((8, 256), 32, True, 2), ((8, 256), 64, False, 2),
    ):  # fmt: skip
        w = weights(shape, block, points, bits).reshape(shape[0], -1)
        found, half = block_weights(w), 1 << bits - 1
        assert found is not None and found.size == (block or w.shape[1])
        assert found.numbers.min() == -half and found.numbers.max() == half - 1
        assert found.bits == bits
        assert found.offsets.any() == points
        whole = found.numbers.reshape(shape[0], -1, found.size).astype(np.float32)
        again = (whole + found.offsets[:, :, None]) * found.scales[:, :, None]
        np.testing.assert_array_equal(again.reshape(w.shape), w)
        near = w.copy()
        near[-1, -1] = np.nextafter(near[-1, -1] + 1, np.float32(9))
        assert block_weights(near) is None
    assert block_weights(np.full((2, 16), np.nan, np.float32)) is None
    wide = np.arange(17, dtype=np.float32).repeat(2)[None]
    assert block_weights(wide) is None and block_weights(wide[:, :32]) is not None
    nothing = block_weights(np.zeros((2, 16), np.float32))
    assert nothing is not None and not nothing.numbers.any()


def test_bytes_of_a_layer() -> None:
    (one,) = packed(layer((1, 256, 64), 32, False), "cortex-m4")
    bytes_of = {p.role: p.array.nbytes for p in one.constants}
    assert bytes_of == {"weights4": 8192, "bias": 256, "scales": 2048}
    (one,) = packed(layer((1, 256, 64), 32, True), "cortex-m4")
    assert {p.role: p.array.nbytes for p in one.constants}["offsets"] == 512


def test_vectors_have_real_weights() -> None:
    made = layer((1, 256, 64), 32, False)
    assert not packed(made, "cortex-m55") and packed(made, "cortex-m55", "size")
    assert not packed(made, "cortex-m4", "speed")
