"""Cuts a graph into stages, each of which advances in lock step. The bytes alive in a
stage do not depend on the other cuts, so the best cuts are a shortest path. Knows bytes
alive at once, no addresses.
"""

from __future__ import annotations

import functools
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import add

import numpy as np

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.ops.base.signatures import WHEN_SET
from pybuild.ops.shape import ASSIGN
from pybuild.plan.buffers.offsets import round_up
from pybuild.plan.buffers.sharing import Block, Views
from pybuild.plan.schedule.lock_step import PUSH, Work, can_join, join
from pybuild.plan.schedule.saved import Saved
from pybuild.plan.schedule.shortest_path import NEVER, Numbers, by_end, shortest
from pybuild.records import dataclass

# approximate instructions of the runner: for a band, for a band in lock step, and there
# for each link of the stage
BAND, LOOK, LINK = 60, 40, 9
# the most nodes of a stage; work limit for trying stages, in steps times bands
LONGEST = 60
_MOST_WORK = 2_000_000
COUNTER = 2


@dataclass(frozen=True)
class Cut:
    """A stage: the nodes from `first` on, with the kernel of each."""

    first: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Held:
    """The groups that the stage of the nodes from `first` to before `end` shares with
    others. Membership is computed on demand, because a graph has many possible stages.
    """

    groups: Mapping[str, Block]
    fixed: Collection[str]
    first: int
    end: int

    def __contains__(self, name: object) -> bool:
        group = self.groups.get(str(name))
        if group is None:  # those of `fixed` take no memory: they are not groups
            return name in self.fixed
        return group.first < self.first or group.last >= self.end


def expand(node: Node, candidate: Candidate) -> list[Work]:
    """Return the steps of a node: one, or two if its kernel has a finishing step."""
    if candidate.finish is None:
        return [(node, candidate)]
    return [(node, replace(candidate, finish=None)), (node, candidate.finish)]


class Cuts:
    """All stages that a graph could have.

    nodes   in execution order, each with its candidates
    groups  the block of each group of views, with its live range in nodes
    known   facts about stages of this graph that were already found
    apart   pairs of node numbers that must not be in one stage
    """

    def __init__(
        self,
        nodes: Sequence[tuple[Node, Sequence[Candidate]]],
        views: Views,
        groups: Sequence[Block],
        fixed: frozenset[str],
        known: Saved,
        apart: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.nodes, self.views, self._known = nodes, views, known.found
        self.fixed = fixed
        self.alone = [_cheapest_first(options) for _, options in nodes]
        self._in_place = [
            set.intersection(*(set(c.in_place) for c in o)) for o in self.alone
        ]
        self.joined = [_joinable(node, options) for node, options in nodes]
        self._works = [
            expand(node, options[0]) if options else []
            for (node, _), options in zip(nodes, self.joined, strict=True)
        ]
        self._forms = [tuple(known.form(*w) for w in works) for works in self._works]
        self.groups = {group.name: group for group in groups}
        self._edges = self._find_edges()
        self._saved: dict[tuple[int, int], int] = {}
        # for stages that begin with a node: edges that are summed up, and their sum
        self._between: dict[int, tuple[int, int]] = {}
        self._best: dict[int, tuple[float, list[Cut]]] = {}
        self.work = 0
        self._ends = [len(nodes)] * len(nodes)
        for first, end in apart:
            for i in range(first + 1):
                self._ends[i] = min(self._ends[i], end)
        self._prepare()

    def _find_edges(self) -> list[int]:
        """Find nodes that split a stage into independent parts: everything made before
        them is read before them, or by them."""
        reach = list(range(len(self.nodes)))
        for group in self.groups.values():
            if 0 <= group.first < len(reach):
                last = min(group.last, len(reach) - 1)
                reach[group.first] = max(reach[group.first], last)
        edges, furthest = [], 0
        for index, (_, options) in enumerate(self.nodes):
            if furthest <= index and not any(c.in_place for c in options):
                edges.append(index)
            furthest = max(furthest, reach[index])
        return edges

    def _prepare(self) -> None:
        """Compute the bytes alive in every possible stage, without scratch."""
        count = len(self.nodes)
        begin, end = [0] * (count + 2), [0] * (count + 2)
        for group in self.groups.values():
            begin[max(group.first, -1) + 1] += round_up(group.bytes, 4)
            end[min(group.last, count) + 1] += round_up(group.bytes, 4)
        self._begun, self._ended = list(accumulate(begin)), [0, *accumulate(end)]
        begun, ended = self._begun, self._ended
        # a graph has many stages: arrays take a fifth of the bytes of Python lists
        self.bases = [
            array("q", [begun[i + 1] - ended[i + 1] - self._over(i)])
            for i in range(count)
        ]
        for size in range(2, LONGEST + 1):
            if self.work > _MOST_WORK:
                break  # of a large graph: its stages stay shorter
            for i in range(count - size + 1):
                j, row = i + size, self.bases[i]
                able = self.joined[i] and self.joined[j - 1] and j <= self._ends[i]
                if len(row) == size - 1 and able:
                    alive = begun[j] - ended[i + 1]
                    row.append(alive - self._saving(i, j) + COUNTER * size)
        first = [row[0] if row else None for row in self.joined]
        self.costs = [0, *accumulate(c.cost if c else 0 for c in first)]
        self.bands = [0, *accumulate(c.bands if c else 0 for c in first)]
        needed = [c.scratch if c else 0 for c in first]
        self.scratch = [
            array("q", accumulate(needed[i : i + len(row)], max))
            for i, row in enumerate(self.bases)
        ]

    def _over(self, index: int) -> int:
        """Return the bytes that a node alone saves by writing its result over an
        operand."""
        node, made = self.nodes[index][0], self.views.of(self.nodes[index][0].output)
        result = self.groups.get(made.root)
        if result is None or result.first != index:
            return 0
        inputs = [self.groups.get(self.views.of(name).root) for name in node.inputs]
        for position in self._in_place[index]:
            group = inputs[position]
            if group is not None and group.last == index and inputs.count(group) == 1:
                at = self.views.of(node.inputs[position]).at
                if at == 0 and group.bytes == result.bytes:
                    return round_up(result.bytes, 4)
        return 0

    def _saving(self, first: int, end: int) -> int:
        """The bytes that rings save in a stage of the nodes from `first` to before
        `end`."""
        edges, last = self._edges, end - 1
        begin, stop = bisect_left(edges, first), bisect_left(edges, end)
        if begin == stop:
            return self._part(first, last)
        # stages are visited after the shorter ones with the same first node
        known, between = self._between.get(first, (begin, 0))
        for at in range(known, stop - 1):
            between += self._part(edges[at], edges[at + 1])
        self._between[first] = stop - 1, between
        before = self._part(first, edges[begin]) if first < edges[begin] else 0
        behind = self._part(edges[stop - 1], last) if edges[stop - 1] < last else 0
        return before + between + behind

    def _part(self, first: int, last: int) -> int:
        if (first, last) not in self._saved:
            works = [w for each in self._works[first : last + 1] for w in each]
            forms = [n for each in self._forms[first : last + 1] for n in each]
            self.work += len(works) * sum(c.bands for _, c in works)
            held = self.held(first, last + 1)
            self._saved[first, last] = self._joined(works, tuple(forms), held)
        return self._saved[first, last]

    def _joined(self, works: Sequence[Work], forms: tuple[int, ...], held: Held) -> int:
        """Return the bytes that rings save if these steps advance together."""
        root_of = self.views.of
        made = {root_of(a.tensor).root for _, c in works for a in c.outputs}
        if all(root in held for root in made):
            return 0  # nothing that could be a ring
        roots = made | {root_of(a.tensor).root for _, c in works for a in c.inputs}
        key = forms, frozenset(root for root in roots if root in held)
        if key not in self._known:
            found = join(works, self.views, held)
            whole = {
                root: round_up(self.groups[root].bytes, 4)
                for root in found.rings
                if root in self.groups
            }
            kept = sum(round_up(size, 4) for size in found.blocks.values())
            self._known[key] = sum(whole.values()) - kept
        return self._known[key]

    def held(self, first: int, end: int) -> Held:
        """Return the groups that a stage shares with others, so that they must be
        whole."""
        return Held(self.groups, self.fixed, first, end)

    def alive(self, first: int, end: int) -> int:
        """Return the bytes of all groups that are alive during a stage, if held
        whole."""
        return self._begun[end] - self._ended[first + 1]

    def crossing(self, at: int) -> int:
        """Return the bytes of the groups that are alive across the cut before a
        node."""
        return self._begun[at] - self._ended[at + 1]

    def begins(self, end: int) -> Iterator[int]:
        """Yield the possible first nodes of a stage that ends before node `end`."""
        for first in range(max(0, end - LONGEST), end):
            if end - first <= len(self.bases[first]):
                yield first

    # ---- the best cuts -------------------------------------------------------------

    @functools.cached_property
    def fastest(self) -> list[array[float]]:
        """For each stage of two or more nodes: the instructions of the fastest
        kernels."""
        found = []
        for i, row in enumerate(self.bases):
            made = array("d", [NEVER])
            for size in range(2, len(row) + 1):
                each = BAND + LOOK + LINK * size
                bands = self.bands[i + size] - self.bands[i]
                made.append(self.costs[i + size] - self.costs[i] + each * bands)
            found.append(made)
        return found

    @functools.cached_property
    def roomy(self) -> list[array[int]]:
        """For each stage: the bytes with which the fastest kernels fit; for a single
        node, without scratch."""
        found = []
        for row, scratch in zip(self.bases, self.scratch, strict=True):
            made = array("q", map(add, row, scratch))
            made[0] = row[0]
            found.append(made)
        return found

    @functools.cached_property
    def tight(self) -> list[array[int]]:
        """For each stage: the bytes with which the kernels with the least scratch
        fit."""
        least = [options[-1].scratch if options else 0 for options in self.joined]
        found = []
        for i, row in enumerate(self.bases):
            made = array("q", map(add, row, accumulate(least[i : i + len(row)], max)))
            made[0] = row[0] + self.alone[i][-1].scratch if self.alone[i] else row[0]
            found.append(made)
        return found

    def cost(self, first: int, end: int, limit: int) -> float:
        """Return the instructions of a stage within `limit` bytes, or infinity if it
        does not fit."""
        if self.nodes[end - 1][0].op == PUSH:
            return NEVER  # rows are there to be read as they come
        bases = self.bases[first]
        if end - first > len(bases):
            return NEVER
        room = limit - bases[end - first - 1]
        alone = end - first == 1
        if not alone and self.roomy[first][end - first - 1] <= limit:
            return self.fastest[first][end - first - 1]
        total = 0.0
        bands = 0
        for options in (self.alone if alone else self.joined)[first:end]:
            for candidate in options:
                if candidate.scratch <= room:
                    break
            else:
                return NEVER
            total += candidate.cost
            bands += candidate.bands * candidate.images
        each = BAND if alone else BAND + LOOK + LINK * (end - first)
        return total + each * bands

    @functools.cached_property
    def _by_end(self) -> tuple[Numbers, Numbers, Numbers]:
        """`tight`, `roomy` and `fastest`, arranged by `by_end`. No stage may end at a
        pushed input, whose rows must be read as they arrive, so such stages never fit.
        """
        never = np.iinfo(np.int64).max
        tight, roomy = by_end(self.tight, never), by_end(self.roomy, never)
        tight[[i for i, (node, _) in enumerate(self.nodes, 1) if node.op == PUSH]] = (
            never
        )
        return tight, roomy, by_end(self.fastest, NEVER)

    def best(self, limit: int) -> tuple[float, list[Cut]]:
        """Return the instructions and cuts of the fastest stages with at most `limit`
        bytes alive."""
        if limit not in self._best:
            self._best[limit] = self._found(limit)
        return self._best[limit]

    def _found(self, limit: int) -> tuple[float, list[Cut]]:
        tight, roomy, fastest = self._by_end
        able, roomless = tight <= limit, roomy > limit
        roomless[:, -1:] = True  # of a node alone it is known without its scratch
        costs = np.where(able & ~roomless, fastest, NEVER)
        longest = costs.shape[1]
        for end, at in np.argwhere(able & roomless).tolist():
            costs[end, at] = self.cost(end - longest + at, end, limit)
        cost, ends = shortest(costs)
        return cost, [self._cut(a, b, limit) for a, b in pairwise(ends)]

    def _cut(self, first: int, end: int, limit: int) -> Cut:
        room = limit - self.bases[first][end - first - 1]
        options = (self.alone if end - first == 1 else self.joined)[first:end]
        return Cut(
            first, tuple(next(c for c in o if c.scratch <= room) for o in options)
        )

    def least(self, most_cost: float, most: int) -> tuple[int, list[Cut]]:
        """Return the fewest bytes at which stages cost at most `most_cost`, and these
        stages."""
        return fewest(self.best, most_cost, most)


def fewest(
    best: Callable[[int], tuple[float, list[Cut]]], most_cost: float, most: int
) -> tuple[int, list[Cut]]:
    """Do the same as Cuts.least; best: returns the fastest stages for a number of
    bytes."""
    low, high = 0, round_up(most, 4)
    found = best(most)[1]
    while low + 4 < high:
        middle = (low + high) // 8 * 4
        cost, cuts = best(middle)
        if cuts and cost <= most_cost:
            high, found = middle, cuts
        else:
            low = middle
    return high, found


def _cheapest_first(options: Sequence[Candidate]) -> list[Candidate]:
    """Sort by cost; keep only candidates with less scratch than all cheaper ones."""
    found: list[Candidate] = []
    for option in sorted(options, key=lambda c: (c.cost, c.scratch)):
        whole = option.finish is None
        if whole and (not found or option.scratch < found[-1].scratch):
            found.append(option)
    return found


def _joinable(node: Node, options: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that can advance with others; all have the same number of
    bands."""
    if node.device or node.op == ASSIGN:  # which is after all others, in one piece
        return []
    if node.attrs.get(WHEN_SET):  # which is before all others
        return []
    able = [c for c in options if can_join(c)]
    bands = max((c.bands for c in able), default=0)
    if any(c.in_place and c.bands == bands for c in able):
        able = [c for c in able if c.in_place]
    found: list[Candidate] = []
    for option in sorted(able, key=lambda c: (c.cost, c.scratch)):
        less = not found or option.scratch < found[-1].scratch
        if option.bands == bands and less:
            found.append(option)
    return found
