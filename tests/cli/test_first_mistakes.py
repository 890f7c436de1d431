"""What a newcomer types first and gets wrong: one line helps, and none is drowned by
usage; both spellings of English; boards by the names on their boxes; samples of another
layout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.targets.board import board_names, load_board
from pybuild.targets.boxes import nearest_board
from pybuild.targets.chip import all_chips
from tests.toolchains import ROOT

FOLDER = ROOT / "examples" / "digits"
DIGITS, FLOAT = str(FOLDER / "digits_int8.tflite"), str(FOLDER / "digits_f32.onnx")
CALIBRATION = str(FOLDER / "digits_calibration.npz")

Capture = pytest.CaptureFixture[str]

BOXES = [
    ("stm32f407", "netduinoplus2"),
    ("nucleo-f446re", "netduinoplus2"),
    ("esp32-s3-devkitc", "esp32s3-devkitc"),
    ("nrf5340-dk", "b-u585i-iot02a"),
    ("pico2w", "pico2"),
    ("Pico-W", "pico"),
    ("teensy41", "nucleo-h743zi"),
    ("NUCLEO-G474RE", "nucleo-l4r5zi"),
    ("arduino-uno", "arduino-mega2560"),
    ("blackpill", "netduinoplus2"),
]


@pytest.mark.parametrize(("name", "board"), BOXES)
def test_a_name_on_a_box_leads_to_a_board(
    name: str, board: str, capsys: Capture
) -> None:
    assert main(["bench", DIGITS, "--on", name]) == 64
    error = capsys.readouterr().err
    assert f"there is no board '{name}'. Hint: a folder with a board.toml, or " in error
    assert f"the nearest of `crt boards`: {board} (" in error
    assert nearest_board("no-such-thing") == ""


def test_each_board_and_chip_leads_to_one_of_its_core() -> None:
    """What is named exactly needs no hint; its name without a dash must lead there."""
    for name in board_names():
        near = nearest_board(name.replace("-", ""))
        if near:
            mine, other = load_board(name).core, load_board(near).core
            assert mine.target == other.target, (name, near)
    for chip in all_chips():
        near = nearest_board(chip.name)
        if near:
            assert load_board(near).core.target == chip.core.target, (chip.name, near)


def test_a_target_by_the_name_of_a_box(capsys: Capture) -> None:
    assert main(["inspect", DIGITS, "--target", "nucleo-f446re"]) == 64
    assert "Hint: cortex-m4, the core of the nearest board" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", DIGITS, "--optimize", "ram"],
        ["inspect", DIGITS, "--optimize=ram"],
        ["inspect", FLOAT, "--quantize", CALIBRATION, "--no-equalize"],
    ],
)
def test_both_spellings(words: list[str], capsys: Capture) -> None:
    spelled = [word.replace("ize", "ise") for word in words]
    assert main([*words, "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert main([*spelled, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == one


def test_both_spellings_in_python_and_in_a_file(tmp_path: Path) -> None:
    assert pybuild.quantize is pybuild.quantise
    (tmp_path / "d.tflite").write_bytes(Path(DIGITS).read_bytes())
    text = 'optimize = "size"\n[models.d]\nfile = "d.tflite"\n'
    sweep = '[sweeps.all]\noptimize = ["size", "speed"]\n'
    (tmp_path / "crt.toml").write_text(text + sweep)
    found = pybuild.sweep(tmp_path / "crt.toml", tmp_path / "out", workers=1)
    assert [row["options"] for row in found.rows] == [
        {"optimise": "size"}, {"optimise": "speed"}
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", DIGITS, "--optimiser", "ram"],
        ["build"],
        ["build", DIGITS, "--out"],
        ["fly"],
        [],
    ],
)
def test_an_error_is_one_line(words: list[str], capsys: Capture) -> None:
    assert main(words) == 64
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "usage:" not in err
    assert "Hint: " in err or "did you mean" in err


@pytest.mark.parametrize("lead", [(9,), (9, 1)])
def test_samples_of_another_layout(lead: tuple[int, ...]) -> None:
    build = pybuild.GraphBuilder("net")
    x = build.input("x", (1, 3, 8, 6))
    build.output(build.op("tanh", x))
    samples = np.zeros((*lead, 8, 6, 3), np.float32)
    axes = (0, 3, 1, 2) if len(lead) == 1 else (0, 1, 4, 2, 3)
    hint = (
        f"its channels stand last, and the model takes NCHW: give array.transpose{axes}"
    )
    with pytest.raises(BuildError) as caught:
        pybuild.check(build.build(), data={"x": samples})
    assert hint in str(caught.value)
    assert samples.transpose(axes).shape == (*lead, 3, 8, 6)
