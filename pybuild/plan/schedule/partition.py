"""Cuts a graph into stages, each of which advances in lock step.

What is alive in a stage does not depend on the other cuts, so that the best cuts are
a shortest path. Knows bytes alive at once, no addresses.
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

# instructions of the runner, about: for a band, for a band in lock step, and there
# for each link of the stage
BAND, LOOK, LINK = 60, 40, 9
# nodes of a stage, at most; what trying stages may take, in steps times bands
LONGEST = 60
_MOST_WORK = 2_000_000
COUNTER = 2


@dataclass(frozen=True)
class Cut:
    """Nodes from `first` on that are one stage, with the kernel of each."""

    first: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class Held:
    """Names of groups that a stage of the nodes from `first` to before `end` cannot
    have for itself: asked, not listed, for a graph has many stages.
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
    """The steps of a node."""
    if candidate.finish is None:
        return [(node, candidate)]
    return [(node, replace(candidate, finish=None)), (node, candidate.finish)]


class Cuts:
    """The stages that a graph could have.

    nodes   in their order, with what can compute each
    groups  memory of each group of views, alive from node to node
    known   what was found of stages of this graph
    apart   pairs of nodes that no stage may have both of, by number
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
        # of stages that begin with a node: edges that are summed, and their sum
        self._between: dict[int, tuple[int, int]] = {}
        self._best: dict[int, tuple[float, list[Cut]]] = {}
        self.work = 0
        self._ends = [len(nodes)] * len(nodes)
        for first, end in apart:
            for i in range(first + 1):
                self._ends[i] = min(self._ends[i], end)
        self._prepare()

    def _find_edges(self) -> list[int]:
        """Nodes at which a stage falls into parts that do not depend on each other:
        all that is made before is read before, or by them."""
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
        """Bytes alive in every stage that could be, without scratch."""
        count = len(self.nodes)
        begin, end = [0] * (count + 2), [0] * (count + 2)
        for group in self.groups.values():
            begin[max(group.first, -1) + 1] += round_up(group.bytes, 4)
            end[min(group.last, count) + 1] += round_up(group.bytes, 4)
        self._begun, self._ended = list(accumulate(begin)), [0, *accumulate(end)]
        begun, ended = self._begun, self._ended
        # a graph has many stages: plain numbers take a fifth of the bytes of Python's
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
        """Bytes that a node alone saves by writing its result over what it reads."""
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
        # a stage is asked for behind the shorter ones that begin where it does
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
        """Bytes that rings save where these steps advance together."""
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
        """Groups that a stage cannot have for itself."""
        return Held(self.groups, self.fixed, first, end)

    def alive(self, first: int, end: int) -> int:
        """Bytes of all groups that a stage holds whole, or finds there."""
        return self._begun[end] - self._ended[first + 1]

    def crossing(self, at: int) -> int:
        """Bytes of groups that are made before a node and read by it or later."""
        return self._begun[at] - self._ended[at + 1]

    def begins(self, end: int) -> Iterator[int]:
        """The nodes that a stage which ends before this one may begin with."""
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
        """For each stage: bytes that are enough for the fastest kernels; for one node,
        without scratch."""
        found = []
        for row, scratch in zip(self.bases, self.scratch, strict=True):
            made = array("q", map(add, row, scratch))
            made[0] = row[0]
            found.append(made)
        return found

    @functools.cached_property
    def tight(self) -> list[array[int]]:
        """For each stage: bytes that are enough for the kernels with the least
        scratch."""
        least = [options[-1].scratch if options else 0 for options in self.joined]
        found = []
        for i, row in enumerate(self.bases):
            made = array("q", map(add, row, accumulate(least[i : i + len(row)], max)))
            made[0] = row[0] + self.alone[i][-1].scratch if self.alone[i] else row[0]
            found.append(made)
        return found

    def cost(self, first: int, end: int, limit: int) -> float:
        """Instructions of a stage that has `limit` bytes; infinite: too few."""
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
        """`tight`, `roomy` and `fastest` by `by_end`; where rows are there to be read
        as they come no stage ends: it is never tight enough."""
        never = np.iinfo(np.int64).max
        tight, roomy = by_end(self.tight, never), by_end(self.roomy, never)
        tight[[i for i, (node, _) in enumerate(self.nodes, 1) if node.op == PUSH]] = (
            never
        )
        return tight, roomy, by_end(self.fastest, NEVER)

    def best(self, limit: int) -> tuple[float, list[Cut]]:
        """The fastest stages in which at most `limit` bytes are alive."""
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
        """The fewest bytes for which the cost stays in bounds, and the stages."""
        return fewest(self.best, most_cost, most)


def fewest(
    best: Callable[[int], tuple[float, list[Cut]]], most_cost: float, most: int
) -> tuple[int, list[Cut]]:
    """As Cuts.least; best: the fastest stages in so many bytes."""
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
    """By cost; only those that need less scratch than all before."""
    found: list[Candidate] = []
    for option in sorted(options, key=lambda c: (c.cost, c.scratch)):
        whole = option.finish is None
        if whole and (not found or option.scratch < found[-1].scratch):
            found.append(option)
    return found


def _joinable(node: Node, options: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that can advance with others: by as many bands as there are."""
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
