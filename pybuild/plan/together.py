"""One arena for all models of an image: who lies where, who lies on top of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybuild.plan.memory import round_up
from pybuild.plan.plan import ARENA_ALIGN


@dataclass(frozen=True)
class Together:
    """Offsets in the image's arena, all of them multiples of ARENA_ALIGN.

    Units    bytes
    at       of each model's own arena
    buffers  of what models hand to each other; no model lies there
    """

    at: Mapping[str, int]
    buffers: tuple[int, ...]
    bytes: int


def lay_together(
    arenas: Mapping[str, int],
    exclusive: Sequence[Sequence[str]],
    buffers: Sequence[int],
) -> Together:
    """Every model and buffer by itself, except models that never run together.

    arenas     bytes of each model's arena
    exclusive  groups of models whose arenas begin at one place
    buffers    bytes of each
    """
    grouped = {name: tuple(group) for group in exclusive for name in group}
    at: dict[str, int] = {}
    top = 0
    for name in arenas:
        if name in at:
            continue
        group = grouped.get(name, (name,))
        at.update({member: top for member in group})
        top += round_up(max(arenas[member] for member in group), ARENA_ALIGN)
    places = []
    for size in buffers:
        places.append(top)
        top += round_up(size, ARENA_ALIGN)
    return Together({name: at[name] for name in arenas}, tuple(places), top)
