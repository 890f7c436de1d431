"""Storage as the file prescribes it: the tensors of one block share one place for the
whole run. The front end has checked that they are never needed together. Tensors
without a block, or that must not be in it, get other places. Knows no addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.sharing import Block, Storage, Views, groups, scratch


def given_storage(
    graph: Graph,
    steps: Sequence[tuple[Node, Candidate]],
    views: Views,
    keep_inputs: bool,
    lazy: Collection[str] = (),
) -> Storage:
    """Return one block for each block of the file, as large as its largest tensor.

    lazy  inputs that get no memory, and so have no block
    """
    numbers = _numbers(graph, views)
    owner: dict[int, Block] = {}
    ends: dict[int, int] = {}  # last step at which each block's tensor is needed
    block_of, beside = {}, []
    for group in sorted(groups(graph, steps, views, keep_inputs), key=_start):
        if group.name in lazy:
            continue
        number = numbers.get(group.name)
        if number is None or ends.get(number, -2) >= group.first:
            beside.append(group)
            block_of[group.name] = group.name
            continue
        known = owner.get(number, Block(group.name, 0, -1, len(steps)))
        size = max(known.bytes, group.bytes)
        owner[number] = Block(known.name, size, known.first, known.last)
        ends[number] = group.last
        block_of[group.name] = known.name
    return Storage((*owner.values(), *beside, *scratch(steps)), block_of)


def _start(group: Block) -> tuple[int, str]:
    return group.first, group.name


def _numbers(graph: Graph, views: Views) -> dict[str, int]:
    """Map the root of each group of views to the block of the file that holds it."""
    numbers: dict[str, int] = {}
    for name in graph.tensors:
        if name in graph.storage and name not in graph.constants:
            numbers.setdefault(views.of(name).root, graph.storage[name])
    return numbers
