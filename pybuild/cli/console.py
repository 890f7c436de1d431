"""How wide a line may be: what COLUMNS says, or the terminal; else as long as it is."""

from __future__ import annotations

import os
import sys

# of a terminal that does not know
USUAL = 80


def width() -> int | None:
    """Columns; None: it goes to a file or pipe, where nothing has to be cut."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL
    except (OSError, ValueError):
        return USUAL
