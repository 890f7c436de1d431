"""The rows that no other beats in everything that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# what is better where there is less of it, and where there is more
LESS, MORE = ("ram", "flash", "instructions", "cycles", "error"), ("accuracy",)


def front(
    rows: Sequence[Mapping[str, Any]], measures: Sequence[str], across: bool = False
) -> list[Mapping[str, Any]]:
    """In their order; of rows that are equal in all measures, all.

    measures  of LESS and MORE; rows without one of them, or of nothing built, are out
    across    rows of different models are compared, too
    """
    known = [row for row in rows if not row["problems"]]
    known = [row for row in known if all(row[name] is not None for name in measures)]
    kept: list[Mapping[str, Any]] = []
    for model in {"" if across else row["model"]: 0 for row in known}:
        kept += _best([row for row in known if model in ("", row["model"])], measures)
    order = {row["key"]: place for place, row in enumerate(rows)}
    return sorted(kept, key=lambda row: order[row["key"]])


def _best(
    rows: Sequence[Mapping[str, Any]], measures: Sequence[str]
) -> list[Mapping[str, Any]]:
    points = [_point(row, measures) for row in rows]
    # what beats a point comes before it in this order
    best: list[tuple[float, ...]] = []
    for point in sorted(set(points)):
        if not any(_beats(other, point) for other in best):
            best.append(point)
    kept = set(best)
    return [row for row, point in zip(rows, points, strict=True) if point in kept]


def _point(row: Mapping[str, Any], measures: Sequence[str]) -> tuple[float, ...]:
    return tuple(-row[name] if name in MORE else row[name] for name in measures)


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
