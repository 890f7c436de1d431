"""Flat lists that the step tables point into: what several steps have alike is in them
once. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from pybuild.emit.tables.tables import Operand

T = TypeVar("T")


class Runs(Generic[T]):
    """A flat list of runs, each kept once."""

    def __init__(self) -> None:
        self.flat: list[T] = []
        self._known: dict[tuple[T, ...], int] = {}

    def add(self, run: Sequence[T]) -> int:
        """Index of the first element of `run`."""
        key = tuple(run)
        if key not in self._known:
            # what ends the list may begin this run
            same = (
                n for n in range(len(key), 0, -1) if key[:n] == tuple(self.flat[-n:])
            )
            shared = next(same, 0)
            self._known[key] = len(self.flat) - shared
            self.flat.extend(key[shared:])
        return self._known[key]


class OperandRuns:
    """Operands of steps; steps that meet the same memory alike share theirs, whatever
    tensors lie there: the comments name all."""

    def __init__(self) -> None:
        self._runs: Runs[Operand] = Runs()
        self._names: list[dict[str, None]] = []  # in their order

    @property
    def flat(self) -> tuple[Operand, ...]:
        named = zip(self._runs.flat, self._names, strict=True)
        return tuple(replace(o, comment=", ".join(names)) for o, names in named)

    def add(self, run: Sequence[Operand]) -> int:
        """Index of the first."""
        first = self._runs.add([replace(o, comment="") for o in run])
        self._names += [{} for _ in self._runs.flat[len(self._names) :]]
        for names, operand in zip(self._names[first:], run, strict=False):
            names[operand.comment] = None
        return first
