"""One rule says for which core a verb works, and its first line says so; the same build
has the same figures in every verb, and what is estimated is called that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.cli import main
from pybuild.package.totals import CODE, STACK, totals_of
from tests.toolchains import ROOT

DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
CORE = "cortex-m4"
BOARD = "mps2-an386"

Capture = pytest.CaptureFixture[str]


def _facts(capsys: Capture, *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def _figures(facts: Mapping[str, Any]) -> tuple[int, int, int, int]:
    made = totals_of(facts)
    return made.ram, made.flash, made.code, made.instructions


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ((), "target generic: C for any CPU; --target CPU uses that core's"),
        (("--target", CORE), f"target {CORE}, from --target"),
        (("--target", "stm32f405"), f"target {CORE}, from --target stm32f405"),
    ],
)
@pytest.mark.parametrize("verb", ["inspect", "build", "report", "check", "run"])
def test_the_first_line_says_the_target(
    verb: str, words: tuple[str, ...], first: str, tmp_path: Path, capsys: Capture
) -> None:
    out = {
        "build": ["-o", str(tmp_path / "t")],
        "report": ["-o", str(tmp_path / "r.html")],
    }
    more = {"check": ["--samples", "1", "--backend", "llvm"]}
    given = [*out.get(verb, []), *more.get(verb, []), *words]
    assert main([verb, DIGITS, *given]) == 0
    assert capsys.readouterr().out.startswith(first)


def test_a_board_or_a_file_says_the_target(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["bench", DIGITS, "--on", BOARD]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"target {CORE}, from board {BOARD}\n")
    assert "instructions of one inference, counted\n" in said
    (tmp_path / "d.tflite").write_bytes(Path(DIGITS).read_bytes())
    text = f'target = "{CORE}"\n[models.d]\nfile = "d.tflite"\n'
    (tmp_path / "crt.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "d"]) == 0
    assert capsys.readouterr().out.startswith(f"target {CORE}, from crt.toml:1\n")
    assert main(["compare", DIGITS, f"{DIGITS} --target {CORE}"]) == 0
    assert capsys.readouterr().out.startswith(f"target generic of A, {CORE} of B\n")


def test_figures_of_one_build_are_the_same_in_all_verbs(
    tmp_path: Path, capsys: Capture
) -> None:
    core = ("--target", CORE)
    built = _facts(capsys, "build", DIGITS, "-o", str(tmp_path / "tree"), *core)
    ram, flash, code, spent = _figures(built)
    assert _figures(_facts(capsys, "inspect", DIGITS, *core)) == _figures(built)
    page = str(tmp_path / "page.html")
    drawn = _facts(capsys, "report", DIGITS, "-o", page, *core)
    assert _figures(drawn["report"]) == _figures(built)
    pair = _facts(capsys, "compare", DIGITS, str(tmp_path / "tree"), *core)
    rows = {row["what"]: (row["one"], row["other"]) for row in pair["figures"]}
    assert rows["RAM"] == (ram, ram)
    assert rows["flash, code as estimated"] == (flash, flash)
    assert rows["instructions, as estimated"] == (spent, spent)
    (tmp_path / "d.tflite").write_bytes(Path(DIGITS).read_bytes())
    text = '[models.digits_int8]\nfile = "d.tflite"\n[sweeps.one]\n'
    for word in (f'target = "{CORE}"', f'on = "{BOARD}"'):
        project = tmp_path / "crt.toml"
        project.write_text(text + word)
        out = str(tmp_path / "swept")
        (row,) = _facts(capsys, "sweep", str(project), "--workers", "1", "--out", out)[
            "front"
        ]
        if row["board"] is None:
            found = row["ram"], row["flash"], row["code"], row["instructions"]
            assert found == (ram, flash, code, spent)
            cycles = row["cycles"]
    counted = _facts(capsys, "bench", DIGITS, "--on", BOARD)
    held = sum(counted["flash"][name] for name in ("weights", "tables", "kernels"))
    assert (row["ram"], row["flash"]) == (ram, held)  # the last row is the board's
    assert row["instructions"] == counted["instructions"]
    assert counted["ram"]["arena"] + counted["ram"]["instance"] == ram
    assert 0.9 < spent / counted["instructions"] < 1.1
    assert 0.8 < cycles / counted["cycles"] < 1.25
    chips = _facts(capsys, "fit", DIGITS)["chips"]
    (chip,) = (one for one in chips if one["chip"] == "nrf52840")
    assert chip["ram"]["needed"] == ram + STACK
    assert chip["flash"]["needed"] == flash + CODE
    assert chip["cycles"] == cycles


def test_a_build_ends_with_one_line_of_what_it_needs(
    tmp_path: Path, capsys: Capture
) -> None:
    built = _facts(capsys, "inspect", DIGITS)
    ram, flash, _, spent = _figures(built)
    assert main(["build", DIGITS, "-o", str(tmp_path / "tree")]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    held = f"{flash:,} of flash and {spent:,} instructions by estimate"
    assert last == f"sum    {ram:,} bytes of RAM without stack; {held}"
    other = str(ROOT / "examples" / "digits" / "digits_f32.onnx")
    words = ["build", DIGITS, other, "-o", str(tmp_path / "both")]
    assert main([*words, "--name", "digits_int8=a", "--name", "digits_f32=b"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("sum    ") and last.endswith(
        "of weights and tables in flash"
    )


def test_inspect_does_not_claim_what_was_not_compared(capsys: Capture) -> None:
    assert main(["inspect", DIGITS]) == 0
    said = capsys.readouterr().out
    assert "equal" not in said
    assert "bits   will follow LiteRT's reference kernels (rounding litert); " in said
    assert main(["check", DIGITS, "--samples", "1", "--backend", "llvm"]) == 0
    assert capsys.readouterr().out.endswith("equal\n")


def test_run_says_what_its_input_is(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", DIGITS]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1].startswith("input  random values, always the same; --data FILE")
    facts = _facts(capsys, "run", DIGITS)
    assert facts["random_input"] is True
    (stored,) = (one["values"] for one in facts["outputs"].values())
    real = [float(x) for x in said[3].removeprefix("real   ").split()]
    (row,) = _facts(capsys, "inspect", DIGITS)["outputs"]
    wanted = row["scale"] * (np.array(stored) - row["zero_point"])
    np.testing.assert_allclose(real, wanted, rtol=1e-5)
    top = int(np.argmax(stored))
    assert said[4] == f"top    class {top} of 10: {wanted[top]:g}"
    with np.load(ROOT / "examples" / "digits" / "digits_test.npz") as data:
        images = data["images"][:3, ..., None].astype(np.float32) / 16
        labels = data["labels"][:3].tolist()
    np.savez(tmp_path / "three.npz", image=images)
    assert main(["run", DIGITS, "--data", str(tmp_path / "three.npz")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert not any(line.startswith("input") for line in said)
    assert said[-1] == f"top    of each sample: {' '.join(map(str, labels))}"
    assert not _facts(capsys, "run", DIGITS, "--data", str(tmp_path / "three.npz"))[
        "random_input"
    ]


def test_each_line_says_which_ram_it_means(capsys: Capture) -> None:
    core = ("--target", CORE)
    facts = _facts(capsys, "inspect", DIGITS, *core, "--ram-curve")
    arena, instance = facts["ram"]["arena"], facts["ram"]["instance"]
    assert main(["inspect", DIGITS, *core, "--ram-curve"]) == 0
    said = capsys.readouterr().out
    assert f"RAM    {arena + instance:,} bytes without stack: arena {arena:,} (" in said
    for point in facts["ram_curve"]:
        assert point["limit"] + instance == point["ram"]
        assert re.search(f"{point['limit']:,} +{point['ram']:,} +[0-9.]+ ", said)
    counted = _facts(capsys, "bench", DIGITS, "--on", BOARD)["ram"]
    assert main(["bench", DIGITS, "--on", BOARD]) == 0
    whole = arena + instance + counted["stack"]
    line = (
        f"RAM    {arena + instance:,} bytes: arena {arena:,}, instance {instance:,}; "
    )
    line += f"RAM with stack {whole:,}: stack {counted['stack']:,} (at most "
    assert line in capsys.readouterr().out


def test_rough_cycles_are_the_same_everywhere_and_marked(
    tmp_path: Path, capsys: Capture
) -> None:
    """Of a core without published timings."""
    board, core = "mps3-an547", "cortex-m55"
    counted = _facts(capsys, "bench", DIGITS, "--on", board)
    cycles = counted["rough_cycles"]
    assert counted["cycles"] is None
    assert 0.8 < cycles / counted["instructions"] < 1.25
    assert main(["bench", DIGITS, "--on", board]) == 0
    assert f"cycles ~{cycles:,}, a rough estimate" in capsys.readouterr().out
    chips = _facts(capsys, "fit", DIGITS)["chips"]
    assert {one["cycles"] for one in chips if one["core"] == core} == {cycles}
    (tmp_path / "d.tflite").write_bytes(Path(DIGITS).read_bytes())
    project = tmp_path / "crt.toml"
    text = f'[models.d]\nfile = "d.tflite"\n[sweeps.one]\non = "{board}"'
    project.write_text(text)
    words = ["sweep", str(project), "--workers", "1", "--out", str(tmp_path / "swept")]
    (row,) = _facts(capsys, *words)["front"]
    assert (row["board"], row["cycles"]) == (board, cycles)
    assert main(words) == 0
    assert f"~{cycles:,}" in capsys.readouterr().out
