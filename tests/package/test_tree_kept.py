"""example/main.c is the user's from the moment it is changed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildWarning
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
Build = Callable[..., list[str]]


def in_python(out: Path, **options: object) -> list[str]:
    """What a build warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pybuild.load(str(DIGITS)).build(out, name="digits", **options)
    assert all(one.category is BuildWarning for one in said)
    assert all(one.filename == __file__ for one in said)
    return [str(one.message) for one in said]


def image_in_python(out: Path, **options: object) -> list[str]:
    models = {name: pybuild.load(str(DIGITS)) for name in ("one", "two")}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pybuild.build_image(models, out, name="both", **options)
    return [str(one.message) for one in said]


@pytest.fixture
def on_the_command_line(capsys: pytest.CaptureFixture[str]) -> Build:
    def build(out: Path, **options: object) -> list[str]:
        words = [f"--{key}={value}" for key, value in options.items()]
        command = ["build", str(DIGITS), "-o", str(out), "--name", "digits", *words]
        assert main(command) == 0
        return capsys.readouterr().err.splitlines()

    return build


@pytest.fixture(params=["python", "image", "command line"])
def build(request: pytest.FixtureRequest, on_the_command_line: Build) -> Build:
    ways = {"python": in_python, "image": image_in_python}
    return ways.get(request.param, on_the_command_line)


def test_an_edited_example_is_kept(build: Build, tmp_path: Path) -> None:
    """Silently as long as ours is the same, with a word and ours beside it if not."""
    out, more = tmp_path / "out", {"params": "replaceable"}
    example, beside = out / "example/main.c", out / "example/main.c.new"
    assert build(out) == []
    ours = example.read_text()
    example.write_text("/* mine */\n")
    assert build(out) == []
    assert example.read_text() == "/* mine */\n" and not beside.exists()

    (told,) = build(out, **more)
    where = f"{example} is yours and was kept; this build's is main.c.new beside it"
    assert told.removeprefix("warning: ") == where
    assert example.read_text() == "/* mine */\n" and beside.read_text() != ours
    assert build(out, **more) == []  # it was said
    beside.replace(example)  # the user takes ours again: an example as any other
    assert build(out) == []
    assert example.read_text() == ours and not beside.exists()


def test_an_example_of_ours_is_renewed(build: Build, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(out)
    ours = (out / "example/main.c").read_text()
    assert build(out, params="replaceable") == []
    assert (out / "example/main.c").read_text() != ours
    assert [p.name for p in (out / "example").iterdir()] == ["main.c"]


def test_an_example_that_nothing_is_known_of_is_kept(
    on_the_command_line: Build, tmp_path: Path
) -> None:
    """The report is an older version's, or gone."""
    out = tmp_path / "out"
    on_the_command_line(out)
    report = json.loads((out / "report.json").read_text())
    del report["example"]
    (out / "report.json").write_text(json.dumps(report))
    (out / "example/main.c").write_text("/* mine */\n")
    replaced, kept = on_the_command_line(out)
    assert f"{out / 'report.json'}: was changed since" in replaced
    assert "is yours and was kept" in kept
    assert (out / "example/main.c").read_text() == "/* mine */\n"


def test_force_keeps_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is for folders that hold other files, which are no less the user's."""
    (tmp_path / "example").mkdir()
    (tmp_path / "example/main.c").write_text("/* mine */\n")
    words = ["build", str(DIGITS), "-o", str(tmp_path), "--name", "digits", "--force"]
    assert main(words) == 0
    assert "main.c.new beside it" in capsys.readouterr().err
    assert (tmp_path / "example/main.c").read_text() == "/* mine */\n"
    assert "digits_selftest" in (tmp_path / "example/main.c.new").read_text()
