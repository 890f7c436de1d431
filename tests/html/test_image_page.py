"""The page of several models in one image: its numbers are those of report.json, and
each model has a part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pybuild
from pybuild.cli import main
from pybuild.html import schema
from tests.html.browser import browser, opened, table, violations
from tests.html.test_report_page import DIGITS, ONNX, numbers
from tests.toolchains import ROOT, require_module


def test_the_page_of_an_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two models of one file share all weights, and take turns in one memory."""
    words = [str(DIGITS), str(ONNX), "--target", "cortex-m4", "--name", "two"]
    words += ["--exclusive", "digits_int8,other", "--name", f"{ONNX}=other"]
    tree = tmp_path / "tree"
    assert main(["build", *words, "--html", "-o", str(tree), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    again = tmp_path / "again.html"
    assert main(["report", str(tree), "-o", str(again)]) == 0
    require_module("jsonschema")
    import jsonschema

    with browser() as driver:
        data = opened(driver, tree / "report.html")
        jsonschema.validate({**data, "parts": {}}, schema.of_image())
        for part in data["parts"].values():
            jsonschema.validate(part, schema.schema())
        reports = {one["name"]: one for one in facts["models"]}
        # the page has what would save RAM, too
        drawn = {n: part["report"] for n, part in data["parts"].items()}
        assert {n: {**one, "savings": []} for n, one in drawn.items()} == reports
        assert {**data["image"], "models": facts["models"]} == facts
        rows = table(driver, "models")
        assert [row[0] for row in rows] == list(reports)
        assert numbers(rows, 1) == [one["ram"]["arena"] for one in reports.values()]
        spent = [sum(k["instructions"] for k in r["kernels"]) for r in reports.values()]
        assert numbers(rows, 6) == spent and min(spent) > 0
        assert [row[7] for row in rows] == [*reversed(reports)]
        where = table(driver, "regions")
        assert numbers(where, 2) == [block["at"] for block in facts["memory"]] == [0, 0]
        assert numbers(where, 3) == [block["bytes"] for block in facts["memory"]]
        assert max(numbers(where, 3)) == facts["ram"]["arena"]
        shared = table(driver, "shared")
        assert [row[0] for row in shared] == [row["symbol"] for row in facts["shared"]]
        schemas = (ROOT / "docs" / "image-schema.json").read_text("utf-8")
        assert json.loads(schemas) == schema.of_image()
        for name, report in reports.items():
            cost = table(driver, f"{name}-cost")
            layers = [row["short"] for row in report["layers"]]
            assert [row[0] for row in cost] == layers
            blocks = table(driver, f"{name}-memory")
            assert len(blocks) == len(report["memory"]["blocks"])
        assert violations(driver) == []
        data = opened(driver, again)
        del data["image"]["example"]
        assert {**data["image"], "models": facts["models"]} == facts


def test_shared_weights_are_counted_once() -> None:
    models = {"one": pybuild.load(DIGITS), "other": pybuild.load(DIGITS)}
    image = pybuild.build_image(models, target="cortex-m4")
    assert image.report.flash.saved == image.members["one"].report.flash.weights
    assert image.to_html() == pybuild.build_image(models, target="cortex-m4").to_html()
    at = [(block.model, block.at) for block in image.report.memory]
    assert at == [("one", 0), ("other", image.members["one"].report.ram.arena)]
