"""Text of strangers for people: what a terminal or a page would obey is written out.

"a\\x1b[2Jb" becomes "a\\\\x1b[2Jb", and so do ends of lines, marks that turn the
direction of text, and characters that nobody sees.
"""

from __future__ import annotations

import re
from typing import Any

_LINES = "\u2028\u2029"
_TURNS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSEEN = "\u180e\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_REST = f"{_LINES}{_TURNS}{_UNSEEN}\ud800-\udfff"
_ALL = re.compile(f"[\x00-\x1f\x7f-\x9f{_REST}]")
_BUT_LAYOUT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_REST}]")


def escaped(text: str) -> str:
    """One line."""
    return text if text.isascii() and text.isprintable() else _ALL.sub(_written, text)


def escaped_lines(text: str) -> str:
    """The same of several lines, which stay lines; so do tabs."""
    return _BUT_LAYOUT.sub(_written, text)


def escaped_values(value: Any) -> Any:
    """Every text in plain values as JSON has them, keys too."""
    match value:
        case str():
            return escaped_lines(value)
        case dict():
            return {escaped(str(k)): escaped_values(v) for k, v in value.items()}
        case list() | tuple():
            return [escaped_values(each) for each in value]
    return value


def _written(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
