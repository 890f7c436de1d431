"""Facts of a report under the names that they had one version ago.

`@renamed(how="placement")` of a frozen dataclass: `.how` still reads `.placement`, with
a DeprecationWarning, and `with_old_keys` gives the dict of such a value both keys.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_NAMES = "__old_names__"


def renamed(**names: str) -> Callable[[type[T]], type[T]]:
    """Of a dataclass; names: old one to the name that the field has today."""

    def decorate(cls: type[T]) -> type[T]:
        setattr(cls, _NAMES, names)
        for old, new in names.items():
            setattr(cls, old, property(_reader(cls.__name__, old, new)))
        return cls

    return decorate


def old_names(cls: type) -> Mapping[str, str]:
    """Of a dataclass: old name to today's."""
    names: Mapping[str, str] = getattr(cls, _NAMES, {})
    return names


def _reader(owner: str, old: str, new: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        text = f"{owner}.{old} is called {new} now; {old} goes with the next version"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(value, new)

    return read


def with_old_keys(value: Any) -> Any:
    """Plain values of dataclasses, as JSON has them, each renamed field twice: under
    its name, and after all others under the one that it had.
    """
    if is_dataclass(value) and not isinstance(value, type):
        names: Mapping[str, str] = getattr(value, _NAMES, {})
        plain = {f.name: with_old_keys(getattr(value, f.name)) for f in fields(value)}
        return plain | {old: plain[new] for old, new in names.items()}
    match value:
        case dict():
            return {key: with_old_keys(each) for key, each in value.items()}
        case tuple() | list():
            return [with_old_keys(each) for each in value]
    return value
