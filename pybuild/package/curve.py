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
