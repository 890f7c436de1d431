"""Tests of what users install. `./dev test` runs all of them with a wheel, in a folder
outside the checkout: those marked `everywhere` with gcc, with zig alone, without a
compiler and with the wheel of the sdist; those marked `bare`, which compile nothing,
without a compiler; others with gcc. CRT_SETTING: the setting.

In a checkout they run with what is there, for whoever works on one.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

import pybuild

SETTING = os.environ.get("CRT_SETTING", "")

# about wheels alone; what is for one setting may import what others have not
collect_ignore = [] if SETTING else ["test_place.py"]
if SETTING not in ("", "gcc"):
    collect_ignore += [
        path.name
        for path in Path(__file__).parent.glob("test_*.py")
        if not re.search(r"pytest\.mark\.(everywhere|bare)", path.read_text())
    ]
# its files are the other wheel's, to the byte (tests/house/test_packaging.py), but the
# library of crt, which test_verbs.py loads
if SETTING == "sdist":
    collect_ignore += ["test_digits.py", "test_pt2.py"]


def pytest_configure(config: pytest.Config) -> None:
    there = Path(str(pybuild.__file__)).absolute()
    if SETTING and not there.is_relative_to(sys.prefix):
        raise pytest.UsageError(f"pybuild is {there}, not the wheel's in {sys.prefix}")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    if not SETTING:
        return
    here = [item for item in items if _runs_here(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in here])
    items[:] = here


def _runs_here(item: pytest.Item) -> bool:
    """`bare`: what compiles nothing shows most where nothing could."""
    if item.get_closest_marker("bare"):
        return SETTING == "none"
    return SETTING == "gcc" or item.get_closest_marker("everywhere") is not None
