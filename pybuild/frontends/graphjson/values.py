"""Encodes attributes and quantisation as JSON texts, and decodes them exactly. Knows no
operator and no file.
"""

from __future__ import annotations

import json
from typing import Any

from pybuild.ir.graph import Attr, Quant

_MOST_SCALE = 3.5e38


def encode(value: Attr) -> str:
    """Encode an attribute as JSON; a word that is not itself JSON stays unquoted.

    Errors  TypeError for other types than int, float, bool, str, None or tuples of
            these
    """
    _check(value)
    if isinstance(value, str) and _is_word(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def decode(text: str) -> Attr:
    """Decode an attribute that encode() wrote; lists become tuples.

    Errors  ValueError for JSON objects, which are never attributes
    """
    try:
        return _tuples(json.loads(text))
    except json.JSONDecodeError:
        return text
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def parse_json(text: str) -> Any:
    """Parse a JSON text; return None if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_word(text: str) -> bool:
    """Return True if decode() would return the text unchanged."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _check(value: Attr) -> None:
    if isinstance(value, tuple):
        for element in value:
            _check(element)
    elif value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"{type(value).__name__} {value!r}")


def _tuples(value: Any) -> Attr:
    if isinstance(value, list):
        return tuple(_tuples(element) for element in value)
    if isinstance(value, dict):
        raise ValueError("is a JSON object")
    return value


def quant_facts(quant: Quant | None) -> dict[str, Any] | None:
    """A quantisation as JSON values."""
    if quant is None:
        return None
    facts: dict[str, Any] = {"scale": list(quant.scale)}
    facts["zero_point"] = list(quant.zero_point)
    if quant.axis is not None:
        facts["axis"] = quant.axis
    return facts


def quant_of(facts: Any, shape: tuple[int, ...]) -> Quant | None:
    """The quantisation of a tensor of this shape.

    Errors  ValueError that says what is wrong
    """
    if facts is None:
        return None
    if not isinstance(facts, dict) or not facts.keys() <= {
        "scale",
        "zero_point",
        "axis",
    }:
        raise ValueError("is not an object of scale, zero_point and axis")
    scale, zero, axis = facts.get("scale"), facts.get("zero_point", [0]), None
    if "axis" in facts:
        axis = facts["axis"]
        if not _is_int(axis) or not 0 <= axis < len(shape):
            raise ValueError(f"axis {axis!r} of a tensor of rank {len(shape)}")
    if not isinstance(scale, list) or not all(map(_is_scale, scale)):
        raise ValueError("its scale is not a list of positive numbers")
    if not isinstance(zero, list) or not all(map(_is_int, zero)):
        raise ValueError("its zero_point is not a list of integers")
    counts = {1} if axis is None else {1, shape[axis]}
    if len(scale) not in counts or len(zero) not in {1, len(scale)}:
        what = f"{len(scale)} scales and {len(zero)} zero points"
        raise ValueError(f"{what} for shape {list(shape)}, axis {axis}")
    return Quant(tuple(map(float, scale)), tuple(zero), axis)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def _is_scale(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < _MOST_SCALE
