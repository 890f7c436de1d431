"""The notebook of examples/pytorch: its cells give what its file shows."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.notebook import executed, text_of

NAME = "to_firmware.ipynb"
FILE = ROOT / "examples" / "pytorch" / NAME


@pytest.mark.skipif(sys.platform != "linux", reason="its check compiles C by gcc")
def test_the_cells_give_what_the_notebook_shows(tmp_path: Path) -> None:
    for name in ("digits", "pytorch"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / name)
    made = executed(tmp_path / "pytorch" / NAME, tmp_path / "pytorch")
    assert text_of(made) == FILE.read_text(encoding="utf-8")
    assert (tmp_path / "pytorch" / "build" / "digits" / "digits.c").is_file()


def test_the_site_shows_it_with_its_pictures() -> None:
    sys.path.insert(0, str(ROOT / ".ci" / "site"))
    from notebooks import page

    text = page(json.loads(FILE.read_text(encoding="utf-8")))
    assert text.startswith("# From a PyTorch net to a firmware folder\n")
    assert text.count('output"><svg ') == 2 and "int8 352" in text
    assert text.count("\n```\n") == text.count("```python") + text.count("```text")
