"""The most instructions that a function can take, if its loops iterate as often as
counted: the longest path through the body in each iteration.

Knows a graph of pieces of code, and no instruction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pybuild.records import dataclass


@dataclass(frozen=True)
class Code:
    """A function: its pieces of straight code, by their addresses.

    sizes  instructions of each; after: those that may follow; start: the first
    """

    start: int
    sizes: Mapping[int, int]
    after: Mapping[int, tuple[int, ...]]


def at_most(code: Code, runs: Mapping[int, int]) -> int:
    """Instructions of all calls together.

    runs  how often each piece was run; asked of the first, and of those by which
          loops are entered
    """
    # what only fills up to an address behind a jump is no way into what follows it
    found = {one for group in _groups({code.start}, code.after) for one in group}
    return _within(code, frozenset(found), {code.start}, runs)


def _within(
    code: Code, inside: frozenset[int], begins: set[int], runs: Mapping[int, int]
) -> int:
    """Each run of one of `begins` is followed by at most one way that comes to none of
    them again: loops on it are as nothing, for they are counted by themselves."""
    after = {
        one: [n for n in code.after[one] if n in inside and n not in begins]
        for one in inside
    }
    total, costs, group_of = 0, {}, {}
    for group in _groups(inside, after):
        for one in group:
            group_of[one] = group[0]
        if len(group) == 1 and group[0] not in after[group[0]]:
            costs[group[0]] = code.sizes[group[0]]
            continue
        members = frozenset(group)
        entered = {n for one in inside - members for n in after[one] if n in members}
        entered |= begins & members
        total += _within(code, members, entered or {group[0]}, runs)
        costs[group[0]] = 0
    longest: dict[int, int] = {}
    # groups come from the last one back: what follows is known
    for group in _groups(inside, after):
        name = group[0]
        follows = {group_of[n] for one in group for n in after[one]} - {name}
        longest[name] = costs[name] + max((longest[n] for n in follows), default=0)
    return total + sum(runs.get(one, 0) * longest[group_of[one]] for one in begins)


def _groups(
    nodes: Collection[int], after: Mapping[int, Collection[int]]
) -> Iterator[list[int]]:
    """Pieces that lead to each other, in such an order that what follows comes first.

    Source  Tarjan, Depth-first search and linear graph algorithms (1972)
    """
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for root in sorted(nodes):
        if root in number:
            continue
        work = [(root, iter(sorted(after[root])))]
        number[root] = low[root] = len(number)
        stack.append(root)
        waiting.add(root)
        while work:
            one, ahead = work[-1]
            following = next(ahead, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[one])
                if low[one] == number[one]:
                    at = stack.index(one)
                    group = sorted(stack[at:])
                    del stack[at:]
                    waiting -= set(group)
                    yield group
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                waiting.add(following)
                work.append((following, iter(sorted(after[following]))))
            elif following in waiting:
                low[one] = min(low[one], number[following])
