"""Runs on two simulated cores, counted: from begin to end beside one core's build, the
same by both simulators; and what is said of boards that have no two."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.bench import BoardBench, bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import firmware_of, open_device
from pybuild.cli import main
from pybuild.errors import BuildError
from tests.boards.devices import DIGITS, built
from tests.cores.nets import small
from tests.toolchains import ROOT


def _digits(target: str) -> pybuild.Library:
    return pybuild.load(DIGITS).build(target=target, cores=2)


def _sums_up(result: BoardBench) -> None:
    assert len(result.cores) == 2 and sum(result.cores) == result.instructions
    assert sum(row.instructions for row in result.layers) == result.instructions
    # in no section both are the slower one, and not always the same
    assert max(result.cores) < result.wall < result.instructions
    assert result.share is not None and result.alone is not None
    assert result.share == result.wall / result.alone < 0.65
    assert 0 < result.ram.second <= result.ram.second_bound < 1024
    facts = result.to_json()
    assert (facts["alone"], facts["share"]) == (result.alone, result.share)


def test_two_cores_of_a_pico() -> None:
    device = open_device("pico", "gcc", cores=2)
    result = bench_on_board(device, _digits("cortex-m0"))
    _sums_up(result)
    compiled = _digits("cortex-m0").again(emit="obj")
    _sums_up(bench_on_board(device, compiled))
    assert check_on_board(device, compiled, DIGITS, count=2).result.ok
    one = bench_on_board(open_device("pico", "gcc"), built(DIGITS, "cortex-m0"))
    assert (one.share, one.alone) == (None, None)
    assert result.alone == one.instructions == one.wall


def test_qemu_and_unicorn_count_alike() -> None:
    """mps2-an521, whose both cores QEMU has: the second starts as the chip does."""
    library = _digits("cortex-m3")
    found = []
    for simulator in ("qemu", "unicorn"):
        device = open_device("mps2-an521", "gcc", simulator, cores=2)
        found.append(bench_on_board(device, library))
        _sums_up(found[-1])
        assert check_on_board(device, library, DIGITS, count=2).result.ok
    one, other = found
    assert one.device.simulator.name != other.device.simulator.name
    assert one.wall == other.wall and one.alone == other.alone


def test_a_board_of_ones_own_with_two_rv32(tmp_path: Path) -> None:
    """The chip of an ESP32-C3, if it had a second core: in Unicorn, and as two harts of
    QEMU's machine. Both count the same, by layer, too."""
    (tmp_path / "soc").mkdir()
    chip = (ROOT / "boards/soc/esp32c3.toml").read_text()
    (tmp_path / "soc/twin.toml").write_text(chip.replace("\nram", "\ncores = 2\nram"))
    shutil.copytree(ROOT / "boards/esp32c3-devkitm", tmp_path / "twin")
    board = tmp_path / "twin/board.toml"
    board.write_text(board.read_text().replace('"esp32c3"', '"twin"'))
    device = open_device(str(tmp_path / "twin"), "gcc", cores=2)
    library = _digits("rv32imc")
    found = bench_on_board(device, library)
    _sums_up(found)
    assert check_on_board(device, library, DIGITS, count=2).result.ok
    harts = open_device(str(tmp_path / "twin"), "gcc", "qemu", cores=2)
    other = bench_on_board(harts, library)
    assert (other.wall, other.cores, other.alone) == (
        found.wall, found.cores, found.alone,
    )  # fmt: skip
    assert [row.instructions for row in other.layers] == [
        row.instructions for row in found.layers
    ]


def test_two_cores_of_a_pico_2_as_riscv() -> None:
    """Two Hazard3, whose instructions QEMU has and Unicorn has not."""
    device, library = open_device("pico2-riscv", "gcc", cores=2), _digits("rv32imc")
    _sums_up(bench_on_board(device, library))
    assert check_on_board(device, library, DIGITS, count=2).result.ok
    assert device.simulator.name.startswith("QEMU")


@pytest.mark.parametrize(
    ("board", "simulator", "told"),
    [("mps2-an505", "auto", "mps2-an505 has one core, not 2 equal ones"),
     ("stm32h747i-disco", "auto", "has a cortex-m7 and, apart from it, a cortex-m4"),
     ("pico2-riscv", "unicorn", "Unicorn has no rv32imac_zba_zbb"),
     ("esp32-devkitc", "auto", "esp32-devkitc is not simulated"),
     ("pico", "qemu", "QEMU has no machine with both cores of pico")],
)  # fmt: skip
def test_boards_without_two_cores(board: str, simulator: str, told: str) -> None:
    with pytest.raises(BuildError, match=told):
        open_device(board, "auto", simulator, cores=2)


def test_a_device_of_one_core_runs_no_build_for_two() -> None:
    library = small().build(target="cortex-m0", cores=2)
    with pytest.raises(BuildError, match="for 2 cores, the device was opened for one"):
        firmware_of(open_device("pico", "gcc"), library)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a board the first with two such cores is taken; no board has others."""
    words = ["bench", str(DIGITS), "--cores", "2"]
    assert main([*words, "--target", "cortex-m33", "--json"]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert (facts["board"], len(facts["cores"])) == ("pico2", 2)
    assert facts["share"] == facts["wall"] / facts["alone"] < 0.65
    assert "counted on pico2" in said.err
    assert main([*words, "--port", "serial:nowhere"]) != 0
    assert "a board that is called runs one core" in capsys.readouterr().err
    assert main(words) != 0
    assert "2 equal cores for generic" in capsys.readouterr().err


def test_a_report_has_what_a_board_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", str(DIGITS), "--on", "mps2-an521", "--cores", "2"]
    assert main([*words, "-o", str(tmp_path / "page.html"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    use, counted = data["report"]["cores"], data["measured"]
    assert use["together"] == pytest.approx(counted["wall"], rel=0.1)
    assert use["share"] == pytest.approx(counted["share"], abs=0.03)
