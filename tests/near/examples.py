"""How many examples hypothesis tries: few in `./dev test`, other ones in each run, and
many in `--all`. Knows no test."""

from __future__ import annotations

import os

ALL = "CRT_ALL"  # set by tests/everything.py with --all


def few(count: int, in_all: int) -> int:
    return in_all if os.environ.get(ALL) else count
