"""RAM against instructions, as a table's rows and as an SVG. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_WIDE, _HIGH, _EDGE = 640, 360, 60
_RED, _GREY = "#b03030", "#808080"


@dataclass(frozen=True)
class Point:
    """A plan that no other beats in both.

    Units  bytes of RAM, instance included; instructions as estimated, as a multiple of
           those of the fastest plan
    """

    ram: int
    instructions: float


@dataclass(frozen=True)
class Fit:
    """What the plan that fits a board costs, beside the one of a build for any board.

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


def svg(name: str, points: Sequence[Point]) -> str:
    """The points and the line between them; no script, no font of its own."""
    most = max(p.ram for p in points)
    top = max(max(p.instructions for p in points), 1.01)

    def x(ram: float) -> int:
        return round(_EDGE + (_WIDE - 2 * _EDGE) * ram / most)

    def y(factor: float) -> int:
        return round(_HIGH - _EDGE - (_HIGH - 2 * _EDGE) * (factor - 1) / (top - 1))

    def text(where: tuple[int, int], words: str, anchor: str = "middle") -> str:
        at = f'x="{where[0]}" y="{where[1]}" text-anchor="{anchor}"'
        return f'<text {at} font-family="sans-serif" font-size="12">{words}</text>'

    line = " ".join(f"{x(p.ram)},{y(p.instructions)}" for p in points)
    corners = f"{_EDGE},{_EDGE} {_EDGE},{_HIGH - _EDGE} {_WIDE - _EDGE},{_HIGH - _EDGE}"
    safe = name.replace("&", "&amp;").replace("<", "&lt;")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {_HIGH}">'
    drawn = [
        f'<polyline points="{corners}" fill="none" stroke="{_GREY}"/>',
        f'<polyline points="{line}" fill="none" stroke="{_RED}"/>',
        text((_WIDE // 2, 24), f"{safe}: RAM against instructions"),
        text((_WIDE // 2, _HIGH - 16), "bytes of RAM"),
        text((_EDGE - 6, _EDGE), f"{top:.2f}", "end"),
        text((_EDGE - 6, _HIGH - _EDGE), "1.00", "end"),
    ]
    for p in points:
        spot = f'cx="{x(p.ram)}" cy="{y(p.instructions)}" r="3"'
        drawn.append(f'<circle {spot} fill="{_RED}"/>')
    for p in (points[0], points[-1]):
        drawn.append(text((x(p.ram), _HIGH - _EDGE + 18), f"{p.ram:,}"))
    return "\n".join([head, *drawn, "</svg>", ""])
