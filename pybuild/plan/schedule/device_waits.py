"""Finds the steps before which the CPU must wait for a device: those that would read
bytes that a copy has yet to write, or overwrite bytes that a copy has yet to read.
Devices do their work in order.

Knows the bytes that steps touch in the memory of the CPU; no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pybuild.records import dataclass


@dataclass(frozen=True)
class Span:
    """The bytes [start, end) of one of the CPU's memories."""

    memory: str
    start: int
    end: int

    def meets(self, other: Span) -> bool:
        same = self.memory == other.memory
        return same and self.start < other.end and other.start < self.end


@dataclass(frozen=True)
class Touch:
    """The CPU memory that a step accesses.

    device  the device that runs it asynchronously; 0: the CPU, synchronously
    """

    device: int
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()


@dataclass
class _Pending:
    """The bytes that a device may still have to read or write."""

    reads: list[Span] = field(default_factory=list)
    writes: list[Span] = field(default_factory=list)


def waits(touches: Sequence[Touch]) -> list[tuple[int, ...]]:
    """Return, for each step, the devices that the CPU waits for just before it."""
    pending: dict[int, _Pending] = {}
    found = []
    for touch in touches:
        late = [
            device
            for device, work in sorted(pending.items())
            if device != touch.device and _clash(touch, work)
        ]
        for device in late:
            del pending[device]
        found.append(tuple(late))
        if touch.device:
            work = pending.setdefault(touch.device, _Pending())
            work.reads += touch.reads
            work.writes += touch.writes
    return found


def _clash(touch: Touch, work: _Pending) -> bool:
    return (
        _meet(touch.reads, work.writes)
        or _meet(touch.writes, work.writes)
        or _meet(touch.writes, work.reads)
    )


def _meet(some: Iterable[Span], others: Sequence[Span]) -> bool:
    return any(a.meets(b) for a in some for b in others)
