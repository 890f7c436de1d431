"""Two seconds of tests/fuzz.py on each reader; ./dev fuzz takes longer."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import TARGETS

SECONDS = int(os.environ.get("CRT_FUZZ_SECONDS", "2"))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_files_are_refused(target: str) -> None:
    assert " tried, " in TARGETS[target](SECONDS)
