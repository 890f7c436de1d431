"""Code that is alike for many layers is written once: its arrays are no part of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from pybuild.kernels.base.builder import Builder

# kernels that are remembered, of each kind
_MOST = 512

Layer = TypeVar("Layer")


def bare(layer: Any) -> Any:
    """The layer without the values of its arrays, which are () then: who reads one
    while code is written is told so by an error."""
    changed: dict[str, Any] = {}
    for field in fields(layer):
        value = getattr(layer, field.name)
        if isinstance(value, np.ndarray):
            changed[field.name] = ()
        elif is_dataclass(value):
            changed[field.name] = bare(value)
    return replace(layer, **changed)


def once(kernel: Callable[[Layer], Builder]) -> Callable[[Layer], Builder]:
    """Writes the kernel of layers that differ in arrays alone for the first of them;
    nobody may write on in what it returns."""
    written = functools.lru_cache(_MOST)(kernel)

    @functools.wraps(kernel)
    def made(layer: Layer) -> Builder:
        return written(bare(layer))

    return made
