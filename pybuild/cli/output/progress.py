"""Shows work that takes longer than a second, on a terminal only: stage, percentage and
remaining time as a bar, or a line where the terminal cannot move its cursor."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pybuild.progress import Progress, silent
from pybuild.text.escaped import escaped

DELAY_SECONDS = 1.0
_open: list[_Shown] = []  # the bar that is shown, if any


@contextmanager
def working(text: str) -> Iterator[Progress]:
    """Yields a function (done, of) to call as the work goes on; its `stage` takes the
    name of what is done now. Inside another, the work takes that one's place."""
    if not sys.stderr.isatty():
        yield silent
        return
    if _open:
        with _open[0].instead(escaped(text)):
            yield _open[0]
        return
    shown = _Shown(escaped(text))
    _open.append(shown)
    try:
        yield shown
    finally:
        _open.remove(shown)
        shown.end()


class _Shown:
    """A bar that comes after a second; called from any thread."""

    def __init__(self, text: str) -> None:
        self._text, self._stage, self._state = text, "", (0, 0)
        self._bar: Any = None
        self._task: Any = None
        self._ended = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(DELAY_SECONDS, self._show)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, done: int, of: int) -> None:
        with self._lock:
            self._state = done, of
            if self._bar is not None:
                self._bar.update(self._task, completed=done, total=of)

    def stage(self, name: str) -> None:
        with self._lock:
            self._stage = escaped(name)
            self._describe()

    @contextmanager
    def instead(self, text: str) -> Iterator[None]:
        """Shows other work until it is done: its time is counted from here."""
        before = self._text, self._stage, self._state
        self._become(text, "", (0, 0))
        try:
            yield
        finally:
            self._become(*before)

    def _become(self, text: str, stage: str, state: tuple[int, int]) -> None:
        with self._lock:
            self._text, self._stage, self._state = text, stage, state
            if self._bar is not None:
                done, of = state
                self._bar.reset(self._task, completed=done, total=of or None)
            self._describe()

    def _describe(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=self._said)

    @property
    def _said(self) -> str:
        return f"{self._text}: {self._stage}" if self._stage else self._text

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with self._lock:
            if self._ended:
                return
            console = Console(stderr=True)
            if console.is_dumb_terminal:
                console.print(f"{self._text} ...", markup=False)
                return
            bar = Bar(console=console, transient=True)
            done, of = self._state
            self._task = bar.add_task(self._said, total=of or None, completed=done)
            self._bar = bar
            bar.start()

    def end(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()
