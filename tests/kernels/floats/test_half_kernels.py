"""Layers of float32 whose weights are float16 in flash: through LLVM and as C, and on
emulated cores, with the bits of the same layer with weights of float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels import table
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.layers.weights import WEIGHTS16, two_in_a_word
from pybuild.kernels.table import candidates
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, run_c, run_llvm

# rows, columns and inputs of a window, outputs, pixels of a row; rows, inputs, outputs:
# blocks that are whole and that are not, one vector and several
WINDOWS = [(1, 1, 16, 8, 5), (1, 1, 24, 5, 7), (3, 3, 8, 16, 7), (3, 3, 3, 8, 6),
           (2, 2, 6, 13, 4)]  # fmt: skip
DENSE = [(1, 64, 16), (1, 40, 4), (1, 128, 18), (3, 31, 13)]
DEPTHWISE = [(3, 3, 8), (3, 3, 5), (7, 7, 6)]
TARGETS_OF = ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
Sizes = tuple[int, ...]


def layer(sizes: Sizes, half: bool = True, groups: int = 1) -> Graph:
    """A convolution, or of three sizes a dense layer, whose weights fit float16 or do
    not; some are subnormal."""
    net, chance = GraphBuilder("half"), np.random.default_rng(sizes)
    shape: Sizes
    if len(sizes) == 3:
        (rows, inputs, outs), shape = sizes, (sizes[2], sizes[1])
        x = net.input("x", (rows, inputs), "float32")
    else:
        *window, outs, width = sizes
        shape = (outs, *window)
        x = net.input("x", (1, 5, width, window[2] * groups), "float32")
    w = net.constant("w", _weights(shape, chance, half))
    b = net.constant("b", chance.normal(size=outs).astype(np.float32))
    if len(sizes) == 3:
        net.output(net.op("dense", x, w, b), "y")
    else:
        edge = tuple(side // 2 for side in (*shape[1:3], *shape[1:3]))
        net.output(net.op("conv2d", x, w, b, pads=edge, groups=groups), "y")
    return net.build()


def depthwise(sizes: Sizes, half: bool = True) -> Graph:
    net, chance = GraphBuilder("half"), np.random.default_rng(sizes)
    x = net.input("x", (1, 5, 9, sizes[2]), "float32")
    w = net.constant("w", _weights(sizes, chance, half))
    edge = tuple(side // 2 for side in (*sizes[:2], *sizes[:2]))
    net.output(net.op("depthwise_conv2d", x, w, pads=edge), "y")
    return net.build()


def _weights(shape: Sizes, chance: np.random.Generator, half: bool) -> np.ndarray:
    w = chance.normal(size=shape).astype(np.float32)
    w.reshape(-1)[::97] *= np.float32(2**-16)
    return w.astype(np.float16).astype(np.float32) if half else w


def reals(made: Graph) -> np.ndarray:
    chance = np.random.default_rng(1)
    return chance.normal(size=made.tensor("x").shape).astype(np.float32)


def packed(made: Graph, target: str, optimise: str = "balanced") -> list[Candidate]:
    """The kernels whose weights are float16."""
    found = candidates(made.nodes[0], made, TARGETS[target], optimise)
    return [c for c in found if c.constants[0].role == WEIGHTS16]


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of few weights have such kernels, too."""
    monkeypatch.setattr(table, "_CODE", 0)


@SOME
@pytest.mark.parametrize("target", [*TARGETS_OF, "generic"])
@pytest.mark.usefixtures("any_size")
def test_by_llvm_and_c(target: str, some: Some, tmp_path: Path) -> None:
    jobs, optimise = [], "size" if target == "generic" else "balanced"
    graphs = [layer(sizes) for sizes in (*WINDOWS, *DENSE)]
    graphs += [depthwise(sizes) for sizes in DEPTHWISE]
    if TARGETS[target].float_calls:
        graphs.append(layer((3, 3, 4, 16, 6), groups=4))
    for made in graphs:
        x = reals(made)
        real: Any = interpret(made, {"x": x})["y"]
        as_float = candidates(made.nodes[0], made)[0]
        (wanted,) = run_llvm([Job(as_float, {"x": x}, {"y": real})])
        found: Any = wanted["y"].reshape(real.shape)
        np.testing.assert_allclose(found, real, 1e-4, 1e-4)
        offers = packed(made, target, optimise)
        if not offers:  # vectors have layers of a vector's channels
            assert target in ("cortex-m4", "cortex-m55")
            assert made.nodes[0].op == "depthwise_conv2d"
        jobs += [Job(one, {"x": x}, wanted) for one in offers]
    assert len(jobs) >= len(WINDOWS) + len(DENSE)
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


def _halves() -> Graph:
    """A layer whose outputs are numbers that float16 has, of every exponent, one of
    four at a time."""
    net = GraphBuilder("half")
    bits = np.arange(0, 1 << 16, 15, dtype=np.uint16)
    finite = bits[(bits & 0x7C00) != 0x7C00].view(np.float16)
    whole = finite[: len(finite) // 4 * 4].astype(np.float32)
    w = net.constant("w", whole.reshape(-1, 4))
    x = net.input("x", (1, 4), "float32")
    net.output(net.op("dense", x, w), "y")
    return net.build()


@pytest.mark.parametrize(
    ("target", "emit"),
    [("cortex-m0", "c"), ("rv32imc", "obj"),
     *((t, e) for t in ("cortex-m4", "cortex-m55") for e in ("c", "obj"))],
)  # fmt: skip
def test_every_exponent_on_a_core(target: str, emit: str) -> None:
    made = _halves()
    library = Model("half", made, "litert", "0" * 64).build(
        name="half", target=target, emit=emit
    )
    assert _roles(library) == [WEIGHTS16, "bias"]
    board = device(CORES[target], "gcc", core=target)
    for one in range(4):
        x = np.zeros((1, 4), np.float32)
        x[0, one] = 1
        found = run_recorded(board, library, {"x": x})["y"]
        # a sum that begins with 0 is not -0
        np.testing.assert_array_equal(found[0], made.constants["w"][:, one])


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_bits_of_float32_on_a_core(target: str) -> None:
    for made in (layer((3, 3, 16, 12, 5)), layer((2, 128, 18)), depthwise((3, 3, 64))):
        model = Model("half", made, "litert", "0" * 64)
        x = {"x": reals(made)}
        small, fast = (
            model.build(name="half", target=target, optimise=optimise)
            for optimise in ("size", "speed")
        )
        assert WEIGHTS16 in _roles(small) and WEIGHTS16 not in _roles(fast)
        board = device(CORES[target], "gcc", core=target)
        found, wanted = (run_recorded(board, one, x)["y"] for one in (small, fast))
        np.testing.assert_array_equal(found, wanted)


def _roles(library: Library) -> list[str]:
    return [p.role for s in library.plan.steps for p in s.candidate.constants]


@pytest.mark.parametrize("target", TARGETS_OF)
def test_a_weight_has_two_bytes(target: str) -> None:
    for sizes, count in (((3, 3, 16, 12, 5), 1728), ((1, 128, 16), 2048)):
        for one in packed(layer(sizes), target):
            assert one.constants[0].array.nbytes == 2 * count


@pytest.mark.parametrize("target", TARGETS_OF)
def test_where_they_are_float32(target: str) -> None:
    """Where one is no float16, little flash is saved, or speed is what is asked."""
    assert packed(layer((1, 128, 16)), target)
    assert not packed(layer((1, 128, 16), half=False), target)
    for wide in (70000.0, 1 + 2.0**-11, 2.0**-25, np.nan):
        made = layer((1, 128, 16))
        made.constants["w"][-1, -1] = wide
        assert not packed(made, target)
    made = layer((1, 128, 16))
    made.constants["w"][-1, -1] = np.inf
    assert packed(made, target)
    assert not packed(layer((1, 20, 12)), target)
    assert not packed(layer((1, 128, 16)), target, "speed")


def test_one_core_in_general_has_them_where_flash_is_short() -> None:
    made = layer((1, 128, 16))
    for target in ("generic", "host"):
        assert packed(made, target, "size") and not packed(made, target)


def test_words_of_two() -> None:
    words = two_in_a_word(np.asarray([1, -2, 2.0**-24, np.inf], np.float32))
    assert words.view(np.uint32).tolist() == [0xC0003C00, 0x7C000001]


@pytest.mark.parametrize(
    ("target", "most"), [("cortex-m3", 1.13), ("cortex-m4", 1.08), ("cortex-m55", 1.0)]
)
def test_instructions_beside_float32(target: str, most: float) -> None:
    board = device(CORES[target], "gcc", core=target)
    for sizes, limit in (((3, 3, 16, 16, 8), most), ((1, 256, 32), max(most, 1.17))):
        counts = [
            bench_on_board(board, Model("half", made, "litert", "0" * 64).build(
                name="half", target=target
            )).instructions
            for made in (layer(sizes), layer(sizes, half=False))
        ]  # fmt: skip
        assert counts[0] <= limit * counts[1], (sizes, counts)
