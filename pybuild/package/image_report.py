"""The cost of an image of several models, and what its models share.

Values only; knows nothing of how they were found or where they are printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pybuild.options.regions import RegionSpec
from pybuild.package.report import Report
from pybuild.plan.image_memory import Piece, lay_pieces
from pybuild.plan.regions.regions import ARENA_NAME
from pybuild.records import dataclass, renamed, with_old_keys

if TYPE_CHECKING:
    from pybuild.emit.c.image import ImageTables
    from pybuild.emit.tables.pool import Pool

# struct crt_turn on a 32-bit target
_TURN_BYTES = 16


@dataclass(frozen=True)
class ImageRam:
    """Units  bytes; separate: of the arena if no models took turns."""

    arena: int
    instance: int
    separate: int


@dataclass(frozen=True)
class ImageRegion:
    """A region that the user gave to all models; bytes: what they need of `limit`."""

    name: str
    speed: str
    bytes: int
    limit: int


@dataclass(frozen=True)
class ImageFlash:
    """Units  bytes; saved: what shared weights would take besides, each for itself."""

    weights: int
    tables: int
    saved: int


@dataclass(frozen=True)
class Shared:
    """A kernel or constant of several models; bytes of a kernel: 0, not known here."""

    symbol: str
    kind: str
    bytes: int
    models: tuple[str, ...]


@dataclass(frozen=True)
class Connection:
    """An output that is another model's input, in one buffer."""

    ends: str
    bytes: int


@dataclass(frozen=True)
class ImageBlock:
    """A block in a region of the image: a model's own memory, or a tensor that one
    model passes to another. Blocks of models that take turns may overlap.

    Units  bytes; at: from where the region begins
    model  "": of several
    """

    region: str
    at: int
    bytes: int
    model: str
    holds: str


@renamed(made="provenance")
@dataclass(frozen=True)
class ImageReport:
    """Several builds in figures; of each model what it has when it is alone."""

    name: str
    ram: ImageRam
    flash: ImageFlash
    shared: tuple[Shared, ...]
    exclusive: tuple[tuple[str, ...], ...]
    connections: tuple[Connection, ...]
    models: tuple[Report, ...]
    regions: tuple[ImageRegion, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    memory: tuple[ImageBlock, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, in a fixed order."""
        plain: dict[str, Any] = with_old_keys(self)
        return plain


def image_report(
    image: ImageTables, pool: Pool, reports: tuple[Report, ...]
) -> ImageReport:
    instances = sum(r.ram.instance for r in reports)
    instances += _TURN_BYTES * len(image.exclusive)
    arenas = {r.name: {ARENA_NAME: r.ram.arena} for r in reports}
    buffers = {w.buffer: w.output.tensor.bytes for w in image.wires}
    (apart,) = lay_pieces(arenas, (), (), list(buffers.values())) or ()
    wires = (Connection(str(wire), wire.output.tensor.bytes) for wire in image.wires)
    return ImageReport(
        name=image.name,
        ram=ImageRam(image.arena_bytes, instances, apart.together.bytes),
        flash=ImageFlash(
            pool.weight_bytes,
            sum(r.flash.tables for r in reports),
            pool.saved_bytes,
        ),
        shared=_shared(pool),
        exclusive=image.exclusive,
        connections=tuple(wires),
        models=reports,
        regions=tuple(_region(p, p.spec) for p in image.pieces if p.spec is not None),
        memory=tuple(_blocks(image)),
    )


def _blocks(image: ImageTables) -> Iterator[ImageBlock]:
    """In the order of regions and addresses."""
    told: dict[tuple[int, int], list[str]] = {}
    sizes: dict[tuple[int, int], int] = {}
    for wire in image.wires:
        told.setdefault(image.buffer(wire), []).append(str(wire))
        sizes[image.buffer(wire)] = wire.output.tensor.bytes
    for index, piece in enumerate(image.pieces):
        own = [
            ImageBlock(piece.name, piece.together.at[one.name], row.bytes, one.name, "")
            for one in image.models
            for row in one.regions
            if row.name == piece.name and row.bytes
        ]
        own += [
            ImageBlock(piece.name, at, sizes[number, at], "", ", ".join(ends))
            for (number, at), ends in told.items()
            if number == index
        ]
        yield from sorted(own, key=lambda block: (block.at, block.model))


def _region(piece: Piece, spec: RegionSpec) -> ImageRegion:
    return ImageRegion(piece.name, spec.speed, piece.together.bytes, spec.bytes)


def _shared(pool: Pool) -> tuple[Shared, ...]:
    sizes = {c.symbol: c.array.nbytes for c in (*pool.constants, *pool.images)}
    return tuple(
        Shared(
            symbol,
            "constant" if symbol in sizes else "kernel",
            sizes.get(symbol, 0),
            users,
        )
        for symbol, users in sorted(pool.users.items())
        if len(users) > 1
    )
