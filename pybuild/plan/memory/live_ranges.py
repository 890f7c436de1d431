"""Live ranges of the pieces of a block: of rows, and of slots of rings, by the bands
that write and read them. Knows times, no addresses. A time is one band of a stage.
Everything that the band reads or writes is alive at that time, so kernels may access
their rows in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import RowAccess
from pybuild.plan.buffers.sharing import Block, Storage, Views, scratch_of
from pybuild.plan.schedule.lock_step import Ring, Work, band_times, last_reads
from pybuild.plan.schedule.stages import Arrangement, Stage
from pybuild.records import dataclass

# a lone step with more bands counts as one time; the most pieces of one tensor
_MOST_BANDS, _MOST_PIECES = 1024, 128
# limits on blocks, and on the bands of all stages; beyond them blocks stay whole
_MOST_BLOCKS, _MOST_TIMES = 600, 20_000

# (first byte, end, time) for consecutive runs of a tensor's bytes
Marks = list[tuple[int, int, int]]


@dataclass(frozen=True)
class Piece:
    """The bytes of a block from `at` to before `end`; bit t of `when` is set if they
    are in use at time t."""

    at: int
    end: int
    when: int


def alive_in(pieces: Sequence[Piece]) -> int:
    """Return all times at which any of the pieces is alive, as bits."""
    when = 0
    for piece in pieces:
        when |= piece.when
    return when


def most_alive(blocks: Sequence[Sequence[Piece]]) -> list[int]:
    """Return the bytes of each block that are alive at the time of the peak."""
    time = int(_sums(blocks).argmax())
    return [sum(p.end - p.at for p in block if p.when >> time & 1) for block in blocks]


def _sums(blocks: Iterable[Sequence[Piece]]) -> Array:
    """Return the bytes that are alive at each time."""
    bytes_ = Counter[int]()
    for block in blocks:
        for piece in block:
            bytes_[piece.when] += piece.end - piece.at
    count = max((when.bit_length() for when in bytes_), default=0)
    sums = np.zeros(count + 1, np.int64)
    for when, size in bytes_.items():
        turns, sign = when ^ when << 1, size  # it begins, or ends, at each bit
        while turns:
            turn = turns & -turns
            sums[turn.bit_length() - 1] += sign
            turns, sign = turns ^ turn, -sign
    sums.cumsum(out=sums)
    return sums


@dataclass(frozen=True)
class Pieces:
    """An arrangement with one scratch block per layer, and the pieces of each block, by
    name."""

    found: Arrangement
    of: Mapping[str, Sequence[Piece]]

    @property
    def most(self) -> int:
        """The most bytes that are alive at one time."""
        return sum(most_alive([*self.of.values()]))


def in_pieces(
    graph: Graph,
    views: Views,
    found: Arrangement,
    others: Sequence[Block] = (),
    spent: Collection[str] = (),
) -> Pieces | None:
    """Return the pieces of all blocks, or None if there are too many.

    others  blocks that stages need as wholes
    spent   inputs whose rows may be overwritten while later rows are still to be read
    """
    bands = sum(c.bands for _, c in found.steps if c.bands <= _MOST_BANDS)
    if len(found.steps) > _MOST_BLOCKS or bands > _MOST_TIMES:
        return None
    lives = _Lives(graph, views, found, _beyond(graph, views, spent))
    blocks = [b for b in found.storage.blocks if b.name not in found.scratch]
    made = {b.name: lives.pieces(b) for b in (*blocks, *others)}
    for block, pieces in lives.scratch():
        blocks.append(block)
        made[block.name] = pieces
    names = tuple(scratch_of(n) if c.scratch else "" for n, c in found.steps)
    storage = Storage(tuple(blocks), found.storage.block_of)
    return Pieces(replace(found, storage=storage, scratch=names), made)


@dataclass(frozen=True)
class Beyond:
    """Roots of groups: `given` exist before the stages, `later` are read after them,
    and `spent` are those of `given` whose rows may be overwritten."""

    given: Collection[str]
    later: Collection[str]
    spent: Collection[str]


def _beyond(graph: Graph, views: Views, spent: Collection[str]) -> Beyond:
    before = (*graph.inputs, *graph.state)
    if graph.sampled:  # outputs are read while the next samples come
        before += graph.outputs
    names = (before, (*graph.outputs, *graph.state), spent)
    return Beyond(*({views.of(name).root for name in each} for each in names))


def alive_by_step(
    graph: Graph, views: Views, found: Arrangement, beyond: Beyond
) -> tuple[list[int], Mapping[str, Sequence[Piece]]]:
    """For a single stage, return the bytes of its blocks that are alive at the worst
    band of each step, and the pieces of its blocks."""
    lives = _Lives(graph, views, found, beyond)
    (clock,) = lives.clocks
    pieces = {b.name: lives.pieces(b) for b in found.storage.blocks}
    sums = _sums(pieces.values())
    sums = np.concatenate([sums, np.zeros(max(clock.end - len(sums), 0), np.int64)])
    every = np.arange(clock.start, clock.end)
    times = clock.times or [every] * len(clock.works)
    return [int(sums[when].max()) for when in times], pieces


# ---- times -------------------------------------------------------------------------


def _between(first: int, last: int) -> int:
    """The bits of all times from `first` to `last`, both included."""
    return ((1 << (last - first + 1)) - 1) << first if last >= first else 0


def _at(times: Array) -> int:
    """The bits of these times, which are in rising order."""
    flags = np.zeros(int(times[-1]) + 1, np.uint8)
    flags[times] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


@dataclass(frozen=True)
class Clock:
    """The times of a stage, from `start` to before `end`, and the times of each step's
    bands; `times` is None if the whole stage counts as one time."""

    start: int
    end: int
    works: Sequence[Work]
    times: Sequence[Array] | None


def clocks(found: Arrangement) -> list[Clock]:
    """Return the clock of each stage in turn; times start at 1, and 0 is before the
    run."""
    made: list[Clock] = []
    alone = (Stage(i, i + 1) for i in range(len(found.steps)))
    for stage in found.stages or alone:
        works = found.steps[stage.first : stage.end]
        made.append(_clock(works, stage, made[-1].end if made else 1))
    return made


def _clock(works: Sequence[Work], stage: Stage, now: int) -> Clock:
    bands = [candidate.bands for _, candidate in works]
    if stage.links:
        each = band_times(bands, stage.links)
    elif len(works) == 1 and works[0][1].images == 1 and 1 < bands[0] <= _MOST_BANDS:
        each = [np.arange(bands[0])]
    else:
        return Clock(now, now + 1, works, None)
    times = [one + now for one in each]
    return Clock(now, now + sum(bands), works, times)


# ---- what is alive -----------------------------------------------------------------


@dataclass
class _Use:
    """The use of a group of views in a stage: the accesses that make and read it, by
    step; the layers that name it; and the layers whose accesses are known (`seen`)."""

    made: list[tuple[int, RowAccess]] = field(default_factory=list)
    read: list[tuple[int, RowAccess]] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)


class _Lives:
    """Computes when each byte of an arrangement is in use; time 0 is before the run."""

    def __init__(
        self, graph: Graph, views: Views, found: Arrangement, beyond: Beyond
    ) -> None:
        self.graph, self.views, self.found = graph, views, found
        self.given, self.read_later = beyond.given, beyond.later
        self.spent = beyond.spent
        self.clocks = clocks(found)
        self.after = self.clocks[-1].end if self.clocks else 1
        self.uses: dict[str, dict[int, _Use]] = {}
        for number, clock in enumerate(self.clocks):
            self._find_uses(number, clock)
        self.within: dict[str, list[str]] = {}  # a block's groups
        for root, name in found.storage.block_of.items():
            self.within.setdefault(name, []).append(root)

    def pieces(self, block: Block) -> list[Piece]:
        within = self._hull(block.first, block.last)
        parts = [
            part
            for root in self.within.get(block.name, ())
            for part in self._whole(root, block)
        ]
        block_of = self.found.storage.block_of
        for root, ring in self.found.rings.items():
            if block_of.get(ring.home, ring.home) == block.name:
                parts += self._ring(root, ring)
        if not block.bytes or not parts or any(part.when & ~within for part in parts):
            return [Piece(0, block.bytes, within)]
        return _joined(parts)

    def scratch(self) -> Iterator[tuple[Block, list[Piece]]]:
        """Yield the scratch block of each layer, with its pieces."""
        sizes: dict[str, tuple[int, int, int]] = {}
        for number, clock in enumerate(self.clocks):
            for step, (node, candidate) in enumerate(clock.works):
                when = _between(clock.start, clock.end - 1)
                if clock.times is not None:
                    when = _at(clock.times[step])
                if candidate.scratch:
                    name = scratch_of(node)
                    size, before, _ = sizes.get(name, (0, 0, 0))
                    most = max(size, candidate.scratch)
                    sizes[name] = (most, before | when, number)
        for name, (size, when, number) in sizes.items():
            yield Block(name, size, number, number), [Piece(0, size, when)]

    def _hull(self, first: int, last: int) -> int:
        """The bits of all times from stage `first` to stage `last`; -1 is before the
        run."""
        begin = self.clocks[first].start if first >= 0 else 0
        done = last >= len(self.clocks)
        return _between(begin, self.after if done else self.clocks[last].end - 1)

    def _find_uses(self, number: int, clock: Clock) -> None:
        def use(tensor: str) -> _Use:
            each = self.uses.setdefault(self.views.of(tensor).root, {})
            return each.setdefault(number, _Use())

        for step, (node, candidate) in enumerate(clock.works):
            for name in (*node.inputs, *node.outputs):
                if name and name not in self.graph.constants:
                    use(name).named.add(node.output)
            for access in candidate.outputs:
                use(access.tensor).made.append((step, access))
                use(access.tensor).seen.add(node.output)
            for access in candidate.inputs:
                use(access.tensor).read.append((step, access))
                use(access.tensor).seen.add(node.output)

    # ---- tensors -------------------------------------------------------------------

    def _whole(self, root: str, block: Block) -> Iterator[Piece]:
        """Yield the pieces of a group outside rings: alive from the write of a row to
        its last read."""
        size = self.graph.tensor(root).bytes
        uses = self.uses.get(root, {})
        if not uses:
            yield Piece(0, size, self._hull(block.first, block.last))
            return
        births, deaths = [(0, size, 0)], [(0, size, self.after)]
        if root not in self.given:
            births = self._births(uses[min(uses)], self.clocks[min(uses)], size)
        kept = root in self.given and block.last >= len(self.clocks)
        if root not in self.read_later and not kept:
            spent = root not in self.given or root in self.spent
            deaths = self._deaths(uses[max(uses)], self.clocks[max(uses)], size, spent)
        at = i = j = 0
        while at < size:
            end = min(births[i][1], deaths[j][1])
            yield Piece(at, end, _between(births[i][2], deaths[j][2]))
            at = end
            i, j = i + (births[i][1] == at), j + (deaths[j][1] == at)

    def _births(self, use: _Use, clock: Clock, size: int) -> Marks:
        rows = self._rows(use, size)
        if not rows or len(use.made) != 1 or clock.times is None:
            return [(0, size, clock.start)]
        ((step, access),) = use.made
        if access.stride == 0:
            return [(0, size, clock.start)]
        made = clock.times[step][np.arange(rows) // access.stride]
        return _marks(made, size, np.minimum)

    def _deaths(self, use: _Use, clock: Clock, size: int, spent: bool) -> Marks:
        rows = self._rows(use, size)
        if not rows or not spent or clock.times is None:
            return [(0, size, clock.end - 1)]
        last = np.full(rows, clock.start)
        for step, access in use.made:
            if access.stride == 0:
                return [(0, size, clock.end - 1)]
            when = clock.times[step][np.arange(rows) // access.stride]
            last = np.maximum(last, when)
        for step, access in use.read:
            last = last_reads(access, clock.times[step], last)
        return _marks(last, size, np.maximum)

    def _rows(self, use: _Use, size: int) -> int:
        """Return the number of rows if all steps divide the tensor into the same rows,
        else 0."""
        accesses = [access for _, access in (*use.made, *use.read)]
        forms = {(a.rows, a.rows * a.row_bytes) for a in accesses}
        at = {self.views.of(a.tensor).at for a in accesses}
        alike = len(forms) == 1 and at == {0} and use.named <= use.seen
        if not alike or any(a.ring for a in accesses):
            return 0
        ((rows, total),) = forms
        return rows if total == size else 0

    def _ring(self, root: str, ring: Ring) -> Iterator[Piece]:
        """Yield the slots of a ring as pieces."""
        ((number, use),) = self.uses[root].items()
        times = self.clocks[number].times
        assert times is not None
        ((step, access),) = use.made
        if access.ring or any(a.ring for _, a in use.read):
            last = max(int(times[s][-1]) for s, _ in (*use.made, *use.read))
            yield Piece(0, ring.rows * ring.pitch, _between(int(times[step][0]), last))
            return
        made = times[step][np.arange(access.rows) // access.stride]
        last_read = made
        for reader, read in use.read:
            last_read = last_reads(read, times[reader], last_read)
        for slot in range(min(ring.rows, access.rows)):
            when = 0
            for row in range(slot, access.rows, ring.rows):
                when |= _between(int(made[row]), int(last_read[row]))
            yield Piece(slot * ring.pitch, (slot + 1) * ring.pitch, when)


def _marks(when: Array, size: int, worst: np.ufunc) -> Marks:
    """Return the marks of rows; if there are many rows, a few share one mark."""
    rows = len(when)
    starts = np.arange(0, rows, -(-rows // _MOST_PIECES))
    ends = (int(row) * (size // rows) for row in (*starts[1:], rows))
    made: Marks = []
    for end, time in zip(ends, worst.reduceat(when, starts), strict=True):
        made.append((made[-1][1] if made else 0, end, int(time)))
    return made


def _joined(parts: Sequence[Piece]) -> list[Piece]:
    """Cut the pieces so that none overlap; join neighbours that are in use at the same
    times."""
    ends = sorted({n for part in parts for n in (part.at, part.end)})
    index = {end: i for i, end in enumerate(ends)}
    when = [0] * len(ends)
    for part in parts:
        for i in range(index[part.at], index[part.end]):
            when[i] |= part.when
    found: list[Piece] = []
    for a, b, alive in zip(ends, ends[1:], when, strict=False):
        if found and (found[-1].end, found[-1].when) == (a, alive):
            found[-1] = Piece(found[-1].at, b, alive)
        else:
            found.append(Piece(a, b, alive))
    return found
