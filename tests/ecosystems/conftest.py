"""Packages of two networks, made by two builds into one folder, and what tests of all
ecosystems do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from tests.conftest import ROOT, made_once

DIGITS = ROOT / "examples" / "digits"


def _make(out: Path) -> None:
    first = pybuild.load(DIGITS / "digits_int8.tflite").build(name="digits")
    first.write_packages(
        out, package="all", licence="MIT", version="1.2.0",
        author="Ada Byron <ada@example.org>", description="Digits of 8 x 8 pixels",
        url="https://example.org/digits",
    )  # fmt: skip
    float_model = pybuild.load(DIGITS / "digits_f32.onnx")
    second = float_model.build(name="floats", params="replaceable")
    second.write_packages(out, package="all")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages digits, floats and crt: read, never written."""
    return made_once(tmp_path_factory, "packages", _make)
