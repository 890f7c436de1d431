"""docs/generated-code.md shows the C that a build writes today."""

from __future__ import annotations

import re
from pathlib import Path

import pybuild

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "generated-code.md"
MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"


def test_each_piece_of_c_is_as_the_build_writes_it() -> None:
    page = PAGE.read_text()
    command = re.search(r"^crt build (\S+) --target (\S+) --name (\S+)", page, re.M)
    assert command is not None
    assert ROOT / command[1] == MODEL
    library = pybuild.load(MODEL).build(target=command[2], name=command[3])
    text = "".join(library.sources().values())
    pieces = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
    assert len(pieces) >= 7
    strange = [piece for piece in pieces if piece not in text]
    assert not strange, "write the page anew:\n" + "\n".join(strange)
