"""pybuild.features.micro_frontend: every integer of TensorFlow's microfrontend, as
pymicro_features has it, in numpy, C, LLVM and on an emulated Cortex-M4.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
import zlib
from functools import cache
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.features import micro_frontend
from pybuild.front.file import KINDS
from tests.boards.devices import CORES
from tests.toolchains import require, require_module

RUNS = 120
# options -> a mark of the rows, which are those of the microfrontend's C by the bit
MARKS: tuple[tuple[dict[str, Any], int], ...] = (
    ({}, 2452663901),
    ({"hop": 320}, 4004003865),
    (
        {"rate": 8000, "window": 256, "hop": 128, "bands": 20, "high": 3700.0},
        4037095088,
    ),
    (
        {"window": 400, "bands": 32, "low": 60.0, "high": 3800.0, "gain": False},
        1485353324,
    ),
    ({"window": 480, "hop": 480, "bands": 64, "low": 50.0, "high": 7900.0}, 1958894004),
)


@cache
def recording() -> Array:
    """Silence, noise that grows, a tone that comes and goes; the loudest there is."""
    n = np.arange(160 * RUNS)
    noise = np.random.default_rng(5).normal(0, 1, len(n))
    made = noise * 10 ** (1 + 2 * np.abs(np.sin(n / 9000))) * (n > 1000)
    made += 6000 * np.sin(n * 0.3) * (n % 8000 < 4000)
    made[9000:9100] = 40000
    return made.clip(-32768, 32767).astype(np.int16)


def test_rows_are_those_of_pymicro_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the logarithm of this machine's C library, of which its bands are made."""
    require_module("pymicro_features")
    import pymicro_features

    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.log1pf.restype, library.log1pf.argtypes = ctypes.c_float, [ctypes.c_float]
    ours = sys.modules["pybuild.features.micro_frontend"]
    monkeypatch.setattr(
        ours, "_log1p", lambda x: np.array([library.log1pf(v) for v in x], np.float32)
    )
    theirs, rows, at = pymicro_features.MicroFrontend(), [], 0
    data = recording().tobytes()
    while at < len(data):
        made = theirs.process_samples(data[at : at + 320])
        at += 2 * made.samples_read
        rows += [made.features] if made.features else []
    whole = np.rint(np.asarray(rows) * 25.6).astype(np.int64)
    found, full = micro_frontend()(recording()), RUNS - len(rows)
    assert (found[:full] == -128).all() and full == 2
    wanted = np.clip((whole * 256 + 333) // 666 - 128, -128, 127)
    assert len(np.unique(wanted)) > 100
    np.testing.assert_array_equal(found[full:], wanted)


@pytest.mark.parametrize(("options", "mark"), MARKS)
def test_rows_of_every_form(options: dict[str, Any], mark: int) -> None:
    features = micro_frontend(**options)
    rows = features(recording())
    assert zlib.crc32(rows.tobytes()) == mark
    for backend in ("c", "llvm"):
        net = pybuild.build(features.graph).host(backend)
        for at, row in enumerate(rows):
            part = recording()[at * features.hop : (at + 1) * features.hop]
            net.run(samples=part)
            np.testing.assert_array_equal(net.get_output("features"), row)


def test_rows_on_a_cortex_m4() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    features, core = micro_frontend(), "cortex-m4"
    library = pybuild.build(features.graph, target=core)
    device = open_device(CORES[core], "gcc", "qemu", core)
    rows = features(recording())[:12]
    samples = [
        {"samples": recording()[at * 160 : (at + 1) * 160]} for at in range(len(rows))
    ]
    made = run_program(device, program_of(device, library), samples)
    for found, row in zip(made, rows, strict=True):
        np.testing.assert_array_equal(found["features"], row)


def test_numbers_that_make_no_sense_are_refused_at_once() -> None:
    with pytest.raises(BuildError) as error:
        micro_frontend(window=8, hop=9, high=9000.0)
    for what in ("window is 8", "hop is 9", "to 9000.0 Hz"):
        assert what in str(error.value)


def test_a_net_that_was_trained_on_them_takes_them_as_they_are() -> None:
    """Its input is from 0 to 26, in 255 steps; rows of a file's `kind` too."""
    b, rng = pybuild.GraphBuilder("spotter"), np.random.default_rng(2)
    x = b.input("rows", (1, 3, 40), "int8", (float(np.float32(26 / 255)), -128))
    y = b.op("reshape", x, shape=(1, 120))
    w = b.constant("w", rng.integers(-99, 99, (4, 120)).astype(np.int8), (0.002, 0))
    b.output(b.op("dense", y, w, dtype="int8", quant=(0.2, 0)), "scores")
    net, features = b.build(), micro_frontend()
    chain, rows = pybuild.chain(features, net), features(recording())
    told = chain(recording())["scores"]
    spotter = pybuild.build(net).host("llvm")
    for at in (2, 3, 50, RUNS - 1):
        spotter.run(rows=rows[None, at - 2 : at + 1])
        np.testing.assert_array_equal(told[at], spotter.get_output("scores"))
    assert KINDS["micro_frontend"] is micro_frontend
