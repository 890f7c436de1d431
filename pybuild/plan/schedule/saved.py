"""What is known of the stages of one graph, whatever kernels are chosen."""

from __future__ import annotations

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.schedule.lock_step import PUSH


class Saved:
    """The bytes that rings save, by the rows that steps read and write, in their order,
    and the groups that must be whole."""

    def __init__(self) -> None:
        self.found: dict[tuple[tuple[int, ...], frozenset[str]], int] = {}
        self._forms: dict[tuple[object, ...], int] = {}
        self._memory: dict[int, tuple[Candidate, tuple[object, ...]]] = {}

    def form(self, node: Node, candidate: Candidate) -> int:
        """A number for all that says when its rows come and go."""
        rows = (candidate.outputs, candidate.inputs, candidate.bands)
        key = (*rows, candidate.in_place, node.inputs, node.op == PUSH)
        return self._forms.setdefault(key, len(self._forms))

    def memory(self, node: Node, candidate: Candidate) -> tuple[object, ...]:
        """All that says which memory its steps need, and when."""
        if id(candidate) not in self._memory:  # its hash would take as long as its use
            rest = (candidate.images, candidate.scratch, candidate.also_in_place)
            more = candidate.finish and self.memory(node, candidate.finish)
            form = (self.form(node, candidate), *rest, more)
            self._memory[id(candidate)] = candidate, form
        return self._memory[id(candidate)][1]
