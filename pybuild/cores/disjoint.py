"""Proves that slices of a call may be computed at the same time, in any order.

No byte of an output that one slice writes is written or read by another; nor read as
an input, where that lies under the output. Each stays within scratch of its own. For
any input: from the addresses of all loads and stores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pybuild.bounds.layers import pointers
from pybuild.bounds.values import Access, Memory
from pybuild.bounds.walk import accesses
from pybuild.dtype import Array
from pybuild.kernels.base.candidate import Candidate

# sums of unknowns with more values are taken as all bytes of their range
_MOST_VALUES = 1 << 16


def are_disjoint(
    candidate: Candidate, shares: Sequence[tuple[int, ...]]
) -> tuple[bool, tuple[int, ...]]:
    """True if these arguments write disjoint bytes; and the inputs whose memory the
    first output may still take over."""
    assert candidate.func is not None
    memories = pointers(candidate)
    ends, at = [], 0
    for access in (*candidate.outputs, *candidate.inputs):
        # a row of a window is a memory of its own: slices must not meet in any
        memories[at : at + access.window] = [
            replace(memories[at]) for _ in range(access.window)
        ]
        ends.append((at, access.window))
        at += access.window
    own = candidate.scratch // len(shares)
    if own:
        memories[-1] = replace(memories[-1], bytes=own)
        if any(args[-1] != core * own for core, args in enumerate(shares)):
            return False, ()
        shares = [(*args[:-1], 0) for args in shares]
    found = [accesses(candidate.func, args, memories) for args in shares]
    if own and not all(
        one.is_inside for each in found for one in each if one.memory is memories[-1]
    ):
        return False, ()
    outputs = sum(a.window for a in candidate.outputs)
    for memory in memories[:outputs]:
        wrote = [_reached(each, memory, stores=True) for each in found]
        read = [_reached(each, memory, stores=False) for each in found]
        if _meet(wrote, wrote) or _meet(wrote, read):
            return False, ()
    places = ends[len(candidate.outputs) :]
    kept = []
    for number in candidate.in_place:
        first, window = places[number]
        source, goal = candidate.inputs[number], candidate.outputs[0]
        alike = source.row_bytes == goal.row_bytes and ends[0][1] == window == 1
        wrote = [_reached(each, memories[0], stores=True) for each in found]
        read = [_reached(each, memories[first], stores=False) for each in found]
        if alike and not _meet(wrote, read):
            kept.append(number)
    return True, tuple(kept)


def _meet(first: Sequence[Array], second: Sequence[Array]) -> bool:
    pairs = itertools.permutations(range(len(first)), 2)
    return any(bool(np.logical_and(first[i], second[j]).any()) for i, j in pairs)


def _reached(found: Sequence[Access], memory: Memory, stores: bool) -> Array:
    """A flag for each byte of a memory: it may be reached."""
    flags = np.zeros(memory.bytes, bool)
    for access in found:
        is_here = access.memory is memory and access.is_store is stores
        if is_here and access.least < access.end:
            for first in _begins(access):
                flags[first : first + access.size] = True
    return flags


def _begins(access: Access) -> Iterator[int]:
    least = max(access.least, 0)
    last = min(access.end, access.memory.bytes) - access.size
    spans = [(u.least, u.most) for u in access.at.terms]
    values = math.prod(b - a + 1 for a, b in spans)
    if math.isinf(values) or values > _MOST_VALUES:
        return iter(range(int(least), int(last) + 1))
    places = np.array([access.at.constant], np.int64)
    for (first, most), factor in zip(spans, access.at.terms.values(), strict=True):
        steps = factor * np.arange(int(first), int(most) + 1, dtype=np.int64)
        places = np.unique((places[:, None] + steps[None, :]).reshape(-1))
    inside = places[(places >= least) & (places <= last)]
    return iter(inside.tolist())
