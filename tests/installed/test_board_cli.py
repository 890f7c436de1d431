"""The command line on boards: what people see, what scripts read, what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.boards.device import choose_simulator, open_device
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.targets import toolchain
from pybuild.targets.board import load_board
from pybuild.targets.core import CORES
from pybuild.targets.names import core_named
from pybuild.targets.target import TARGETS
from tests.boards.devices import DIGITS, device
from tests.toolchains import require_module


def said(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def test_boards_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {one["name"]: one for one in said(capsys, "boards")["boards"]}
    assert len(facts) == 34
    microbit = facts["microbit"]
    assert (microbit["cpu"], microbit["ram"]) == ("cortex-m0", 16384)
    assert microbit["flash"] == 262144
    assert main(["boards"]) == 0
    shown = capsys.readouterr().out
    assert "stm32vldiscover" in shown and "missing" in shown


def test_boards_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with nothing: no compiler, no QEMU, no package."""
    monkeypatch.setattr("shutil.which", lambda name, path=None: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    toolchain.find_toolchain.cache_clear()
    try:
        facts = {one["name"]: one for one in said(capsys, "boards")["boards"]}
        with pytest.raises(BuildError) as compiler:
            toolchain.choose_toolchain("auto", CORES["cortex-m4"])
        with pytest.raises(BuildError) as gcc:
            toolchain.choose_toolchain("gcc", CORES["rv32imc"])
        with pytest.raises(BuildError) as simulator:
            choose_simulator(load_board("mps2-an386"))
    finally:
        toolchain.find_toolchain.cache_clear()
    pip, unicorn = "pip install ziglang", "pip install unicorn pyelftools"
    assert facts["mps3-an547"]["missing"] == [
        f"a compiler: {pip} or apt-get install gcc-arm-none-eabi",
        "a simulator: apt-get install qemu-system-arm",
    ]
    assert facts["sifive-e"]["missing"] == [
        f"a compiler: {pip} or apt-get install gcc-riscv64-unknown-elf",
        f"a simulator: apt-get install qemu-system-misc or {unicorn}",
    ]
    assert str(compiler.value) == (
        "cortex-m4: there is no compiler for this core on this machine. "
        f"Hint: {pip} or apt-get install gcc-arm-none-eabi"
    )
    assert str(gcc.value) == (
        "--toolchain: there is no gcc for rv32imc on this machine. "
        "Hint: apt-get install gcc-riscv64-unknown-elf"
    )
    assert str(simulator.value) == (
        "--on: there is no simulator of mps2-an386 on this machine. "
        f"Hint: apt-get install qemu-system-arm or {unicorn}"
    )


TWO_CORES = ["--device", "1=cortex-m33", "--place", "conv2d=1"]


@pytest.fixture
def without_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has Unicorn and a compiler; what is built fails the test."""
    require_module("unicorn")
    for module in ("device", "available"):
        monkeypatch.setattr(f"pybuild.boards.{module}.find_qemu", lambda board: None)
    monkeypatch.setattr("pybuild.load", lambda *a, **k: pytest.fail("it was built"))


@pytest.mark.parametrize("verb", ["check", "bench", "run"])
def test_what_two_cores_lack_is_said_before_anything_is_built(
    verb: str, capsys: pytest.CaptureFixture[str], without_qemu: None
) -> None:
    words = [verb, str(DIGITS), "--on", "mps2-an521", *TWO_CORES]
    assert main(words) != 0
    assert capsys.readouterr().err == (
        "--on: there is no simulator of both cores of mps2-an521 on this machine. "
        "Hint: apt-get install qemu-system-arm\n"
    )


def test_boards_says_what_two_cores_lack(
    capsys: pytest.CaptureFixture[str], without_qemu: None
) -> None:
    facts = {one["name"]: one for one in said(capsys, "boards")["boards"]}
    assert facts["mps2-an521"]["second"] == "cortex-m33"
    assert facts["mps2-an521"]["missing"] == [
        "a simulator of both cores: apt-get install qemu-system-arm"
    ]
    assert facts["mps2-an505"]["second"] is None
    assert facts["mps2-an505"]["missing"] == []


def test_one_of_two_cores_needs_no_qemu(without_qemu: None) -> None:
    assert choose_simulator(load_board("mps2-an521")).name.startswith("Unicorn")


def test_unicorn_has_no_m55() -> None:
    with pytest.raises(BuildError) as caught:
        choose_simulator(load_board("mps3-an547"), "unicorn")
    assert str(caught.value) == (
        "--simulator: Unicorn has no cortex-m55. Hint: --simulator qemu"
    )


def test_every_core_has_kernels() -> None:
    assert {core.target for core in CORES.values()} <= set(TARGETS)
    for core in CORES.values():
        assert set(core.runs) <= set(CORES)


def test_a_core_that_the_board_does_not_run() -> None:
    device("microbit")
    board = open_device("microbit", core="cortex-m4")
    from pybuild.boards.device import firmware_of
    from tests.boards.devices import library

    with pytest.raises(BuildError) as caught:
        firmware_of(board, library(DIGITS, board))
    assert str(caught.value) == (
        "--target: microbit has a cortex-m0, which runs no cortex-m4 code. "
        "Hint: one of cortex-m0"
    )
    with pytest.raises(BuildError, match="'z80' is not a core"):
        core_named("z80")


def test_bench_for_scripts_and_people(capsys: pytest.CaptureFixture[str]) -> None:
    device("mps2-an386")
    words = ("bench", DIGITS, "--on", "mps2-an386", "--toolchain", "gcc")
    seen = said(capsys, *words)
    assert {"arena", "instance", "stack", "data"} <= set(seen["ram"])
    assert {"runtime", "kernels", "tables", "weights"} <= set(seen["flash"])
    assert all(
        set(row) == {"name", "short", "op", "macs", "instructions", "cycles"}
        for row in seen["layers"]
    )
    assert seen["layers"][-1]["name"] == "runtime"
    assert sum(row["instructions"] for row in seen["layers"]) == seen["instructions"]
    assert seen["toolchain"]["name"] == "arm-none-eabi-gcc"
    assert seen["toolchain"]["version"][0].isdigit()
    assert main(list(map(str, words))) == 0
    shown = capsys.readouterr().out
    assert f"total  {seen['instructions']:,} instructions" in shown
    assert "by     arm-none-eabi-gcc" in shown


def test_another_core_s_code(capsys: pytest.CaptureFixture[str]) -> None:
    device("mps2-an385")
    words = ("bench", DIGITS, "--on", "mps2-an385", "--toolchain", "gcc")
    own = said(capsys, *words)
    small = said(capsys, *words, "--target", "cortex-m0")
    assert (own["cpu"], small["cpu"]) == ("cortex-m3", "cortex-m0")
    assert small["instructions"] > own["instructions"]


def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    device("mps2-an386")
    seen = said(capsys, "check", DIGITS, "--on", "mps2-an386", "--samples", 2)
    assert seen["ok"] and seen["backends"]["mps2-an386"]["mismatches"] == 0
    assert seen["board"] == "mps2-an386" and seen["reference"].startswith(
        "this machine"
    )


def test_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    device("mps2-an386")
    given, made = tmp_path / "x.npz", tmp_path / "y.npz"
    image = np.arange(64, dtype=np.int8).reshape(1, 8, 8, 1)
    np.savez(given, image=image)
    words = ("run", DIGITS, "--data", given)
    here = said(capsys, *words)
    there = said(capsys, *words, "--on", "mps2-an386", "-o", made)
    assert here["board"] == "host" and there["board"] == "mps2-an386"
    assert here["outputs"] == there["outputs"]
    with np.load(made) as file:
        values = file["scores"].reshape(-1).tolist()
    assert values == there["outputs"]["scores"]["values"]
    assert main(["run", str(DIGITS), "--input", "keep"]) == 0
    assert "\nscores: int8[1, 10] " in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: object, code: int = 2) -> str:
    assert main(list(map(str, words))) == code
    return capsys.readouterr().err.strip()


def test_inputs_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wrong, other, none = (tmp_path / f"{name}.npz" for name in "abc")
    np.savez(wrong, image=np.zeros((1, 8, 8), np.int8))
    np.savez(other, picture=np.zeros((1, 8, 8, 1), np.int8))
    none.write_bytes(b"\xff\xfenothing")
    words = ("run", DIGITS, "--data")
    want = "Hint: give [N, 8, 8, 1] values"
    assert refused(capsys, *words, wrong) == f"a.npz: 'image' is int8[1, 8, 8]. {want}"
    renamed = "Hint: rename its array 'picture' to 'image'"
    assert refused(capsys, *words, other) == f"b.npz: has no array 'image'. {renamed}"
    assert refused(capsys, *words, none).startswith("c.npz: holds no parameters")
    assert "cannot be read" in refused(capsys, *words, tmp_path / "d.npz")


def test_out_needs_a_board(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = refused(capsys, "boards", "-o", tmp_path / "out", code=64)
    assert text == "--out: needs a board. Hint: crt boards BOARD -o DIR"


def test_machine_code_is_read_as_objdump_reads_it() -> None:
    """Calls are found where the tool chain's own disassembler finds them."""
    from pybuild.boards.device import firmware_of
    from pybuild.boards.firmware.machine_code import flows
    from pybuild.boards.firmware.stack import code_pieces, data_marks
    from tests.boards.devices import library

    for name, tool, calls in (
        ("mps2-an386", "arm-none-eabi-objdump", ("bl",)),
        ("microbit", "arm-none-eabi-objdump", ("bl",)),
        ("riscv32-virt", "riscv64-unknown-elf-objdump", ("jal",)),
    ):
        board = device(name)
        program = firmware_of(board, library(DIGITS, board))
        command = [tool, "-d", str(program.path)]
        text = subprocess.run(command, capture_output=True, text=True).stdout
        lines = [line.split("\t") for line in text.splitlines() if "\t" in line]
        want = {
            int(words[3].split("@")[0].split("<")[0].split(",")[-1].split()[0], 16)
            for words in lines
            if len(words) > 3 and words[2].strip() in calls
        }
        have, pushed = set(), 0
        marks = data_marks(program.elf)
        for symbol in (s for s in program.elf.symbols if s.code):
            for at, piece in code_pieces(program.elf, symbol, marks):
                for flow in flows(board.core.arch, piece, at):
                    if flow.kind == "call":
                        have.add(flow.value)
                    pushed += flow.kind == "push"
        assert len(want) > 8 and want <= have and pushed > 10, name
