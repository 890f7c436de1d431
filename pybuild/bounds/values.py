"""The values that the walk through a kernel tracks: numbers, truths, addresses."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from pybuild.bounds.linear import Linear, Number, Steps
from pybuild.dtype import Array, DType
from pybuild.records import dataclass


@dataclass(frozen=True, eq=False)
class Memory:
    """Bytes that a kernel may reach through one pointer.

    name   for people: 'input 1', 'scratch'
    array  what is there, of a constant
    """

    name: str
    bytes: int
    array: Array | None = None

    def values(self, at: Steps, elem: DType) -> tuple[int, int] | None:
        """The least and the most of the elements at these bytes, if they are known."""
        size = elem.bytes
        is_known = self.array is not None and not elem.is_float and elem != DType.BOOL
        if not is_known or self.bytes % size:
            return None
        assert self.array is not None
        elements = np.ascontiguousarray(self.array).reshape(-1).view(elem.numpy)
        first, last = at.least, at.most
        known = isinstance(first, int) and isinstance(last, int)
        if known and first % size == at.step % size == 0:
            ends = int(max(first, 0)) // size, int(last) // size + 1
            elements = elements[slice(*ends, at.step // size or 1)]
        return (int(elements.min()), int(elements.max())) if elements.size else None


@dataclass(frozen=True)
class Address:
    """A place in a memory, in bytes from its start; several: it is one of them."""

    places: tuple[tuple[Memory, Linear], ...]

    def plus(self, more: Linear, times: int = 1) -> Address:
        """The address so many bytes further."""
        return Address(tuple((m, at.plus(more, times)) for m, at in self.places))


def address(memory: Memory, at: Linear | None = None) -> Address:
    """The address of a memory's start, or of so many bytes behind it."""
    return Address(((memory, at or Linear()),))


@dataclass(frozen=True)
class Truth:
    """A condition: sums that are never negative where it holds, and where not."""

    holds: tuple[Linear, ...] = ()
    fails: tuple[Linear, ...] = ()


# None: a float, or what is not followed
Value = Linear | Address | Truth | None


@dataclass(frozen=True)
class Access:
    """A load or a store.

    least, end  of the bytes that it reaches, as far as is known
    at, size    where it begins, as a sum of unknowns, and how many bytes it is
    """

    memory: Memory
    least: Number
    end: Number
    is_store: bool
    at: Linear = field(default_factory=Linear, repr=False, compare=False)
    size: int = field(default=0, repr=False, compare=False)

    @property
    def is_inside(self) -> bool:
        """Proven, or at a place that no input leads to."""
        return self.least >= self.end or (
            self.least >= 0 and self.end <= self.memory.bytes
        )
