"""The entry point of the command `crt`: from here on Ctrl-C ends quietly, also while
modules load.

Imports nothing of the package before it is told to run.
"""

from __future__ import annotations

import signal
import threading

INTERRUPTED = 130


def main() -> int:
    """`crt`, with the words of the command line."""
    here = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL) if here else None
    try:
        from pybuild.cli import main as run

        if here:
            signal.signal(signal.SIGINT, before)
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
