"""Facts about the stages of one graph that do not depend on the kernels chosen."""

from __future__ import annotations

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.schedule.lock_step import PUSH


class Saved:
    """Caches the bytes that rings save, keyed by how steps access rows, in order, and
    by the groups that must be whole."""

    def __init__(self) -> None:
        self.found: dict[tuple[tuple[int, ...], frozenset[str]], int] = {}
        self._forms: dict[tuple[object, ...], int] = {}
        self._memory: dict[int, tuple[Candidate, tuple[object, ...]]] = {}

    def form(self, node: Node, candidate: Candidate) -> int:
        """Return a number that identifies when a step's rows are made and read."""
        rows = (candidate.outputs, candidate.inputs, candidate.bands)
        key = (*rows, candidate.in_place, node.inputs, node.op == PUSH)
        return self._forms.setdefault(key, len(self._forms))

    def memory(self, node: Node, candidate: Candidate) -> tuple[object, ...]:
        """Return a key of everything that determines which memory a node's steps need,
        and when."""
        if id(candidate) not in self._memory:  # its hash would take as long as its use
            rest = (candidate.images, candidate.scratch, candidate.also_in_place)
            more = candidate.finish and self.memory(node, candidate.finish)
            form = (self.form(node, candidate), *rest, more)
            self._memory[id(candidate)] = candidate, form
        return self._memory[id(candidate)][1]
