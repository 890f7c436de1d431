"""How often Python looks for circles among objects: plans are many objects, and hold
few."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# objects made between two looks, younger looks before an older one; Python's own 700
# objects are a seventh of the planning of a large network
_RARE = (50_000, 20, 100)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks are rare until the end, unless they were rarer before, or there were
    none."""
    before = gc.get_threshold()
    if 0 < before[0] < _RARE[0]:
        gc.set_threshold(*_RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def collect_seldom() -> None:
    """The same for the rest of the process."""
    gc.set_threshold(*_RARE)
