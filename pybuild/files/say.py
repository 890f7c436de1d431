"""The one place that prints: what a terminal would obey is written out."""

from __future__ import annotations

import json
import sys
from typing import Any

from pybuild.text.escaped import escaped_lines


def say(text: object = "", end: str = "\n", *, error: bool = False) -> None:
    """Lines for people; error: on stderr, at once."""
    stream = sys.stderr if error else sys.stdout
    print(escaped_lines(str(text)), end=end, file=stream, flush=error)


def say_json(facts: Any) -> None:
    """Prints one object on stdout, in ASCII."""
    print(json.dumps(facts, indent=2).replace("\x7f", "\\u007f"))
