"""Cuts a graph into stages by the bytes that are alive row by row: a stage's results
may overwrite rows of its inputs, and scratch counts only while it is used. This is
exact but slow, so it is tried only where the coarser count of partition.py does not
fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import add

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.offsets import round_up
from pybuild.plan.buffers.sharing import Block, Storage
from pybuild.plan.memory.live_ranges import Beyond, Piece, alive_by_step
from pybuild.plan.memory.row_offsets import taken_by
from pybuild.plan.schedule.lock_step import PUSH, Work, join
from pybuild.plan.schedule.partition import (
    BAND,
    COUNTER,
    LINK,
    LONGEST,
    LOOK,
    Cut,
    expand,
    fewest,
)
from pybuild.plan.schedule.shortest_path import NEVER, shortest_asked
from pybuild.plan.schedule.stages import Arrangement, Room, Search, Stage, arranged
from pybuild.records import dataclass

_MOST_BANDS = 1024  # of a lone step


@dataclass(frozen=True)
class _Needs:
    """The bytes that are alive beside the scratch of each node, at its worst band;
    still: if results must stay within the memory of their operands; tight: the peaks of
    both with the least scratch."""

    alive: tuple[int, ...]
    still: tuple[int, ...]
    tight: tuple[int, int]


class RowCuts:
    """The stages of a search, counted row by row.

    most_work  approximate work limit, in steps times bands
    """

    def __init__(self, search: Search, most_work: int) -> None:
        self.search, self.cuts = search, search.cuts
        self.still = False
        self._longest = self._affordable(most_work)
        self._needs: dict[tuple[int, int], _Needs | None] = {}
        root_of = search.views.of
        inputs = {root_of(name).root for name in search.graph.inputs}
        self._unspent = inputs - {root_of(name).root for name in search.spent}

    def _affordable(self, most_work: int) -> int:
        """Return the most nodes of a stage that can be counted within the work
        limit."""
        bands = sum(each[0].bands for each in self.cuts.joined if each)
        longest = 1
        while longest < LONGEST and (longest + 1) ** 3 * bands < 3 * most_work:
            longest += 1
        return longest

    def least(self, most_cost: float, still: bool) -> tuple[int, Arrangement]:
        """Return the fewest bytes at an allowed cost, and the stages that reach them.
        The cost is a multiple of the fastest stages' instructions.

        still  whether results must stay within the memory of their operands: otherwise
               each of many layers may move its result a few rows on, and none moves it
               back
        """
        self.still = still
        fastest = self.cuts.best(self.search.most)[0]
        most, cuts = fewest(self.best, fastest * most_cost, self.search.most)
        return most, self._arranged(cuts, most)

    def best(self, limit: int) -> tuple[float, list[Cut]]:
        """Return the instructions and cuts of the fastest stages with at most `limit`
        bytes alive."""
        cuts = self.cuts
        alone = [self._cost(i, i + 1, limit) for i in range(len(cuts.nodes))]

        def ways(end: int) -> Iterator[tuple[float, int]]:
            if cuts.nodes[end - 1][0].op == PUSH:
                return
            for i in cuts.begins(end):
                lone = i == end - 1
                yield alone[i] if lone else cuts.fastest[i][end - i - 1], i

        def exact(first: int, end: int) -> float:
            if end - first == 1:
                return alone[first]
            if cuts.roomy[first][end - first - 1] > limit:
                return self._cost(first, end, limit)
            return cuts.fastest[first][end - first - 1]

        cost, ends = shortest_asked(len(cuts.nodes), ways, exact)
        return cost, [Cut(a, self._chosen(a, b, limit)) for a, b in pairwise(ends)]

    def _cost(self, first: int, end: int, limit: int) -> float:
        chosen = self._chosen(first, end, limit)
        if not chosen:
            return NEVER
        each = BAND if end - first == 1 else BAND + LOOK + LINK * (end - first)
        return sum(c.cost + each * c.bands * c.images for c in chosen)

    def _chosen(self, first: int, end: int, limit: int) -> tuple[Candidate, ...]:
        """Return the fastest kernels of a stage that fit into this many bytes, or () if
        there are none."""
        room = limit - self.cuts.bases[first][end - first - 1]
        if end - first == 1:
            able = [c for c in self.cuts.alone[first] if c.scratch <= room]
            return tuple(able[:1]) or self._by_rows(first, end, limit)
        if room >= self.cuts.scratch[first][end - first - 1]:
            return tuple(options[0] for options in self.cuts.joined[first:end])
        found = self._by_rows(first, end, limit)
        if found or self.cuts.tight[first][end - first - 1] > limit:
            return found
        return self._fitting(first, end, [room] * (end - first))

    def _by_rows(self, first: int, end: int, limit: int) -> tuple[Candidate, ...]:
        cuts = self.cuts
        if max(cuts.crossing(first), cuts.crossing(end)) > limit:
            return ()
        needs = self.needs(first, end)
        if needs is None or needs.tight[self.still] > limit:
            return ()
        alive = needs.still if self.still else needs.alive
        return self._fitting(first, end, [limit - bytes_ for bytes_ in alive])

    def _fitting(
        self, first: int, end: int, rooms: Sequence[int]
    ) -> tuple[Candidate, ...]:
        chosen = list[Candidate]()
        for options, room in zip(self.cuts.joined[first:end], rooms, strict=True):
            for candidate in options:
                if candidate.scratch <= room:
                    chosen.append(candidate)
                    break
            else:
                return ()
        return tuple(chosen)

    def needs(self, first: int, end: int) -> _Needs | None:
        """Return the needs of a stage, or None if they are unknown or too slow to
        count."""
        if (first, end) not in self._needs:
            self._needs[first, end] = self._counted(first, end)
        return self._needs[first, end]

    def _counted(self, first: int, end: int) -> _Needs | None:
        cuts, views = self.cuts, self.search.views
        nodes = cuts.nodes[first:end]
        joined = [options[0] for options in cuts.joined[first:end] if options]
        if len(joined) < len(nodes) or len(nodes) > self._longest:
            return None
        works = [
            w for (n, _), c in zip(nodes, joined, strict=True) for w in expand(n, c)
        ]
        if len(works) == 1 and not 1 < works[0][1].bands <= _MOST_BANDS:
            return None
        groups = self._touched(nodes, works)
        found = self._alone(first, end, works, groups)
        given = {g.name for g in groups if g.first < first}
        later = {g.name for g in groups if g.last >= end}
        beyond = Beyond(given, later, given - self._unspent)
        alive, pieces = alive_by_step(self.search.graph, views, found, beyond)
        beside = cuts.alive(first, end) - sum(round_up(g.bytes, 4) for g in groups)
        beside += COUNTER * len(works) if found.stages[0].links else 0
        step, needs = 0, list[int]()
        for (node, _), candidate in zip(nodes, joined, strict=True):
            count = len(expand(node, candidate))
            needs.append(beside + round_up(max(alive[step : step + count]), 4))
            step += count
        still = tuple(needs)
        if _moves(found.storage.blocks, pieces):
            still = (cuts.bases[first][end - first - 1],) * len(nodes)
        least = [options[-1].scratch for options in cuts.joined[first:end]]
        tight = max(map(add, needs, least)), max(map(add, still, least))
        return _Needs(tuple(needs), still, tight)

    def _touched(
        self, nodes: Sequence[tuple[Node, object]], works: Sequence[Work]
    ) -> list[Block]:
        """Return the groups of views that a stage reads or writes."""
        root_of = self.search.views.of
        roots = {root_of(a.tensor).root for _, c in works for a in c.inputs}
        roots |= {root_of(a.tensor).root for _, c in works for a in c.outputs}
        roots |= {root_of(name).root for n, _ in nodes for name in n.inputs if name}
        return [self.cuts.groups[n] for n in sorted(roots) if n in self.cuts.groups]

    def _alone(
        self, first: int, end: int, works: Sequence[Work], groups: Sequence[Block]
    ) -> Arrangement:
        """Return a stage as an arrangement of its own: the groups of earlier and later
        stages are alive before and after it."""
        together, held = None, self.cuts.held(first, end)
        if len(works) > 1:
            together = join(works, self.search.views, held)
        rings = together.rings if together else {}
        blocks = [
            Block(g.name, g.bytes, -(g.first < first), int(g.last >= end))
            for g in groups
            if g.name not in rings
        ]
        block_of = {block.name: block.name for block in blocks}
        if together:
            blocks += [
                Block(name, size, 0, 0) for name, size in together.blocks.items()
            ]
        stage = Stage(0, len(works), together.links if together else ())
        storage = Storage(tuple(blocks), block_of)
        return Arrangement(tuple(works), (stage,), storage, rings)

    def _arranged(self, found: Sequence[Cut], limit: int) -> Arrangement:
        """Return the arranged stages, with the scratch that each step may use."""
        rooms: list[Room] = []
        for cut in found:
            end = cut.first + len(cut.candidates)
            base = self.cuts.bases[cut.first][end - cut.first - 1]
            fits = all(c.scratch <= limit - base for c in cut.candidates)
            needs = None if fits else self.needs(cut.first, end)
            for i, candidate in enumerate(cut.candidates):
                free = limit - (needs.alive[i] if needs else base)
                whole = fits and end - cut.first == 1
                room = Room(max(free, candidate.scratch), whole)
                node = self.cuts.nodes[cut.first + i][0]
                rooms += [room] * len(expand(node, candidate))
        return replace(arranged(self.search, found), rooms=tuple(rooms))


def _moves(blocks: Sequence[Block], pieces: Mapping[str, Sequence[Piece]]) -> bool:
    """Return True if a result that outlives the stage can neither lie within the input
    that is last read here, nor contain it."""
    before = [b for b in blocks if b.first < 0 and b.last == 0]
    after = [b for b in blocks if b.first == 0 and b.last > 0]
    if len(before) != 1 or len(after) != 1:
        return False
    (old,), (new,) = before, after
    low, high = sorted((0, old.bytes - new.bytes))
    for left, right in taken_by(pieces[old.name], pieces[new.name]):
        if left < low < right:
            low = round_up(right, 4)
    return low > high
