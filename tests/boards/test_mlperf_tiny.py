"""examples/mlperf_tiny: its firmware behind a pty and in QEMU, its runner before it."""

from __future__ import annotations

import importlib.util
import os
import pty
import subprocess
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pybuild
from pybuild.boards.firmware.build import (
    Group,
    board_flags,
    build,
    model_groups,
    sorted_files,
    texts,
)
from pybuild.boards.simulators.qemu import machine_options
from pybuild.install import crt_include, crt_sources
from pybuild.targets.board import load_board
from pybuild.targets.toolchain import choose_toolchain
from tests.boards.devices import DIGITS, FLOATS
from tests.conftest import model_path
from tests.graphs.networks import larger_resnet
from tests.toolchains import ROOT, STRICT, require, run

HERE = ROOT / "examples" / "mlperf_tiny"


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mlperf_runner", HERE / "runner.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


runner = _runner()


def _built(model: Path | pybuild.Model, folder: Path, *defines: str) -> Path:
    """The firmware as a program of this machine."""
    loaded = pybuild.load(model) if isinstance(model, Path) else model
    for name, text in loaded.build(name="net").sources().items():
        (folder / name).write_text(str(text))
    program = folder / "mlperf"
    sources = [
        HERE / "main.c",
        ROOT / "tests" / "boards" / "mlperf_port.c",
        *folder.glob("net*.c"),
    ]
    run([require("gcc"), *STRICT, "-O2", "-DBOARD_HZ=1000000u", *defines, f"-I{folder}",
         f"-I{crt_include()}", *sources, *crt_sources(), "-o", program])  # fmt: skip
    return program


@contextmanager
def behind_a_pty(program: Path) -> Iterator[object]:
    """Its line at the master's end of a pty."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    with subprocess.Popen([str(program)], stdin=slave, stdout=slave) as process:
        os.close(slave)
        try:
            yield runner.Files(master, master)
        finally:
            process.kill()
            os.close(master)


def test_accuracy_and_performance_behind_a_pty(tmp_path: Path) -> None:
    model = pybuild.load(DIGITS)
    samples = runner.made_data(model, 4, "raw")
    labels = runner.expected(model, samples, "raw")
    with behind_a_pty(_built(DIGITS, tmp_path)) as line:
        dut = runner.Dut(line, 20)
        assert dut.lines() == ["m-init-done", "m-ready"]
        assert dut.about()[0] == "crt"
        assert runner.accuracy(dut, samples, labels) == 1.0
        wrong = [(label + 1) % 10 for label in labels]
        assert runner.accuracy(dut, samples, wrong) == 0.0
        count, rate = runner.performance(dut, samples[:2], 0.02)
        assert count >= 10 and rate > 10
        dut.load(samples[0])
        assert dut.command("db print")[0].startswith(f"m-buffer-{samples[0][0]:02x}-")
        seconds, found = dut.infer(3, 2)
        assert seconds >= 0 and len(found) == 10


def test_the_larger_net_of_images(tmp_path: Path) -> None:
    """IC02, the net of images of v1.4: a ResNet of six blocks, told by its name."""
    net = larger_resnet()
    weights = sum(v.size for name, v in net.constants.items() if name[-2:] == "/w")
    assert 700_000 < weights < 800_000
    model = net.model()
    samples = runner.made_data(model, 2, "pixels")
    labels = runner.expected(model, samples, "pixels")
    defines = ("-DNET_SAMPLE=SAMPLE_PIXELS", '-DNET_VERSION="ic02"')
    with behind_a_pty(_built(model, tmp_path, *defines)) as line:
        dut = runner.Dut(line, 60)
        dut.lines()
        assert dut.about()[2] == "ic02"
        assert runner.accuracy(dut, samples, labels) == 1.0
        wrong = [(label + 1) % 10 for label in labels]
        assert runner.accuracy(dut, samples[:1], wrong[:1]) == 0.0


def test_results_are_the_real_numbers(tmp_path: Path) -> None:
    """Of a float net that takes floats, to three digits; of one that takes pixels."""
    model = pybuild.load(FLOATS)
    (sample,) = runner.made_data(model, 1, "floats")
    net = model.build().host()
    tensor = model.graph.tensor(model.graph.inputs[0])
    value = np.frombuffer(sample, "<f4").reshape(tensor.shape)
    (wanted,) = net(**{tensor.name: value}).values()
    with behind_a_pty(_built(FLOATS, tmp_path, "-DNET_SAMPLE=2")) as line:
        dut = runner.Dut(line, 20)
        dut.lines()
        dut.load(sample)
        _, found = dut.infer(1)
    np.testing.assert_allclose(found, wanted.ravel(), atol=6e-4)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    said = {
        "jump": r"e-\[Unknown command: jump\]",
        "db": r"e-\[Command 'db' requires a subcommand\]",
        "db load": r"requires the # of bytes",
        "db load x": r"must be >0 bytes",
        "db load 99999": r"size 99999 exceeds maximum of 32768",
        "db 00": r"More bytes than 'db load' said",
        "infer 0": r"iterations must be >0",
        "infer 1 x": r"warmup must be >=0",
        "infer 1 0": r"The sample is not loaded",
    }
    with behind_a_pty(_built(DIGITS, tmp_path)) as line:
        dut = runner.Dut(line, 20)
        dut.lines()
        for command, message in said.items():
            with pytest.raises(runner.Wrong, match=message):
                dut.command(command)
        dut.command("db load 2")
        with pytest.raises(runner.Wrong, match="number of hex digits"):
            dut.command("db 0")
        assert "m-ready" in dut.command("help")
        with pytest.raises(runner.Wrong, match=r"Unknown command: x{160}\]"):
            dut.command("x" * 500)
        assert dut.command("name")[0] == "m-name-dut-[crt]"


def _in_qemu(model: pybuild.Model, sample: str, *defines: str) -> None:
    """Over the simulated UART of a Cortex-M4: accuracy, performance."""
    board = load_board("mps2-an386")
    qemu = require("qemu-system-arm")
    toolchain = choose_toolchain("gcc", board.core)
    library = model.build(name="net", target="cortex-m4")
    sources, headers, objects = sorted_files(library.sources())
    main = texts([HERE / "main.c"])
    flags = (*board_flags(board), *defines)
    groups = [*model_groups(sources), Group("main", main, flags)]
    firmware = build(library, board, toolchain, board.core, "balanced",
                     groups, headers, objects)  # fmt: skip
    command = [qemu, *machine_options(board), "-kernel", str(firmware.path)]
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert made.stdin is not None and made.stdout is not None
    line = runner.Files(made.stdout.fileno(), made.stdin.fileno(), made)
    try:
        dut = runner.Dut(line, 60)
        dut.lines()
        samples = runner.made_data(model, 2, sample)
        labels = runner.expected(model, samples, sample)
        assert runner.accuracy(dut, samples, labels) == 1.0
        _, rate = runner.performance(dut, samples[:1], 0.01)
        assert rate > 0
    finally:
        line.close()


def test_in_qemu() -> None:
    _in_qemu(pybuild.load(DIGITS), "raw")


@pytest.mark.sweep
@pytest.mark.parametrize("net", ["ic_int8", "ic02", "vww_int8", "ic_f32", "vww_f32"])
def test_pixels_in_qemu(net: str) -> None:
    """MLPerf Tiny's nets of images; ten and more inferences each."""
    made = larger_resnet().model() if net == "ic02" else None
    model = made or pybuild.load(model_path(f"{net}.tflite"))
    _in_qemu(model, "pixels", "-DNET_SAMPLE=SAMPLE_PIXELS")
