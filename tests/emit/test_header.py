"""What the comments of a generated header promise, by a program in C."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybuild.install import crt_include
from tests.golden.networks import conv_int8
from tests.toolchains import ROOT, SANITIZE, STRICT, require, run, runtime

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("options", [{}, {"params": "replaceable"}, {"push": "image"}])
def test_it_does_what_its_header_says(options: dict[str, str], tmp_path: Path) -> None:
    conv_int8().model().build(tmp_path / "t", **options)
    says(tmp_path)


def test_flash_that_is_damaged_is_told(tmp_path: Path) -> None:
    conv_int8().model().build(tmp_path / "t", params="replaceable")
    image = tmp_path / "t" / "conv_int8_params.c"
    text = image.read_text()
    word = re.findall(r"\b(\d{7,})u", text)[-1]
    image.write_text(text.replace(f"{word}u", f"{int(word) ^ 0x10000}u"))
    says(tmp_path, "damaged")


def says(tmp_path: Path, *more: str) -> None:
    """The program finds nothing that is not so; more: its arguments."""
    gcc, flags = require("gcc"), [*STRICT, *SANITIZE["gcc"]]
    files = [*(tmp_path / "t").glob("*.c"), HERE / "header.c", *runtime(gcc, *flags)]
    folders = [tmp_path / "t", crt_include(), ROOT / "tests" / "crt"]
    flags += ["-DCRT_WITH_SELFTEST", *(f"-I{folder}" for folder in folders)]
    run([gcc, *flags, *files, "-o", tmp_path / "program"])
    assert run([tmp_path / "program", *more]) == ""
