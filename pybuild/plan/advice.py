"""Hints for the user when memory is too small."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.sharing import Block, find_views

_SMALLER = "a smaller input, or fewer channels there"


def less_ram(
    graph: Graph,
    peak: Sequence[Block],
    kernels: Iterable[Candidate],
    pushed: Collection[str],
    spent: Collection[str],
) -> str:
    """Return a hint: options that shrink an input that is alive at the peak and that
    are not in use yet.

    kernels  of the plan: whether they read inputs row by row
    """
    kernels = tuple(kernels)
    found: dict[str, None] = {}  # each once, in order
    for name in _by_rows(graph, peak, kernels, pushed):
        found[f"--push {name}"] = None
        if name not in spent:
            found["--input reuse"] = None
    return ", ".join((*found, _SMALLER))


def _by_rows(
    graph: Graph,
    peak: Sequence[Block],
    kernels: Sequence[Candidate],
    pushed: Collection[str],
) -> Iterator[str]:
    """The inputs alive at the peak whose rows could arrive, or be freed, one by one."""
    views, there = find_views(graph), {block.name for block in peak}
    for name in graph.inputs:
        root = views.of(name).root
        if graph.windows or name in pushed or root not in there:
            continue
        strides = [
            access.stride if kernel.images == 1 else 0
            for kernel in kernels
            for access in kernel.inputs
            if views.of(access.tensor).root == root
        ]
        if strides and all(strides):
            yield name
