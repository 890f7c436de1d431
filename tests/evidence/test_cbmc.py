"""Harnesses of tests/cbmc hold, and would not without one of the reader's checks."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.evidence.cbmc import ABSENT, HARNESSES, Harness, checked
from tests.toolchains import ROOT

needs_cbmc = pytest.mark.skipif(not shutil.which("cbmc"), reason=ABSENT)


@needs_cbmc
@pytest.mark.parametrize("harness", HARNESSES, ids=lambda one: one.name)
def test_no_access_leaves_its_memory(harness: Harness, tmp_path: Path) -> None:
    assert checked(harness, tmp_path)


@needs_cbmc
@pytest.mark.parametrize("harness", HARNESSES, ids=lambda one: one.name)
def test_a_check_that_is_missing_is_found(harness: Harness, tmp_path: Path) -> None:
    assert not checked(harness, tmp_path, broken=True)


def test_the_page_has_the_bounds() -> None:
    page = (ROOT / "docs" / "bounds.md").read_text()
    rows = dict(re.findall(r"^\| `tests/cbmc/(\w+).c` \| .* \| (\d+) \|$", page, re.M))
    assert rows == {one.name: str(one.most) for one in HARNESSES}
    for one in HARNESSES:
        source = (ROOT / "crt" / "src" / f"{one.name}.c").read_text()
        assert source.count(one.broken[0]) == 1, one.name
        assert (ROOT / "tests" / "cbmc" / f"{one.name}.c").exists()
