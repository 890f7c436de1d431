"""Places all models of an image in one memory; models that never run together
overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.options.regions import RegionSpec
from pybuild.plan.buffers.offsets import round_up
from pybuild.plan.plan import ARENA_ALIGN
from pybuild.plan.regions.regions import ARENA_NAME
from pybuild.records import dataclass


@dataclass(frozen=True)
class Together:
    """Offsets in a region of the image, all multiples of ARENA_ALIGN.

    Units    bytes
    at       the offset of each model's own region of that name
    buffers  the offsets of tensors passed between models; no model overlaps them
    """

    at: Mapping[str, int]
    buffers: tuple[int, ...]
    bytes: int


def lay_together(
    arenas: Mapping[str, int],
    exclusive: Sequence[Sequence[str]],
    buffers: Sequence[int],
) -> Together:
    """Place all models and buffers side by side; exclusive models overlap.

    arenas     bytes of each model's arena
    exclusive  groups of models whose arenas start at the same offset
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


@dataclass(frozen=True)
class Piece:
    """A region of an image. spec: the region as the user described it, or None for the
    only arena."""

    name: str
    together: Together
    spec: RegionSpec | None = None


def lay_pieces(
    sizes: Mapping[str, Mapping[str, int]],
    specs: Sequence[RegionSpec],
    exclusive: Sequence[Sequence[str]],
    buffers: Sequence[int],
) -> tuple[Piece, ...] | None:
    """Return the regions of an image; buffers lie in the first region that has room for
    all of them.

    sizes  bytes of each model's regions: model, region
    Errors  None where the buffers fit nowhere
    """
    pieces = []
    waiting = list(buffers)
    for name in [spec.name for spec in specs] or [ARENA_NAME]:
        spec = next((spec for spec in specs if spec.name == name), None)
        arenas = {model: found.get(name, 0) for model, found in sizes.items()}
        laid = lay_together(arenas, exclusive, waiting)
        if spec is not None and laid.bytes > spec.bytes:
            laid = lay_together(arenas, exclusive, ())
        if laid.buffers:
            waiting = []
        pieces.append(Piece(name, laid, spec))
    return None if waiting else tuple(pieces)


class Room:
    """The free room of each region for the next model of an image."""

    def __init__(
        self, specs: Sequence[RegionSpec], exclusive: Sequence[Sequence[str]]
    ) -> None:
        self.specs = specs
        self.exclusive = exclusive
        self.sizes: dict[str, dict[str, int]] = {}

    def left(self, model: str) -> tuple[RegionSpec, ...]:
        """Return the regions as the next model may use them: smaller by what earlier
        models use, unless it takes turns with them."""
        group = next((g for g in self.exclusive if model in g), (model,))
        others = {n: sizes for n, sizes in self.sizes.items() if n not in group}
        found = []
        for spec in self.specs:
            arenas = {name: sizes.get(spec.name, 0) for name, sizes in others.items()}
            groups = [[n for n in g if n in arenas] for g in self.exclusive]
            used = lay_together(arenas, groups, ()).bytes
            free = max(0, spec.bytes - used)
            # whole steps of what arenas begin at: the next one fits after it, too
            found.append(replace(spec, bytes=free // ARENA_ALIGN * ARENA_ALIGN))
        return tuple(found)

    def take(self, model: str, sizes: Mapping[str, int]) -> None:
        """Reserve the bytes of a model's regions, by region name."""
        self.sizes[model] = dict(sizes)
