"""One lock for all calls of an object, so that several threads can use it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)
_Method = TypeVar("_Method", bound=Callable[..., Any])
_AS_THEY_ARE: set[Callable[..., Any]] = set()


def as_it_is(method: _Method) -> _Method:
    """A method that takes the locks that it needs itself, or needs none."""
    _AS_THEY_ARE.add(method)
    return method


def one_at_a_time(kind: _Class) -> _Class:
    """A class whose public methods, its own and inherited ones, hold `self.lock`, a
    threading.RLock(), as long as they take. Context managers and properties do not.
    """
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if name.startswith("_") and name not in ("__call__", "__getitem__"):
            continue
        if not inspect.isfunction(method) or method in _AS_THEY_ARE:
            continue
        if not hasattr(method, "__wrapped__"):
            setattr(kind, name, _holding(method))
    return kind


def _holding(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, /, *given: Any, **named: Any) -> Any:
        with self.lock:
            return method(self, *given, **named)

    return call


@contextlib.contextmanager
def both(one: Any, other: Any) -> Iterator[None]:
    """Holds two locks, in one order wherever two are held."""
    first, second = sorted((one, other), key=id)
    with first, second:
        yield
