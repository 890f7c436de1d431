"""Parses TOML and JSON from untrusted files: bytes, depths and counts are limited
before the parser, which would need gigabytes for a few kilobytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from pybuild.files.read import REPORT, WRITTEN

DEPTH = 64  # of tables and lists in each other
VALUES = 4_000_000  # of a document
_DOTS = 16  # of the parts of a key
_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')"
_LONG_KEY = re.compile(
    rf"(?<![A-Za-z0-9_.\-\"']){_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{{_DOTS}}}"
)
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_DIGITS = "has a number of thousands of digits"
_LEAST, _MOST = -(2**63), 2**64 - 1


class Unreadable(ValueError):
    """An error in a file; `line` if it is known, else 0."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def parse_toml(text: str) -> dict[str, Any]:
    """The table in a TOML text.

    Errors  Unreadable
    """
    import tomllib

    if len(text) > WRITTEN:
        raise Unreadable(f"has more than {WRITTEN:,} characters")
    found = _LONG_KEY.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise Unreadable(f"has a key of more than {_DOTS} parts", line)
    try:
        made = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(str(error)) from None
    except RecursionError:
        raise Unreadable("is nested too deep") from None
    except ValueError:
        raise Unreadable(_DIGITS) from None
    _must_be_plain(made)
    return made


def _not_toml(what: str) -> Unreadable:
    found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", what, re.DOTALL)
    text, line = (found[1], int(found[2])) if found else (what, 0)
    return Unreadable(f"{text[0].lower()}{text[1:]}", line)


def parse_json(data: bytes | str, most: int = REPORT) -> Any:
    """The value in a JSON text.

    Errors  Unreadable
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > most:
        raise Unreadable(f"has more than {most:,} bytes")
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") > VALUES:
        # commas may be those of texts
        bare = _STRINGS.sub(b"", raw)
        if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > VALUES:
            raise Unreadable(f"has more than {VALUES:,} values")
    try:
        made = json.loads(raw, parse_constant=_no_number)
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable("is nested too deep") from None
    except UnicodeDecodeError:
        raise Unreadable("is not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"is not JSON: {error.msg}", error.lineno) from None
    except ValueError:
        raise Unreadable(_DIGITS) from None
    _must_be_plain(made, finite=True)
    return made


def _no_number(word: str) -> None:
    raise Unreadable(f"has {word}, which is not JSON")


def _must_be_plain(value: Any, finite: bool = False) -> None:
    """Checks the values of a document.

    Errors  Unreadable for what is nested too deep, an integer of more than 64 bits,
    which not even a message could say; finite: for numbers of JSON like 1e999, too
    """
    waiting = [iter([value])]
    while waiting:
        for each in waiting[-1]:
            if isinstance(each, int) and not _LEAST <= each <= _MOST:
                raise Unreadable("has an integer of more than 64 bits")
            if finite and isinstance(each, float) and not math.isfinite(each):
                raise Unreadable("has a number beyond those of float64")
            if isinstance(each, dict | list):
                if len(waiting) > DEPTH:
                    raise Unreadable("is nested too deep")
                waiting.append(_inside(each))
                break
        else:
            waiting.pop()


def _inside(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)
