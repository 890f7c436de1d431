"""Shows work that takes longer than a second, on a terminal only: a bar, or a line
where the terminal cannot move its cursor."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pybuild.progress import Progress, silent
from pybuild.text.escaped import escaped

DELAY_SECONDS = 1.0


@contextmanager
def working(text: str) -> Iterator[Progress]:
    """Yields a function (done, of) to call as the work goes on."""
    if not sys.stderr.isatty():
        yield silent
        return
    shown: dict[str, Any] = {}
    text = escaped(text)
    state = [0, 0]
    lock = threading.Lock()

    def show() -> None:
        from rich.console import Console
        from rich.progress import Progress

        with lock:
            if "ended" in shown:
                return
            console = Console(stderr=True)
            if console.is_dumb_terminal:
                console.print(f"{text} ...", markup=False)
                return
            bar = Progress(console=console, transient=True)
            shown["task"] = bar.add_task(text, total=state[1] or None)
            shown["bar"] = bar
            bar.start()

    def update(done: int, of: int) -> None:
        with lock:
            state[:] = done, of
            if "bar" in shown:
                shown["bar"].update(shown["task"], completed=done, total=of)

    timer = threading.Timer(DELAY_SECONDS, show)
    timer.daemon = True
    timer.start()
    try:
        yield update
    finally:
        timer.cancel()
        with lock:
            shown["ended"] = True
            if "bar" in shown:
                shown["bar"].stop()
