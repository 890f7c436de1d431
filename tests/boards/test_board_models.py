"""The MLPerf Tiny networks on every core: the same bits as this machine, which are
LiteRT's; and what the small boards say of networks that are too large for them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import firmware_of, open_device
from pybuild.errors import LimitError
from pybuild.plan.regions.regions import largest
from tests.bench import board_costs
from tests.bench.costs import built
from tests.boards.devices import CORES, device, library
from tests.conftest import model_path
from tests.graphs.real_models import NETWORKS

# cores whose code is another one's of CORES: digits shows that they run it, as
# tests/boards/test_on_boards.py has it
ALIKE = ("cortex-m7", "cortex-m33", "cortex-m33-nodsp")
# kws goes to most of the others, other networks to some, and to each core one
MOST = tuple(name for name in CORES if name != "xtensa-lx106")
LARGE = {
    "vww": ("cortex-m55", "cortex-m0"),
    "ic": ("cortex-m4", "rv32imc"),
    "ad": ("cortex-m3", "xtensa-lx106"),
}
PAIRS = [
    pytest.param(network, core, marks=pytest.mark.sweep)
    if core in ALIKE or core not in LARGE.get(network, MOST)
    else (network, core)
    for network in NETWORKS
    for core in CORES
]
CHAINS = ["gcc", pytest.param("zig", marks=pytest.mark.sweep)]


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(("network", "core"), PAIRS)
def test_bit_equal(network: str, core: str, chain: str) -> None:
    path = model_path(f"{network}_int8.tflite")
    board = device(CORES[core], chain, "qemu", core)
    done = check_on_board(board, library(path, board), path, count=2)
    (tally,) = done.result.backends.values()
    assert done.result.ok and tally.unequal == 0 and tally.elements > 0


@pytest.mark.sweep
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0", "rv32imc"])
@pytest.mark.parametrize("network", NETWORKS)
def test_both_simulators_count_alike(network: str, core: str) -> None:
    path = model_path(f"{network}_int8.tflite")
    seen = []
    for simulator in ("qemu", "unicorn"):
        board = device(CORES[core], "gcc", simulator, core)
        seen.append(bench_on_board(board, library(path, board)))
    assert seen[0].layers == seen[1].layers and seen[0].ram == seen[1].ram
    assert seen[0].ram.stack <= seen[0].ram.stack_bound


def test_layers_alike_cost_alike() -> None:
    """Four pairs of layers of kws share two kernels; each is counted by itself."""
    path = model_path("kws_int8.tflite")
    board = device("mps2-an386")
    result = bench_on_board(board, library(path, board))
    depthwise = [r for r in result.layers if r.op == "depthwise_conv2d"]
    pointwise = [r for r in result.layers if r.op == "conv2d"][1:]
    assert len(depthwise) == len(pointwise) == 4
    assert len({row.instructions for row in depthwise}) == 1
    assert len({row.instructions for row in pointwise}) == 1
    assert sum(row.instructions for row in result.layers) == result.instructions


# the back end that has what was asked of a Cortex-M4
BEST = {"kws": "LLVM", "vww": "LLVM", "ic": "C, zig", "ad": "LLVM"}


@pytest.mark.parametrize(
    "network",
    [n if n == "ad" else pytest.param(n, marks=pytest.mark.sweep) for n in BEST],
)
def test_instructions_and_code_are_what_was_asked(network: str) -> None:
    chain, emit = board_costs.BACKENDS[BEST[network]]
    board = device("mps2-an386", chain)
    made = built(model_path(f"{network}_int8.tflite"), target="cortex-m4", emit=emit)
    result = bench_on_board(board, made)
    most, _ = board_costs.INSTRUCTIONS["cortex-m4"]
    assert result.instructions <= most[network] * 1e6
    flash = result.flash
    code = flash.runtime + flash.kernels + flash.tables
    assert code <= board_costs.CODE[network]


# bytes of runtime, kernels and tables; instructions, times those of balanced
SMALL = {
    ("ad", "whole", "gcc"): (4_600, 1.4),
    ("kws", "whole", "gcc"): (5_100, 1.5),
    ("ic", "whole", "gcc"): (5_400, 1.5),
    ("vww", "whole", "gcc"): (5_950, 1.5),
    ("vww", "whole", "zig"): (6_144, 1.5),
    ("kws", "rows", "gcc"): (5_850, 1.5),
    ("kws", "rows", "zig"): (5_850, 1.5),
    ("ic", "rows", "gcc"): (6_000, 1.5),
    ("ic", "rows", "zig"): (6_000, 1.5),
    ("vww", "rows", "gcc"): (6_700, 1.5),
}


@pytest.mark.parametrize(
    ("network", "plan", "chain"),
    [n if "ad" in n else pytest.param(*n, marks=pytest.mark.sweep) for n in SMALL],
)
def test_optimise_size_keeps_to_its_limits(network: str, plan: str, chain: str) -> None:
    model = pybuild.load(model_path(f"{network}_int8.tflite"))
    costs = {}
    for optimise in ("balanced", "size"):
        board = open_device("mps2-an386", chain, "auto", "cortex-m4", optimise)
        made = model.build(target="cortex-m4", optimise=optimise, plan=plan)
        costs[optimise] = bench_on_board(board, made)
    most, ratio = SMALL[network, plan, chain]
    flash = costs["size"].flash
    assert flash.runtime + flash.kernels + flash.tables <= most
    assert costs["size"].instructions <= ratio * costs["balanced"].instructions


def refused(network: str) -> str:
    """What building it for a microbit says, with N for the bytes that are missing."""
    path = model_path(f"{network}_int8.tflite")
    board = device("microbit")
    with pytest.raises(LimitError) as caught:
        firmware_of(board, library(path, board))
    assert caught.value.exit_code == 3
    return re.sub(r"needs \d+ bytes", "needs N bytes", str(caught.value))


def test_too_large_for_the_ram_of_a_microbit() -> None:
    known = library(model_path("vww_int8.tflite"), device("microbit"))
    peak = largest(known.plan.peak, known.plan.graph.shown)
    text = re.sub(r"beside it \d+ of stack, \d+", "beside it N of stack, N",
                  refused("vww"))  # fmt: skip
    assert text == (
        f"vww_int8.tflite: needs N bytes more RAM than microbit has, 16384; "
        f"alive at the peak: {peak} bytes; the arena has {known.plan.arena_bytes} "
        f"bytes, of which the smallest plan needs {known.least_arena()}; beside it "
        f"N of stack, N of data, 48 of them the instance. "
        f"Hint: it fits with --push input_1_int8"
    )
    assert len(known.plan.peak) >= 2 and "/" not in peak


def test_kws_leaves_half_of_a_microbit_free() -> None:
    """Of 16 KB, everything included: arena, instance, data, the whole stack."""
    path, board = model_path("kws_int8.tflite"), device("microbit")
    small = pybuild.load(path).build(target=board.core.target, ram_limit=8000)
    assert check_on_board(board, small, path, count=1).result.ok
    ram = bench_on_board(board, small).ram
    assert ram.arena + ram.instance + ram.data + ram.program < 16 * 1024 / 2


def test_sums_as_ends_of_layers_are_equal_on_a_core() -> None:
    path, board = model_path("ic_int8.tflite"), device("mps2-an386")
    made = pybuild.load(path).build(target="cortex-m4", plan="whole")
    assert sum(len(step.node.of) == 2 for step in made.plan.steps) == 3
    assert check_on_board(board, made, path, count=1).result.ok


def test_ad_does_not_fit_the_flash_of_a_microbit() -> None:
    assert refused("ad") == (
        "ad_int8.tflite: needs N bytes more FLASH than microbit has, 262144; "
        "largest weights: 'dense_9_matmul' 81920, "
        "'dense_matmul' 81920, 'dense_8_matmul' 16384 bytes. "
        "Hint: fewer or smaller layers, or another board"
    )


def test_what_is_missing_is_exact() -> None:
    """With as much RAM as the message asks for, and no less, the program is linked."""
    path = model_path("vww_int8.tflite")
    board = device("microbit")
    known = library(path, board)
    with pytest.raises(LimitError) as caught:
        firmware_of(board, known)
    found = re.search(r"needs (\d+) bytes more RAM", str(caught.value))
    assert found is not None
    ram = board.board.ram
    for less in (0, 8):
        grown = replace(ram, size=ram.size + int(found[1]) - less)
        larger = replace(board, board=replace(board.board, ram=grown))
        if not less:
            firmware_of(larger, known)
            continue
        with pytest.raises(LimitError):
            firmware_of(larger, known)
