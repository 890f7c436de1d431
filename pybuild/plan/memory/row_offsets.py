"""Finds offsets of blocks whose pieces are alive at different times, so that rows of
one block may lie where another's were. Knows pieces only.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace

from pybuild.plan.buffers.offsets import Layout, round_up
from pybuild.plan.memory.live_ranges import Piece, alive_in, most_alive

# work limit of the search, in visits of (block, taken spans beside it)
_SEARCH_VISITS = 20_000
_FAR = 1 << 60
# cache size for layouts: plans of one model often have the same pieces
_KEPT = 64
_PAIRS = 1024

# ranges of forbidden offsets relative to another block, from first to last of each pair
Taken = tuple[tuple[int, int], ...]
Span = tuple[int, int]


def interlaced(blocks: Sequence[Sequence[Piece]], align: int) -> Layout:
    """Return the best layout found; its bound is the largest number of bytes in use at
    one time."""
    return _best(tuple(map(tuple, blocks)), align) if blocks else Layout((), 0, 0)


@functools.lru_cache(_KEPT)
def _best(blocks: tuple[tuple[Piece, ...], ...], align: int) -> Layout:
    return _Search(blocks, align).best()


def taken_by(b: Sequence[Piece], a: Sequence[Piece]) -> Taken:
    """Return the ranges of offsets, relative to `b`, at which `a` cannot begin."""
    return _taken(tuple(b), tuple(a))


@functools.lru_cache(_PAIRS)
def _taken(b: tuple[Piece, ...], a: tuple[Piece, ...]) -> Taken:
    pairs = ((q.at - p.end, q.end - p.at) for p in a for q in b if p.when & q.when)
    merged: list[Span] = []
    for low, high in sorted(pairs):
        if merged and low < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return tuple(merged)


def _rounded(blocks: Sequence[Sequence[Piece]], align: int) -> list[list[Piece]]:
    """Return the pieces rounded up to `align`, at those times when all live pieces
    begin aligned. No layout can then use the bytes up to the next aligned offset, so
    their peak is a better lower bound."""
    odd = alive_in([p for block in blocks for p in block if p.at % align])
    return [
        [replace(p, end=round_up(p.end, align), when=p.when & ~odd) for p in block]
        for block in blocks
    ]


class _Search:
    def __init__(self, blocks: Sequence[Sequence[Piece]], align: int) -> None:
        self.align = align
        self.bound = round_up(sum(most_alive(blocks)), align)
        self.least = max(self.bound, sum(most_alive(_rounded(blocks, align))))
        self.sizes = [round_up(max(p.end for p in b), align) for b in blocks]
        self.alive = [alive_in(block) for block in blocks]
        self.taken: list[dict[int, Taken]] = [{} for _ in blocks]
        for i, a in enumerate(blocks):
            for j in range(i):
                if self.alive[i] & self.alive[j] and (taken := taken_by(blocks[j], a)):
                    self.taken[i][j] = taken
                    self.taken[j][i] = tuple((-b, -a) for a, b in reversed(taken))

    def best(self) -> Layout:
        """Start from each order as it is, then move blocks that did not fit into less
        memory to an earlier place."""
        orders = self._orders()
        best = Layout((), _FAR, self.bound)
        for order in orders:
            for late in (0.0, 1.0):
                _, found = self._fill(order, _FAR, random.Random(0), late)
                if found is not None and found.bytes < best.bytes:
                    best = found
                if best.bytes <= self.least:
                    return best
        chance, visits = random.Random(0), _SEARCH_VISITS
        order = [*orders[0]]
        while visits > 0 and best.bytes > self.least:
            over = (best.bytes - self.bound) * chance.random() ** 4
            room = best.bytes - max(round_up(int(over), self.align), self.align)
            placed, found = self._fill(order, room, chance, chance.choice((0, 0.5, 1)))
            visits -= 4 + sum(len(self.taken[i]) for i in order[: placed + 1])
            if found is not None:
                best = found
            elif chance.random() < 0.05:
                order = [*chance.choice(orders)]
            else:
                order.insert(chance.randrange(placed + 1), order.pop(placed))
        return best

    def _orders(self) -> list[list[int]]:
        first = [(when & -when).bit_length() for when in self.alive]
        area = [s * w.bit_count() for s, w in zip(self.sizes, self.alive, strict=True)]
        numbers = range(len(self.sizes))
        return [
            sorted(numbers, key=lambda i: (first[i], -self.sizes[i], i)),
            sorted(numbers, key=lambda i: (-self.sizes[i], first[i], i)),
            sorted(numbers, key=lambda i: (-area[i], first[i], i)),
        ]

    def _fill(
        self, order: Sequence[int], room: int, chance: random.Random, late: float
    ) -> tuple[int, Layout | None]:
        """Place each block where it extends the layout least. Return how many blocks
        were placed before one did not fit into `room` bytes, and the layout if all fit.

        late  probability of taking the last of several equally good offsets, not the
              first
        """
        at: dict[int, int] = {}
        low = high = 0
        for count, i in enumerate(order):
            size = self.sizes[i]
            around = (high - room, low + room) if at else (0, size)
            spans = _free(self._beside(i, at), size, around, self.align)
            if not spans:
                return count, None
            fair = _nearest(spans, low, high - size)
            at[i] = max(fair) if chance.random() < late else min(fair)
            low, high = min(low, at[i]), max(high, at[i] + size)
        offsets = tuple(at[i] - low for i in range(len(order)))
        return len(order), Layout(offsets, high - low, self.bound)

    def _beside(self, i: int, at: dict[int, int]) -> list[Span]:
        return sorted(
            (at[j] + a, at[j] + b)
            for j, taken in self.taken[i].items()
            if j in at
            for a, b in taken
        )


def _nearest(spans: Sequence[Span], low: int, high: int) -> list[int]:
    """Return the offsets that stick out least below `low` or above `high`."""
    least, found = _FAR, list[int]()
    for first, last in spans:
        for wish in (low, high):
            s = first if wish < first else last if wish > last else wish
            out = (low - s if s < low else 0) + (s - high if s > high else 0)
            if out < least:
                least, found = out, [s]
            elif out == least:
                found.append(s)
    return found


def _free(taken: Sequence[Span], size: int, around: Span, align: int) -> list[Span]:
    """Return the (first, last) offsets at which `size` bytes lie outside all taken
    spans."""
    reach, last = around[0], around[1] - size
    found = []
    for low, high in (*taken, (_FAR, _FAR)):
        if low >= reach:
            first = -(-reach // align) * align
            end = (low if low < last else last) // align * align
            if first <= end:
                found.append((first, end))
        if high > reach:
            reach = high
            if reach > last:
                break
    return found
