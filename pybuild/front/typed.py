"""Values of a file that functions take by keyword: each is of the type that its
parameter has, and numbers are finite; what they mean is the function's own business.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pybuild.errors import Problem, fitting
from pybuild.files.shape import shown

_LARGEST = 1 << 31  # of a whole number
_WORDS: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def misfits(
    where: str,
    given: Mapping[str, Any],
    function: Callable[..., object],
    but: tuple[str, ...] = (),
) -> list[Problem]:
    """Everything that is wrong with keywords of a function; but: those that a file does
    not say."""
    hints = typing.get_type_hints(function)
    known = {
        name: one
        for name, one in inspect.signature(function).parameters.items()
        if name not in but
    }
    return [*_wrong(where, given, known, hints)]


def _wrong(
    where: str, given: Mapping[str, Any], known: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
) -> Iterator[Problem]:  # fmt: skip
    for name, value in given.items():
        if name not in known:
            yield Problem(where, f"there is no {shown(name)}", fitting(name, known))
        elif not _fits(value, hints[name]):
            word = _word(hints[name])
            yield Problem(where, f"{name} is {shown(value)}", word)
    for name, one in known.items():
        if one.default is inspect.Parameter.empty and name not in given:
            yield Problem(where, f"there is no '{name}'", _word(hints[name]))


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, part) for part in parts)
    if origin in (Sequence, tuple):
        is_list = isinstance(value, list | tuple)
        return is_list and all(_fits(each, parts[0]) for each in value)
    if hint is int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return is_whole and abs(value) < _LARGEST
    if hint is float:
        is_real = isinstance(value, int | float) and not isinstance(value, bool)
        return is_real and math.isfinite(value) and abs(value) < _LARGEST
    return value is not None and isinstance(value, hint)


def _word(hint: Any) -> str:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        each = [_word(part) for part in parts if part is not types.NoneType]
        return " or ".join(dict.fromkeys(each))
    if origin in (Sequence, tuple):
        return f"a list: each is {_word(parts[0])}"
    return _WORDS.get(hint, str(hint))
