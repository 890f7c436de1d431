"""`crt compare`: what is said to differ is what differs, in words and as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pybuild
from pybuild.cli import main
from pybuild.html.comparison import compared
from pybuild.library import Library
from tests.html.browser import browser, opened, table, violations
from tests.toolchains import ROOT

DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
TARGET = ["--target", "cortex-m4"]


def built(**options: str) -> Library:
    return pybuild.load(DIGITS).build(target="cortex-m4", **options)


def test_figures_are_those_of_both_reports() -> None:
    one, other = built(optimise="size").report, built(optimise="speed").report
    found = compared(one.to_json(), other.to_json())
    figures = {row.what: (row.one, row.other) for row in found.figures}
    rams = [report.ram.arena + report.ram.instance for report in (one, other)]
    assert figures["RAM"] == tuple(rams)
    spent = [sum(k.instructions for k in report.kernels) for report in (one, other)]
    assert figures["instructions, as estimated"] == tuple(spent) and spent[0] > spent[1]
    code = [sum(piece.bytes for piece in report.code) for report in (one, other)]
    assert figures["code, as estimated"] == tuple(code) and code[0] < code[1]
    chosen = [{k.layer: k.kernel for k in report.kernels} for report in (one, other)]
    differ = {name for name, kernel in chosen[0].items() if chosen[1][name] != kernel}
    assert differ <= {row.layer for row in found.layers}
    (option,) = found.options
    assert (option.name, option.one, option.other) == ("optimise", "size", "speed")
    pieces = [{piece.name for piece in report.code} for report in (one, other)]
    assert pieces[0] ^ pieces[1] <= {row.name for row in found.kernels}


def test_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options behind a side are its own; folders are as their models were built."""
    assert main(["compare", DIGITS, DIGITS, *TARGET]) == 0
    assert capsys.readouterr().out.endswith("nothing differs\n")
    mine = f"{DIGITS} --plan whole --name other"
    assert main(["compare", DIGITS, mine, *TARGET, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["names"] == ["digits_int8", "other"]
    assert [row["name"] for row in facts["options"]] == ["plan"]
    for name, words in (("a", []), ("b", ["--plan", "whole", "--name", "other"])):
        out = str(tmp_path / name)
        assert main(["build", DIGITS, *TARGET, *words, "-o", out, "--json"]) == 0
    capsys.readouterr()
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["compare", *folders, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == facts


def test_what_cannot_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "report.json").write_text('{"name": "old"}')
    assert main(["compare", str(tmp_path / "old"), DIGITS]) == 2
    assert "report.json: has schema 1, and this is 2" in capsys.readouterr().err
    assert main(["compare", f"{DIGITS} --plan all", DIGITS]) == 64
    assert "--plan: 'all' is not known" in capsys.readouterr().err
    assert main(["compare", DIGITS]) == 64


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "two.html"
    sides = [f"{DIGITS} --optimise size", f"{DIGITS} --optimise speed"]
    assert main(["compare", *sides, *TARGET, "-o", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with browser() as driver:
        assert opened(driver, out)["comparison"] == facts
        shown = table(driver, "figures")
        for row, cells in zip(facts["figures"], shown, strict=True):
            assert cells[:3] == [row["what"], f"{row['one']:,}", f"{row['other']:,}"]
        layers = [row["layer"] for row in facts["layers"]]
        assert [cells[0] for cells in table(driver, "layers")] == layers
        kernels = [row["name"] for row in facts["kernels"]]
        assert [cells[0] for cells in table(driver, "code")] == kernels
        assert violations(driver) == []
