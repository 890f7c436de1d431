"""Packages of three networks, made by three builds into one folder, and what tests of
all ecosystems do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.model import Model
from tests.conftest import ROOT, made_once, models_folder
from tests.graphs.networks import keyword_spotting

DIGITS = ROOT / "examples" / "digits"


def kws() -> Model:
    """MLPerf Tiny's keyword spotting; where it is not there, one of the same layers."""
    real = models_folder() / "kws_int8.tflite"
    return pybuild.load(real) if real.is_file() else keyword_spotting().model()


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
    kws().build(name="kws").write_packages(out, package="all")


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages digits, floats, kws and crt: read, never written."""
    return made_once(tmp_path_factory, "packages", _make)
