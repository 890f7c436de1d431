"""What all layers that share a kernel give it alike becomes a constant of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from pybuild.kernels.candidate import Candidate
from pybuild.kernels.external import External
from pybuild.kernels.specialise import with_constants
from pybuild.loop import Func


def with_constant_args(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The same work by kernels that take only what differs."""
    chosen = list(candidates)
    users: dict[Func, list[tuple[int, ...]]] = defaultdict(list)
    for candidate in chosen:
        if candidate.func is not None and not isinstance(candidate.func, External):
            users[candidate.func].append(candidate.args)
    made = {}
    for func, calls in users.items():
        alike = {
            i: each[0]
            for i, each in enumerate(zip(*calls, strict=True))
            if len({*each}) == 1
        }
        made[func] = with_constants(func, alike), alike
    return [_taking(c, *made[c.func]) if c.func in made else c for c in chosen]


def _taking(candidate: Candidate, func: Func, alike: dict[int, int]) -> Candidate:
    args = tuple(n for i, n in enumerate(candidate.args) if i not in alike)
    return replace(candidate, func=func, args=args)
