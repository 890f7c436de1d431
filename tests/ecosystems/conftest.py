"""Packages of three networks, made by three builds into one folder, and what tests of
all ecosystems do with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.model import Model
from pybuild.wake import build_wake_words
from tests.conftest import ROOT, made_once, models_folder
from tests.ecosystems.crates import FAST, make_crates
from tests.graphs.networks import keyword_spotting
from tests.toolchains import completed, require
from tests.wake.nets import NETS, write_nets
from tests.wake.reference import heard, probabilities, rows_of
from tests.wake.sounds import sound

SOUND: Array = sound(30, 2)
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


def _make_listeners(out: Path) -> None:
    nets = write_nets(out / "nets")
    words = build_wake_words(nets, name="listen")
    words.write_packages(out, package="esphome,arduino,zephyr")
    words.write_packages(out / "alone", package="esphome")
    write_nets(out / "few", ("stop",))
    few = build_wake_words({"stop": out / "few/stop.tflite"})
    few.write_packages(out / "alone", package="esphome")
    (out / "sound.raw").write_bytes(SOUND.astype("<i2").tobytes())


@pytest.fixture(scope="session")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages listen and crt, and sound: read, never written."""
    return made_once(tmp_path_factory, "listeners", _make_listeners)


@pytest.fixture(scope="session")
def phrases(listeners: Path) -> list[str]:
    """What is said in the sound, by pymicro-features, LiteRT and ESPHome's rules.

    The bands of these features are of another C library: of the words that the made
    nets hear none depends on that.
    """
    nets = {name: listeners / f"nets/{name}.tflite" for name in NETS}
    rows = rows_of(SOUND)
    scores = {name: probabilities(path, rows) for name, path in nets.items()}
    found = [NETS[name][1] for _, name in heard(nets, scores, 3)]
    assert set(found) == {'Hello, "you"', "Stopp\u00e9"}
    return found


@pytest.fixture(scope="session")
def crates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crates of all builds(), and the crate of a program of them."""
    return made_once(tmp_path_factory, "crates", make_crates)


@pytest.fixture(scope="session")
def target(crates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What cargo has made of them."""
    require("cargo")

    def make(out: Path) -> None:
        env = {**FAST, "CARGO_TARGET_DIR": str(out)}
        completed(["cargo", "build", "-q", "--offline", "-p", "user"], crates, env)

    return made_once(tmp_path_factory, "rust-target", make) / "debug"
