"""docs/new-board.md, followed to the letter: its files written, its commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pybuild.boards.simulators.qemu import machine_options
from pybuild.errors import BuildError
from pybuild.targets.board import load_board
from pybuild.targets.core import CORES
from tests.boards.devices import DIGITS
from tests.toolchains import ROOT, require, require_module, run

PAGE = (ROOT / "docs" / "new-board.md").read_text()


def files() -> dict[str, str]:
    """The blocks of the page that begin with a file's name."""
    found = re.findall(r"```(?:toml|c)\n(?:#|/\*) ([\w./]+)(.*?)```", PAGE, re.S)
    blocks = re.findall(r"```(?:toml|c)\n(.*?)```", PAGE, re.S)
    assert len(found) == len(blocks) == 3
    return {name: text for (name, _), text in zip(found, blocks, strict=True)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's files, and a model."""
    for name, text in files().items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
    shutil.copy(DIGITS, tmp_path)
    return tmp_path


def command(line: str) -> list[str]:
    words = shlex.split(line)
    if words[0] == "crt":
        return [sys.executable, "-m", "pybuild.cli", *words[1:]]
    assert words[0] == "meson"
    return [sys.executable, "-m", "mesonbuild.mesonmain", *words[1:]]


CROSS = [
    ("mps2-an386", "gcc", "arm-none-eabi-gcc"),
    pytest.param(
        "riscv32-virt", "gcc", "riscv64-unknown-elf-gcc", marks=pytest.mark.sweep
    ),
    ("mps3-an547", "clang", "ld.lld"),
    pytest.param("microbit", "zig", "", marks=pytest.mark.sweep),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chain", "tool"), CROSS)
def test_meson_builds_for(name: str, chain: str, tool: str, tmp_path: Path) -> None:
    require_module("mesonbuild")
    if tool:
        require(tool)
    else:
        require_module("ziglang")
    board = load_board(name)
    qemu = require(f"qemu-system-{board.system}")
    scripts = [str(Path(sys.executable).parent), os.environ["PATH"]]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": os.pathsep.join(scripts)}
    for line in (
        f"crt build {DIGITS} -o {tmp_path / 'digits'} --name digits",
        f"crt boards {name} -o {tmp_path / 'board'} --toolchain {chain}",
        f"meson setup --cross-file board/{name}.ini built digits",
        "meson compile -C built",
    ):
        done = subprocess.run(
            command(line), cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    program = tmp_path / "built" / "digits_example"
    said = run([qemu, *machine_options(board), "-kernel", program])
    assert "digits: self-test: no error" in said
    if chain != "clang":  # whose run-time library is arm-none-eabi-gcc's
        for path in (tmp_path / "board").rglob("*"):
            assert path.is_dir() or str(ROOT) not in path.read_text()


def test_every_fault_of_the_files_is_told(folder: Path) -> None:
    (folder / "lm3s6965evb" / "board.c").unlink()
    (folder / "lm3s6965evb" / "board.toml").write_text(
        'soc = "lm3s6965"\n'
        'console = { uart = "usb", base = -1 }\n'
        'qemu = { system = "arm" }\n'
    )
    (folder / "soc" / "lm3s6965.toml").write_text(
        'cpu = "z80"\nhz = true\nflash = 1\nram = { origin = 0, size = "64" }\n'
    )
    with pytest.raises(BuildError) as caught:
        load_board(str(folder / "lm3s6965evb"))
    said = str(caught.value).replace(str(folder), "F").splitlines()
    own, soc = "F/lm3s6965evb/board.toml", "F/soc/lm3s6965.toml"
    cores = ", ".join(CORES)
    uarts = "cmsdk, stm32, pl011, nrf51, ns16550, sifive"
    assert sorted(said) == sorted(
        [
            f"{own}: there is no board.c beside it",
            f"{own}: 'uart' is 'usb'. Hint: one of {uarts}",
            f"{own}: 'base' must be a whole number",
            f"{own}: 'machine' must be a text",
            f"{soc}: 'title' must be a text",
            f"{soc}: 'cpu' is 'z80'. Hint: one of {cores}",
            f"{soc}: 'hz' must be a whole number. Hint: of Hertz, such as 12_500_000",
            f"{soc}: 'flash' must be a table",
            f"{soc}: 'flash.size' must be a text like \"64K\"",
            f"{soc}: 'origin' must be a whole number",
        ]
    )


def test_a_board_without_its_chip(folder: Path) -> None:
    (folder / "soc" / "lm3s6965.toml").unlink()
    with pytest.raises(BuildError, match=r"there is no soc/lm3s6965\.toml beside"):
        load_board(str(folder / "lm3s6965evb"))


def test_a_file_that_is_no_toml(folder: Path) -> None:
    (folder / "lm3s6965evb" / "board.toml").write_text("soc = \n")
    with pytest.raises(BuildError, match="cannot be read: invalid value") as caught:
        load_board(str(folder / "lm3s6965evb"))
    assert "\n" not in str(caught.value)  # what it would have said is not missed


@pytest.mark.parametrize(
    ("machine", "arguments", "what"),
    [
        ("virt,dumpdtb=/srv/me/.bashrc", [], "'machine' is 'virt,dumpdtb="),
        ("virt", ["-chardev", "file,id=a,path=x"], "has '-chardev', which is not"),
        ("virt", ["-icount", "rr=record,rrfile=x"], "has 'rr=record,rrfile=x' for"),
        ("virt", ["-bios", "x.elf"], "has 'x.elf' for -bios. Hint: it takes none"),
        ("virt", ["-m"], "has '' for -m"),
        ("virt", ["-cpu", "any", "-s"], "has '-s', which is not passed on"),
    ],
)
def test_options_of_qemu_reach_no_file(
    machine: str, arguments: list[str], what: str, folder: Path
) -> None:
    file = folder / "lm3s6965evb" / "board.toml"
    given = f'"{machine}", arguments = {json.dumps(arguments)} }}'
    file.write_text(file.read_text().replace('"lm3s6965evb" }', given))
    with pytest.raises(BuildError) as caught:
        load_board(str(folder / "lm3s6965evb"))
    assert what in str(caught.value) and "\n" not in str(caught.value)
