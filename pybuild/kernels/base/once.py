"""Code that is alike for many layers is written once: its arrays are not part of it,
nor are numbers that are passed to it."""

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
    """A number of an argument while code is written: who computes with it is told so by
    an error."""

    field: str


@dataclass(frozen=True)
class Written:
    """A kernel that layers share, with the numbers of one of them."""

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
    """The layer without the values of its arrays, which are () then: who reads one
    while code is written is told so by an error; what is `ARGUMENT` goes to numbers."""
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
    """Writes the kernel of layers that differ in arrays and arguments alone for the
    first of them."""
    written = functools.lru_cache(_MOST)(kernel)

    @functools.wraps(kernel)
    def made(layer: Layer) -> Written:
        numbers: dict[str, int] = {}
        return Written(written(bare(layer, numbers)), numbers)

    return made
