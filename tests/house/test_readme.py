"""The README's first screen, and the commands of `./dev` that it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.bench import front
from tests.bench.board_costs import THEIR_FILE
from tests.bench.pages import PAGES, sections
from tests.conftest import model_path

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("verb", ["demo", "test"])
def test_dev_knows(verb: str) -> None:
    done = subprocess.run(["sh", str(ROOT / "dev")], capture_output=True, text=True)
    assert done.returncode == 64
    assert re.search(rf"^  {verb}\b", done.stderr + done.stdout, re.M)


def test_the_first_screen_has_the_figures_of_the_benchmarks() -> None:
    readme = (ROOT / "README.md").read_text()
    expected = front.headline(front.PAGE.read_text())
    assert front.table_of(readme) == expected, "python -m tests.bench.front"
    before = readme[: readme.index(expected)]
    assert before.count("\n") < 24, "it is on the first screen"


def test_the_first_screen_of_the_benchmarks_is_made_of_the_pages_behind_it() -> None:
    page = front.PAGE.read_text()
    behind = [one.path.read_text() for one in PAGES]
    made = sections(front.front(behind, front.measured_with("")))
    assert len(made["Four networks"]) == 8
    assert len(made["Beside CMSIS-NN, by operator"]) > 15
    known = sections(page)
    assert {t: r for t, r in made.items() if t != "Measured with"} == {
        t: r for t, r in known.items() if t != "Measured with"
    }, "python -m tests.bench.front"
    assert all(f"({one.path.name})" in page for one in PAGES)


def test_it_is_one_screen() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 55


def test_the_flash_of_others_has_the_files_as_they_are() -> None:
    for network, size in THEIR_FILE.items():
        assert model_path(f"{network}_int8.tflite").stat().st_size == size
