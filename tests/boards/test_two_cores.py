"""The second core of mps2-an521 as a device: the same bits, each core's instructions,
work at the same time, and a fault of the second core."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import BoardBench, bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import Device, firmware_of, run_samples
from pybuild.errors import BuildError
from pybuild.model import Library
from pybuild.verify.reference import reference
from pybuild.verify.samples import example_inputs
from tests.boards.devices import DIGITS, device
from tests.conftest import model_path
from tests.graphs.networks import Network

TWO = {0: "cortex-m3", 1: "cortex-m33"}
CONVOLUTIONS = {"conv2d": 1, "depthwise_conv2d": 1}


def split(path: Path, place: Mapping[str, int]) -> Library:
    return pybuild.load(path).build(target=TWO, place=dict(place))


def test_kernels_of_the_second_core_are_a_file_of_their_own() -> None:
    library = split(DIGITS, {"conv2d": 1})
    files = library.sources()
    (made,) = [name for name in files if "_device_" in name]
    assert made == "digits_int8_device_1.c"
    kernels = re.findall(r"^void (\w+)\(", files[made], re.M)
    assert len(kernels) == 2
    for kernel in kernels:
        assert kernel.startswith("digits_int8_conv2d")
        assert f"extern crt_kernel {kernel};" in files["digits_int8.c"]
        assert f"{kernel}(void" not in files["digits_int8.c"]


def test_what_both_run_is_there_once() -> None:
    """The same code on the same core: it stays with the first."""
    model = pybuild.load(DIGITS)
    library = model.build(target={0: "cortex-m33", 1: "cortex-m33"}, place={"*": 1})
    assert "digits_int8_device_1.c" in library.sources()
    net = Network("twice", (1, 4, 4, 4), "int8", 0)
    net.add("max_pool2d", "one", (1, 2, 2, 4), kernel=(2, 2), strides=(2, 2))
    net.last = net.input
    net.add("max_pool2d", "two", (1, 2, 2, 4), kernel=(2, 2), strides=(2, 2))
    both = net.model("one", "two").build(
        target={0: "cortex-m33", 1: "cortex-m33"}, place={"two": 1}
    )
    assert [name for name in both.sources() if "_device_" in name] == []


def test_a_build_on_one_device_takes_the_file_away(tmp_path: Path) -> None:
    model = pybuild.load(DIGITS)
    model.build(tmp_path, name="net", target=TWO, place={"conv2d": 1})
    assert (tmp_path / "net_device_1.c").is_file()
    model.build(tmp_path, name="net", target="cortex-m3")
    assert not (tmp_path / "net_device_1.c").exists()


ZIG = pytest.param("zig", marks=pytest.mark.sweep)


@pytest.mark.parametrize("chain", ["gcc", ZIG])
def test_the_same_bits_and_what_each_core_does(chain: str) -> None:
    board = device("mps2-an521", chain, "qemu")
    library = split(DIGITS, {"conv2d": 1})
    assert check_on_board(board, library, DIGITS, count=5).result.ok
    result = bench_on_board(board, library)
    assert sum(result.cores) == result.instructions
    assert sum(row.instructions for row in result.layers) == result.instructions
    spent = {row.name: row.instructions for row in result.layers}
    assert spent["conv"] + spent["pointwise"] < result.cores[1]
    assert spent["depthwise"] + spent["pool"] + spent["scores"] < result.cores[0]
    copies = [count for name, count in spent.items() if " to device " in name]
    assert len(copies) == 4 and min(copies) > 100  # the second core's, each counted
    # a chain: the first core has little to do while the second works
    assert 0.98 * result.instructions < result.wall <= result.instructions
    ram = result.ram
    assert 0 < ram.second <= ram.second_bound < 1024
    assert 0 < ram.stack <= ram.stack_bound
    assert ram.arena == sum(region.bytes for region in library.plan.regions)
    assert bench_on_board(board, library) == result


def test_cores_work_at_the_same_time() -> None:
    """Of two branches the second core computes one: the wall is the longer."""
    net = Network("branches", (1, 8, 8, 3), "int8", 0)
    left = net.conv("left", 4)
    net.last = net.input
    net.conv("right", 4)
    net.add("add", "sum", (1, 8, 8, 4), left)
    library = net.model().build(target=TWO, place={"left": 1})
    board = device("mps2-an521", "gcc", "qemu")
    assert check_on_board(board, library, "branches.test", count=3).result.ok
    result = bench_on_board(board, library)
    spent = {row.name: row.instructions for row in result.layers}
    assert spent["left"] > 10_000 and spent["right"] > 10_000
    saved = result.instructions - result.wall
    assert saved >= 0.95 * min(spent["left"], spent["right"])
    assert result.wall >= max(result.cores)


def test_more_jobs_than_the_queue_holds() -> None:
    net = Network("long", (1, 3, 3, 2), "int8", 0)
    for index in range(40):
        net.conv(f"layer{index}", 2)
    library = net.model().build(target=TWO, place={"*": 1, "layer39": 0})
    board = device("mps2-an521", "gcc", "qemu")
    assert check_on_board(board, library, "long.test", count=2).result.ok


@pytest.mark.parametrize("kernel", [0, -1], ids=["first", "last"])
def test_a_fault_of_the_second_core_ends_the_run(kernel: int) -> None:
    board = device("mps2-an521", "gcc", "qemu")
    library = split(DIGITS, {"conv2d": 1})
    sources = library.sources()
    text = sources["digits_int8_device_1.c"]
    start = [*re.finditer(r"^void digits_int8_conv2d[^;]*?\n\{\n", text, re.M)][kernel]
    udf = '    __asm__ volatile("udf #0");\n'
    spoilt = {**sources, "digits_int8_device_1.c":
              text[: start.end()] + udf + text[start.end() :]}  # fmt: skip
    inputs = example_inputs(library.plan.graph)
    with pytest.raises(BuildError, match=r"digits_int8 on mps2-an521: .*device"):
        run_samples(board, _Spoilt(library, spoilt), [inputs])  # type: ignore[arg-type]


class _Spoilt:
    """A build whose C files are others."""

    def __init__(self, real: Library, sources: dict[str, str]) -> None:
        self._real = real
        self.sources = lambda: sources

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


def test_only_what_the_second_core_runs_has_its_instructions() -> None:
    """SMLAD, which the first core has not."""
    board = device("mps2-an521", "gcc", "qemu")

    def multiplies(library: Library) -> int:
        elf = firmware_of(board, library).elf
        code = [elf.image(s.address)[: s.size] for s in elf.symbols if s.code]
        halves = (memoryview(c[: len(c) // 2 * 2]).cast("H") for c in code)
        return sum(half & 0xFFF0 == 0xFB20 for found in halves for half in found)

    assert multiplies(split(DIGITS, {"conv2d": 1})) >= 20
    assert multiplies(pybuild.load(DIGITS).build(target="cortex-m3")) == 0


def _kws(board: Device, place: Mapping[str, int]) -> BoardBench:
    path = model_path("kws_int8.tflite")
    model = pybuild.load(path)
    library = split(path, place) if place else model.build(target="cortex-m3")
    inputs = example_inputs(library.plan.graph)
    (found,) = run_samples(board, library, [inputs])
    known = reference("auto", path, library.plan.graph, "litert").run(inputs)
    for name, value in found.items():
        assert np.array_equal(value, known[name])
    return bench_on_board(board, library)


def test_keyword_spotting_on_two_cores() -> None:
    """LiteRT's bits; convolutions on the core with DSP instructions."""
    board = device("mps2-an521", "gcc", "qemu")
    alone, both = _kws(board, {}), _kws(board, CONVOLUTIONS)
    assert alone.cores == (alone.wall,) == (alone.instructions,)
    assert both.wall < 0.7 * alone.wall
    assert both.cores[0] < 0.02 * both.cores[1]
