"""RAM against instructions: the plans that there are, and what one of them costs beside
another. Values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pybuild.records import dataclass


@dataclass(frozen=True)
class Point:
    """A plan that no other beats in both.

    Units  bytes of RAM, instance included; instructions as estimated, as a multiple of
           those of the fastest plan; limit: what --ram-limit asks for it with
    rows   layers that advance together; 0: each is computed whole
    """

    ram: int
    instructions: float
    limit: int = 0
    rows: int = 0


def layers_told(point: Point) -> str:
    return f"{point.rows} by rows" if point.rows else "all whole"


@dataclass(frozen=True)
class Fit:
    """The cost of the plan that fits a board, compared with the plan for any board.

    room    bytes of the board's RAM
    limit   bytes of arena that are left beside stack, data and all else
    before  bytes of arena of the other plan
    more    instructions beyond its, as a share of them, by the planner's estimate
    per_kb  the same for each 1,024 bytes of arena that are saved
    next_arena, next_per_kb  of the next smaller plan, beyond this one; 0: there is none
    """

    board: str
    room: int
    limit: int
    before: int
    arena: int
    more: float
    per_kb: float
    next_arena: int
    next_per_kb: float

    def __str__(self) -> str:
        text = f"arena {self.arena:,} instead of {self.before:,} bytes"
        text += f": {100 * self.more:+.1f} % instructions, by estimate"
        text += f", {100 * self.per_kb:.2f} % a KB"
        if self.next_arena:
            text += f"; the next smaller is {self.next_arena:,}"
            text += f", {100 * self.next_per_kb:.2f} % a KB"
        return text


def fit_facts(fit: Fit | None) -> dict[str, Any]:
    """For JSON, where a plan had to fit a board; `fit`: the key of one version ago."""
    return {"ram_fit": asdict(fit), "fit": asdict(fit)} if fit else {}


def fit(board: str, room: int, limit: int, arenas: tuple[int, int], instance: int,
        points: Sequence[Point]) -> Fit:  # fmt: skip
    """arenas: of the plan for any board, and of the one that fits
    points: of the curve, the smallest first"""
    before, arena = arenas

    def number(size: int) -> int:
        return max(
            (i for i, p in enumerate(points) if p.ram <= size + instance), default=0
        )

    def beyond(one: int, other: int) -> float:
        return points[one].instructions / points[other].instructions - 1

    def each(share: float, saved: int) -> float:
        return share * 1024 / saved if saved > 0 else 0.0

    here = number(arena)
    more = beyond(here, number(before))
    smaller = points[here - 1].ram - instance if here else 0
    further = beyond(here - 1, here) if here else 0.0
    return Fit(
        board=board,
        room=room,
        limit=limit,
        before=before,
        arena=arena,
        more=more,
        per_kb=each(more, before - arena),
        next_arena=smaller,
        next_per_kb=each(further, arena - smaller) if here else 0.0,
    )
