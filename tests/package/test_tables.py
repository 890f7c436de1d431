"""Tables are as wide as there is room: numbers stay whole, names are cut in the middle,
rows stay different; in a pipe nothing is cut."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import pybuild
from pybuild.cli import main
from pybuild.cli.output import tables
from pybuild.errors import BuildError
from pybuild.package.grid import NAME, NUMBER, TEXT, as_html, fitted, grid, shortened
from tests.conftest import model_path

ROOT = Path(__file__).resolve().parents[2]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
Capture = pytest.CaptureFixture[str]

COLUMNS = [("layer", NAME), ("what", TEXT), ("bytes", NUMBER)]
ROWS = [
    (f"net/scope_{i}/{'x' * 60}/layer", "several words of text", f"{i * 1_234_567:,}")
    for i in range(12)
]
FOUND = grid("a title", COLUMNS, ROWS)


def test_what_fits_is_left_alone() -> None:
    assert fitted(FOUND, 200, 3)[0] == FOUND


@pytest.mark.parametrize("room", [100, 70, 50, 42, 30, 10])
def test_rows_stay_different_and_numbers_whole(room: int) -> None:
    made, widths = fitted(FOUND, room, 3)
    assert [row[2] for row in made.rows] == [row[2] for row in ROWS]
    assert widths[2] == len("13,580,237")
    names = [row[0] for row in made.rows]
    assert len(set(names)) == len(names)
    if room >= 50:
        assert all("…" in name[1:-1] for name in names)
        assert sum(widths) + 3 * (len(widths) - 1) <= room
    assert widths[1] >= len("several")


def test_a_name_is_cut_in_the_middle() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghij", 5) == "ab…ij"
    assert shortened("abcdefghij", 5, 0.75) == "abc…j"


@pytest.mark.parametrize("room", [None, 60, 34])
def test_printed(
    room: int | None, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if room is not None:
        monkeypatch.setenv("COLUMNS", str(room))
    tables.show((FOUND, "a line"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a title" and lines[-1] == "a line"
    text = "\n".join(lines)
    assert all(row[2] in text for row in ROWS)
    if room is None:
        assert all(
            re.search(rf"^{row[0]} +{row[1]} +{row[2]}$", text, re.M) for row in ROWS
        )
    else:
        assert max(len(line.rstrip()) for line in lines[1:-1]) <= room


def test_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert tables.width() is None
    for given, wanted in (("57", 57), ("0", None), ("wide", None), ("", None)):
        monkeypatch.setenv("COLUMNS", given)
        assert tables.width() == wanted
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((91, 9)))
    assert tables.width() in (91, tables.USUAL)  # a captured stdout has no number


def on_a_terminal(columns: int, *words: str) -> str:
    """What a verb prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    subprocess.run(
        ["stty", "cols", str(columns), "rows", "40"], stdin=theirs, check=True
    )
    command = [sys.executable, "-m", "pybuild.cli", *words]
    made = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=env)
    os.close(theirs)
    found = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:
            break
        if not more:
            break
        found += more
    assert made.wait() == 0
    os.close(ours)
    return found.decode()


def test_layers_are_different_rows_on_a_narrow_terminal() -> None:
    path = str(model_path("kws_int8.tflite"))
    for columns, words in ((66, []), (90, ["--long"])):
        text = on_a_terminal(columns, "inspect", path, *words)
        rows = [line for line in text.splitlines() if "conv2d  " in line]
        assert len({row.split("conv2d  ")[0] for row in rows}) == len(rows) == 9
        assert max(map(len, rows)) <= columns


def test_layers_of_a_real_model_are_different_rows(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once all that was left of four names was their common beginning and end."""
    path = str(model_path("kws_int8.tflite"))
    seen = {}
    for columns in ("", "100", "60"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["inspect", path]) == 0
        lines = capsys.readouterr().out.splitlines()
        names = [line.split()[0] for line in lines[3:16]]
        assert len(set(names)) == 13
        seen[columns] = names
    assert seen[""] == seen["100"] == seen["60"]
    assert seen[""][:3] == ["conv2d", "depthwise_conv2d", "conv2d_1"]


@pytest.mark.parametrize("columns", ["60", "90"])
def test_boards_respect_the_width(
    columns: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["boards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = {word.strip(",;:") for line in lines for word in line.split()}
    assert {"stm32vldiscovery", "cortex-m33-nodsp", "simulators"} <= words


# ---- in a notebook --------------------------------------------------------------


def html(shown: Any) -> ElementTree.Element:
    """Well-formed, and without colours, which a page may have light or dark; beside the
    frame that a library has its page in."""
    text: str = re.sub("<iframe[^>]*></iframe>", "", shown._repr_html_())
    assert not re.search(
        "color:|#[0-9a-f]{3}|<script|<style", text.replace("olor;", "")
    )
    return ElementTree.fromstring(text)


def rows_of(found: ElementTree.Element) -> list[list[str]]:
    return [[cell.text or "" for cell in row] for row in found.iter("tr")]


def test_a_library_shows_the_table_of_the_command_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["inspect", DIGITS, "--plan", "whole"]) == 0
    target, *printed = capsys.readouterr().out.splitlines()
    assert target.startswith("target generic")
    library = pybuild.load(DIGITS).build(plan="whole")
    found = html(library)
    rows = rows_of(found)
    assert [
        re.split(" {2,}", line.strip()) for line in printed[2 : len(rows) + 1]
    ] == rows[1:]
    lines = "".join(text.text or "" for text in found.iter("pre")).splitlines()
    advice = [line for line in lines if line.startswith("less ")]
    assert [line for line in lines if line not in advice] == printed[len(rows) + 1 :]
    # what costs as much time as all the rest is said here and by --long
    assert main(["inspect", "--long", DIGITS, "--plan", "whole"]) == 0
    assert advice
    assert set(advice) <= set(capsys.readouterr().out.splitlines())


def test_all_that_people_look_at_shows_a_table() -> None:
    model = pybuild.load(DIGITS)
    assert [row[0] for row in rows_of(html(model))][1:] == [
        x.short for x in model.build().report.layers
    ]
    net = model.build().host()
    assert ["input", "image", "int8[1,8,8,1]", "0.0625 * (q - -128)"][:3] in [
        row[:3] for row in rows_of(html(net))
    ]
    image = pybuild.build_image({"a": model, "b": model}, name="both")
    assert [row[0] for row in rows_of(html(image))] == ["model", "a", "b"]
    folder = ROOT / "examples" / "digits"
    made = pybuild.quantise(
        pybuild.load(folder / "digits_f32.onnx"),
        folder / "digits_calibration.npz",
        equalise=False, fit_weights=False, bias_correction=False,
    )  # fmt: skip
    assert ["conv", "conv2d", "int8"] in [row[:3] for row in rows_of(html(made))]


def test_names_are_text_in_a_notebook() -> None:
    found = grid("<i>", [("<b>", NAME)], [("a & <script>",)])
    made = ElementTree.fromstring(as_html((found, "x < y & z")))
    assert rows_of(made) == [["<b>"], ["a & <script>"]]
    assert [text.text for text in made.iter("pre")] == ["x < y & z"]


def test_what_is_wrong_with_a_model_is_shown_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lower(_: object) -> None:
        raise BuildError("digits: node 'a'", "is <wrong>", "another")

    monkeypatch.setattr(pybuild.Model, "lower", lower)
    (line,) = html(pybuild.load(DIGITS)).iter("pre")
    assert line.text == "digits: node 'a': is <wrong>. Hint: another"


def test_a_large_model_is_small_in_a_notebook() -> None:
    library = pybuild.load(model_path("vww_int8.tflite")).build()
    assert len(rows_of(html(library))) == 32
    assert len(re.sub(r'srcdoc="[^"]*"', "", library._repr_html_())) < 20_000
    assert len(library._repr_html_()) < 1_500_000
