"""Half a minute of tests/fuzz.py on each reader; ./dev fuzz takes longer."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import TARGETS

SECONDS = int(os.environ.get("CRT_FUZZ_SECONDS", "30"))
SHORTER = {"rpc": 3}  # a third: it reads no files, and tries 10,000 inputs a second


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_files_are_refused(target: str) -> None:
    seconds = max(SECONDS // SHORTER.get(target, 1), 1)
    assert " tried, " in TARGETS[target](seconds)
