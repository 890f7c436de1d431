"""Which tests `./dev test --quick` has: all but those that tests/quick.toml names.
tests/near/quick_run.py is the plugin of pytest that reads this.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TOLD: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
# seconds of the processor
MOST: float = _TOLD["most_seconds"]
CASES: Mapping[str, list[str]] = _TOLD["cases"]


def left_out() -> set[str]:
    """`FILE.py::TEST` of each."""
    files: Mapping[str, list[str]] = _TOLD["tests"]
    return {
        f"{file}.py::test_{name}" for file, names in files.items() for name in names
    }


def is_quick(identity: str, names: set[str]) -> bool:
    """Of a test by pytest's identity; `names` as of left_out()."""
    place, _, case = identity.partition("[")
    test = place.rpartition("/")[2]
    words = [*CASES.get(test.partition("::")[2], ())]
    for folder in CASES:
        if place.startswith(folder):
            words += CASES[folder]
    return test not in names and not any(word in case for word in words)
