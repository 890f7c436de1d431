"""Worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from types import ModuleType
from typing import Any

from pybuild.files.garbage_collection import collect_seldom


def worker_pool(count: int) -> ProcessPoolExecutor:
    """An executor of that many processes; submit to it in `without_main`."""
    # a fork would copy locks of threads, as that of the progress bar
    return ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=as_worker
    )


@contextmanager
def without_main() -> Iterator[None]:
    """Hides the program that submits work from processes that begin: Python would run
    it in each of them, again from its top."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def as_worker() -> None:
    """Sets up a process that works for another: Ctrl-C is left to its parent, and it
    ends when the parent has gone, for whatever reason.
    """
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
