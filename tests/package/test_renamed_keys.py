"""What report.json and the report's values called otherwise one version ago."""

from typing import Any

import pytest

import pybuild
from pybuild.package.report import Report
from tests.boards.devices import DIGITS


@pytest.fixture(scope="module")
def report() -> Report:
    return pybuild.load(DIGITS).build(target="cortex-m4").report


def test_the_json_has_both_names(report: Report) -> None:
    facts = report.to_json()
    pairs: list[tuple[list[dict[str, Any]], str, str]] = [
        ([facts], "made", "provenance"),
        ([facts], "packed", "packed_constants"),
        (facts["tensors"], "how", "placement"),
        (facts["tensors"], "of", "shares_with"),
        (facts["kernels"], "why", "reason"),
    ]
    for rows, old, new in pairs:
        assert rows and all(row[old] == row[new] for row in rows)
    assert {row["placement"] for row in facts["tensors"]} > {"ring"}


def test_an_old_attribute_still_reads_and_says_so(report: Report) -> None:
    row = next(row for row in report.tensors if row.placement == "view")
    with pytest.deprecated_call(match=r"Held\.of is called shares_with now"):
        assert row.of == row.shares_with != ""  # type: ignore[attr-defined]
    with pytest.deprecated_call(match="provenance"):
        assert report.made is report.provenance  # type: ignore[attr-defined]
