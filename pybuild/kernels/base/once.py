"""Writes code shared by many layers only once: the values of arrays and of arguments
are not part of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from pybuild.ir.loop import Func
from pybuild.kernels.base.builder import Builder
from pybuild.records import dataclass

# kernels that are remembered, of each kind
_MOST = 512
# of a layer's field: its number is an argument of the kernel, and nothing else
ARGUMENT = {"argument": True}

Layer = TypeVar("Layer")


@dataclass(frozen=True)
class Later:
    """A placeholder for an argument's number while code is written; computing with it
    raises an error."""

    field: str


@dataclass(frozen=True)
class Written:
    """A kernel that layers share, with the argument values of one of them."""

    kernel: Builder
    numbers: Mapping[str, int]

    def finish(self, in_place: bool = False) -> Func:
        """Does the same as `Builder.finish`."""
        return self.kernel.finish(in_place)

    @property
    def values(self) -> list[int]:
        """The values of the arguments."""
        return [
            self.numbers[value.field] if isinstance(value, Later) else value
            for value in self.kernel.values
        ]


def bare(layer: Any, numbers: dict[str, int], within: str = "") -> Any:
    """Return the layer without the values of its arrays, which become (), so that
    reading one while code is written raises an error; fields marked `ARGUMENT` are
    moved to `numbers`."""
    changed: dict[str, Any] = {}
    for field in fields(layer):
        value = getattr(layer, field.name)
        if isinstance(value, np.ndarray):
            changed[field.name] = ()
        elif "argument" in field.metadata and value is not None:
            name = within + field.name
            changed[field.name], numbers[name] = Later(name), value
        elif is_dataclass(value):
            changed[field.name] = bare(value, numbers, f"{within}{field.name}.")
    return replace(layer, **changed)


def once(kernel: Callable[[Layer], Builder]) -> Callable[[Layer], Written]:
    """Decorate a function that writes a kernel: layers that differ only in arrays and
    arguments share one kernel."""
    written = functools.lru_cache(_MOST)(kernel)

    @functools.wraps(kernel)
    def made(layer: Layer) -> Written:
        numbers: dict[str, int] = {}
        return Written(written(bare(layer, numbers)), numbers)

    return made
