"""A plugin of pytest for `./dev test FILE`: tests in a given order, as many as there is
time for. What then is left is skipped, and said to be.

--nearest ARGUMENTS  tests in this order, one a line: FILE, FILE::TEST or FILE WORD
--within SECONDS     none begins later
"""

from __future__ import annotations

import time

import pytest

_ENDS = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--nearest", default="")
    parser.addoption("--within", type=float, default=0.0)


def place_of(identity: str, lines: list[str]) -> int:
    """Of the first line that means this test."""
    for place, line in enumerate(lines):
        test, _, word = line.partition(" ")
        if identity.startswith(test) and word in identity:
            return place
    return len(lines)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    lines = config.getoption("--nearest").splitlines()
    items.sort(key=lambda item: place_of(item.nodeid, lines))
    within = config.getoption("--within")
    config.stash[_ENDS] = time.monotonic() + within if within else float("inf")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > item.config.stash[_ENDS]:
        pytest.skip(f"{item.config.getoption('--within'):.0f} seconds are over")
