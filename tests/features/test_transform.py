"""The Fourier transform of features: the bits of its numpy meaning on every back end,
near float64, and no more instructions than CMSIS-DSP's.
"""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from tests.bench.transform_costs import BOARD, TARGET, error, instructions, net
from tests.toolchains import require

# of arm_rfft_q15, CMSIS-DSP 1.10.3 by gcc -O3 in the same simulator
CMSIS = 17_784


def transform(length: int, given: int, rows: int = 1) -> Graph:
    b = pybuild.GraphBuilder("transform")
    x = b.input("x", (rows, given), "int16")
    y = b.op("rfft", x, length=length, inverse=False, halving=True)
    b.output(y, "y")
    return b.build()


def numbers(shape: tuple[int, ...]) -> list[Array]:
    """Any, and those that overflow first."""
    rng = np.random.default_rng(shape[1])
    made = [rng.integers(-32768, 32768, shape) for _ in range(3)]
    ends = np.resize(
        [32767, 32767, -32768, 32767, -32768, -32768, 32767, -32768], shape
    )
    made += [np.full(shape, n) for n in (-32768, 32767, 1)] + [ends]
    made.append(np.where(made[0] > 0, 32767, -32768))
    at = np.arange(shape[1])
    for turns, phase in ((3 / 128, 0.7), (73 / 512, 0.3)):  # whose sums are held
        wave = np.cos(2 * np.pi * turns * at + phase)
        made.append(np.resize(np.where(wave > 0, 32767, -32768), shape))
    return [one.astype(np.int16) for one in made]


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
@pytest.mark.parametrize(
    ("length", "given"),
    [(8, 8), (16, 11), (32, 32), (64, 50), (128, 128), (512, 401), (1024, 1000)],
)
def test_bits_of_numpy(length: int, given: int, target: str) -> None:
    """Words of two numbers, and parts, by LLVM and as C."""
    rows = 2 if length == 64 else 1
    graph = transform(length, given, rows)
    library = pybuild.build(graph, name="transform", target=target)
    for backend in ("llvm", "c") if length == 64 else ("llvm",):
        compiled = library.host(backend)
        for x in numbers((rows, given)):
            compiled.run(x=x)
            wanted = interpret(graph, {"x": x})["y"]
            np.testing.assert_array_equal(compiled.get_output("y"), wanted)


def test_bits_of_numpy_on_a_board() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    graph = transform(512, 480)
    given = [{"x": x} for x in numbers((1, 480))]
    device = open_device(BOARD, "auto", "auto", TARGET)
    library = pybuild.build(graph, name="transform", target=TARGET)
    made = run_program(device, program_of(device, library), given)
    for one, found in zip(given, made, strict=True):
        np.testing.assert_array_equal(found["y"], interpret(graph, one)["y"])


def test_errors_are_less_than_those_of_kissfft() -> None:
    assert error(True) < 0.8 < 1.0 < error(False)


def test_no_more_instructions_than_cmsis_dsp() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    assert 8_000 < instructions(True) < 0.65 * CMSIS
    assert net(True).nodes[0].attrs["halving"]


@pytest.mark.parametrize(
    ("dtype", "length", "inverse"),
    [("int32", 64, False), ("int16", 4, False), ("int16", 64, True)],
)
def test_what_cannot_halve_is_told(dtype: str, length: int, inverse: bool) -> None:
    b = pybuild.GraphBuilder("transform")
    x = b.input("x", (length + 2 * inverse,), dtype)
    with pytest.raises(BuildError, match="cannot halve"):
        b.op("rfft", x, length=length, inverse=inverse, halving=True, dtype=dtype)
