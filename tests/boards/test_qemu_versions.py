"""Counting in each QEMU: the plugin is built for the API that this QEMU has.

Small programs with the API of each version stand for QEMUs that are not here. Where
none can count, Unicorn does, and that is said.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pybuild.boards.device import choose_simulator, open_device
from pybuild.boards.simulators import plugin
from pybuild.boards.simulators.qemu import Qemu
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.targets.board import load_board
from tests.boards.devices import DIGITS
from tests.toolchains import require, require_module, run

SOURCE = Path(__file__).with_name("qemu_host.c")
# of QEMU: 7.2 and 8.2; 9.0; 9.1; 9.2 and 10.0; 10.1; 11.0; 11.1
APIS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 7}
BOARD = "mps2-an386"


def qemu_of(folder: Path, api: int, least: int) -> str:
    """A program that takes plugins as a QEMU with this API does."""
    made = folder / f"qemu-{api}-{least}"
    flags = ("-std=gnu99", "-Wall", "-Wextra", "-Werror", "-rdynamic")
    given = (f"-DAPI={api}", f"-DLEAST={least}")
    run([require("gcc"), *flags, *given, SOURCE, "-o", made, "-ldl"])
    return str(made)


def qemu_that(folder: Path, *lines: str) -> str:
    """A program of these lines of a shell."""
    made = folder / "qemu-system-arm"
    made.write_text("\n".join(("#!/bin/sh", *lines, "")))
    made.chmod(0o755)
    return str(made)


@pytest.mark.parametrize("api", APIS)
def test_counts_are_equal_in_every_version(api: int, tmp_path: Path) -> None:
    qemu = qemu_of(tmp_path, api, APIS[api])
    assert plugin.why_not(qemu) == ""
    library = plugin.counting_plugin(qemu)
    fields = {
        "begin": 0x2000, "last": 0x2000, "end": 0x2300, "runtime": 0x3000,
        "runtime_end": 0x4000, "table": 0x5000, "step_bytes": 16, "step_count": 2,
    }  # fmt: skip
    words = ",".join(f"{name}={value}" for name, value in fields.items())
    run([qemu, "-plugin", f"{library},{words}"], cwd=tmp_path)
    counts = (tmp_path / "crt.counts").read_text().split()
    # the first core: its time; the runtime's and each step's
    assert counts[:4] == ["29", "10", "5", "14"]


def test_this_machines_qemu_counts() -> None:
    assert plugin.why_not(require("qemu-system-arm")) == ""


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ("echo 'qemu: -plugin: invalid option' >&2", "exit 1"),
            "invalid option",
        ),
        (("exit 7",), "it ended with 7"),
    ],
)
def test_why_a_qemu_does_not_count(
    lines: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    assert plugin.why_not(qemu_that(tmp_path, *lines)) == why


def test_an_api_that_is_newer_than_all_we_know(tmp_path: Path) -> None:
    newest = plugin.NEWEST
    qemu = qemu_of(tmp_path, newest + 2, newest + 1)
    why = (
        f"plugin requires API version {newest}, but this QEMU supports only a "
        f"minimum version of {newest + 1}"
    )
    assert plugin.why_not(qemu) == why
    with pytest.raises(BuildError, match="cannot count instructions"):
        plugin.counting_plugin(qemu)


@pytest.fixture
def without_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose QEMU runs boards, but takes no plugin."""
    require_module("unicorn")
    real = require("qemu-system-arm")
    plain = qemu_that(
        tmp_path,
        'for word in "$@"; do case $word in -plugin)',
        "echo 'qemu: -plugin: invalid option' >&2; exit 1;; esac; done",
        f'exec {real} "$@"',
    )
    which = shutil.which
    monkeypatch.setattr(
        "pybuild.boards.simulators.qemu.shutil.which",
        lambda name, path=None: plain if "qemu" in name else which(name, path=path),
    )


def _instead() -> str:
    board = load_board(BOARD)
    qemu = choose_simulator(board, "qemu").name
    unicorn = choose_simulator(board, "unicorn").name
    return f"{qemu} cannot count (invalid option): {unicorn} runs it"


def test_unicorn_counts_where_qemu_cannot(
    without_plugins: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(DIGITS), "--on", BOARD, "--json"]) == 0
    said = capsys.readouterr()
    facts = json.loads(said.out)
    assert facts["simulator"].startswith("Unicorn")
    assert facts["instructions"] > 10_000
    assert facts["note"] == _instead()
    assert f"note: {_instead()}\n" in said.err


def test_who_asks_for_qemu_hears_why_it_cannot_count(
    without_plugins: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(DIGITS), "--on", BOARD, "--simulator", "qemu"]
    assert main(["check", *words, "--samples", "1"]) == 0
    capsys.readouterr()
    assert main(["bench", *words]) != 0
    assert "cannot count instructions: invalid option" in capsys.readouterr().err


def test_boards_says_what_really_works(
    without_plugins: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["boards", "--json"]) == 0
    facts = {one["name"]: one for one in json.loads(capsys.readouterr().out)["boards"]}
    one, m55 = facts[BOARD], facts["mps3-an547"]
    assert [name.split()[0] for name in one["simulators"]] == ["QEMU", "Unicorn"]
    assert [name.split()[0] for name in one["counts"]] == ["Unicorn"]
    assert one["missing"] == []
    assert m55["counts"] == []
    assert m55["missing"] == ["a simulator that counts: another QEMU"]
    assert main(["boards", BOARD]) == 0
    shown = capsys.readouterr().out
    assert "cannot count: invalid option" in shown


def test_the_usual_simulator_needs_no_word() -> None:
    require("qemu-system-arm")
    device = open_device(BOARD)
    assert isinstance(device.simulator, Qemu)
    assert device.note == ""
