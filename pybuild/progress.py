"""Progress of long work, for callers that show it: progress(1, 3), progress(2, 3)."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


def silent(done: int, of: int) -> None:
    """Shows nothing."""


def stage(progress: Progress, name: str) -> None:
    """Says what is done now, to a progress that shows it: one with a method `stage`."""
    said = getattr(progress, "stage", None)
    if said is not None:
        said(name)


class Steps:
    """Counts steps of work; each call says that one more is done."""

    def __init__(self, progress: Progress, of: int) -> None:
        self._progress, self._of, self._done = progress, of, 0

    def __call__(self) -> None:
        self._done += 1
        self._progress(self._done, self._of)
