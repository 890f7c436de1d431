"""Dataclasses that are made quickly, and fields under older names.

`@dataclass` makes what dataclasses.dataclass makes, which compiles six methods of each
class: of 300 that a command loads, most of the time before it begins. Here __init__ is
compiled when it is first called, and the others need no compiling.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "old_names", "renamed", "with_old_keys"]

T = TypeVar("T")
Methods = dict[str, Any]


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, *, frozen=False, eq=True, repr=True):
        """Same as dataclasses.dataclass, with the options that pybuild uses. Subclasses
        that are dataclasses, too, are made by this one.
        """
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen, eq=eq, repr=repr)
        cls.__doc__ = cls.__doc__ or cls.__name__
        # its fields and their defaults: nothing is compiled for them
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        made = {"__init__": _Constructor(cls, frozen)}
        if repr:
            made["__repr__"] = _shown(cls)
        if eq:
            made |= _compared(cls, frozen)
        if frozen:
            made |= _frozen(cls)
        for name, method in made.items():
            if cls.__dict__.get(name) is None:
                setattr(cls, name, method)
        return cls


class _Constructor:
    """__init__, until somebody looks it up."""

    def __init__(self, cls: type, frozen: bool) -> None:
        self.cls, self.frozen = cls, frozen

    def __get__(self, instance: object, owner: type) -> Any:
        made = _constructor(self.cls, self.frozen)
        # by two threads at once: either's is right
        self.cls.__init__ = made  # type: ignore[misc]
        return made if instance is None else made.__get__(instance, owner)


class _Factory:
    """The text in a signature for a default that is made anew for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


def _constructor(cls: Any, frozen: bool) -> Callable[..., None]:
    """Compiled: def __init__(self, x, y=__of_y): self.x = x; self.y = y"""
    # fields have no such names, nor begin with what stands before those of defaults
    known: Methods = {"__set": object.__setattr__, "__factory": _Factory()}
    words, named, lines = ["self"], list[str](), list[str]()
    types: dict[str, Any] = {"return": None}
    for field in dataclasses.fields(cls):
        word = name = value = field.name
        if field.default_factory is not dataclasses.MISSING:
            known[f"__of_{name}"], value = field.default_factory, f"__of_{name}()"
            if field.init:
                value = f"{value} if {name} is __factory else {name}"
                word = f"{name}=__factory"
        elif not field.init:
            continue
        elif field.default is not dataclasses.MISSING:
            known[f"__of_{name}"], word = field.default, f"{name}=__of_{name}"
        if field.init:
            (named if field.kw_only else words).append(word)
            types[name] = field.type
        one = f"__set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"
        lines.append(one)
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n    ".join(lines or ["pass"])
    header = ", ".join([*words, *(["*", *named] if named else [])])
    exec(f"def __init__({header}):\n    {body}", known)
    made: Callable[..., None] = known["__init__"]
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    made.__annotations__ = types
    return made


def _shown(cls: Any) -> Callable[[Any], str]:
    names = [field.name for field in dataclasses.fields(cls) if field.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({values})"

    return shown


def _compared(cls: Any, frozen: bool) -> Methods:
    """By the values of fields; what can be changed has no hash."""
    every = dataclasses.fields(cls)
    values = _values_of([f.name for f in every if f.compare])
    hashed = _values_of([f.name for f in every if _is_hashed(f)])

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    def hash_of(self: Any) -> int:
        return hash(hashed(self))

    return {"__eq__": equal, "__hash__": hash_of if frozen else None}


def _is_hashed(field: dataclasses.Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _frozen(cls: Any) -> Methods:
    names = frozenset(field.name for field in dataclasses.fields(cls))

    def assign(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            text = f"cannot assign to field {name!r}"
            raise dataclasses.FrozenInstanceError(text)
        super(cls, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            text = f"cannot delete field {name!r}"
            raise dataclasses.FrozenInstanceError(text)
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


# ---- facts of a report under the names that they had one version ago ---------------

_NAMES = "__old_names__"


def renamed(**names: str) -> Callable[[type[T]], type[T]]:
    """Lets a frozen dataclass accept old field names; names: old -> today's.

    `@renamed(how="placement")`: `.how` still reads `.placement`, with a
    DeprecationWarning, and `with_old_keys` gives the dict of such a value both keys.
    """

    def decorate(cls: type[T]) -> type[T]:
        setattr(cls, _NAMES, names)
        for old, new in names.items():
            setattr(cls, old, property(_reader(cls.__name__, old, new)))
        return cls

    return decorate


def old_names(cls: type) -> Mapping[str, str]:
    """The old field names of a dataclass, each with the name of today."""
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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names: Mapping[str, str] = getattr(value, _NAMES, {})
        plain = {
            f.name: with_old_keys(getattr(value, f.name))
            for f in dataclasses.fields(value)
        }
        return plain | {old: plain[new] for old, new in names.items()}
    match value:
        case dict():
            return {key: with_old_keys(each) for key, each in value.items()}
        case tuple() | list():
            return [with_old_keys(each) for each in value]
    return value
