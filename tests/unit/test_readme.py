"""Every command that the READMEs show is run, as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import headline
from tests.board_costs import THEIR_FILE
from tests.conftest import model_path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md")))
# these run the tests themselves, or make the environment the tests run in
RECURSIVE = ("./dev",)


def commands() -> list[str]:
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.S)
    ]
    return [line for block in blocks for line in block.splitlines() if line]


def test_there_are_commands() -> None:
    shown = commands()
    assert "./dev demo" in shown
    assert "./dev test" in shown
    assert sum(line.startswith("crt ") for line in shown) >= 4


@pytest.mark.parametrize("verb", ["demo", "test"])
def test_dev_knows(verb: str) -> None:
    done = subprocess.run(["sh", str(ROOT / "dev")], capture_output=True, text=True)
    assert done.returncode == 64
    assert re.search(rf"^  {verb}\b", done.stderr + done.stdout, re.M)


@pytest.mark.parametrize(
    "line", [line for line in commands() if not line.startswith(RECURSIVE)]
)
def test_command(line: str) -> None:
    words = shlex.split(line)
    if words[0] == "crt":
        words = [sys.executable, "-m", "pybuild.cli", *words[1:]]
    elif words[0] == "python":
        words[0] = sys.executable
    else:
        pytest.fail(f"no way to run '{line}'")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_python_block(tmp_path: Path) -> None:
    """The Python of the README, with a picture for `pixels`."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGES[0].read_text(), re.S)
    code = "import numpy as np\npixels = np.zeros((1, 8, 8, 1), np.int8)\n"
    code += block + "assert scores.shape == (1, 10)\n"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr


def test_the_first_screen_has_the_figures_of_the_benchmarks() -> None:
    readme = PAGES[0].read_text()
    expected = headline.headline(headline.PAGE.read_text())
    assert headline.table_of(readme) == expected, "python -m tests.headline"
    before = readme[: readme.index(expected)]
    assert before.count("\n") < 24, "it is on the first screen"


def test_the_flash_of_others_has_the_files_as_they_are() -> None:
    for network, size in THEIR_FILE.items():
        assert model_path(f"{network}_int8.tflite").stat().st_size == size
