"""The loads and stores of a plan's kernels that are proven to stay inside, layer by
layer.

Pointers are as the runner gives them (crt/src/run.c): outputs, inputs, constants,
scratch, a row of the window each.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.bounds.values import Access, Memory
from pybuild.bounds.walk import accesses
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.external import External
from pybuild.plan.plan import Plan
from pybuild.records import dataclass


@dataclass(frozen=True)
class LayerBounds:
    """The accesses of one step, for any input.

    layer     its short name
    accesses  loads and stores, those of small loops turn by turn
    open      those of them that are not proven, in words; () if all are
    foreign   the kernel is the user's own: nothing of it is known
    """

    layer: str
    op: str
    kernel: str
    accesses: int
    open: tuple[str, ...] = ()
    foreign: bool = False

    @property
    def is_proven(self) -> bool:
        return not self.open and not self.foreign


def bounds(plan: Plan) -> tuple[LayerBounds, ...]:
    """The bounds of each step that has a kernel, in the order of the plan."""
    made = []
    for step in plan.steps:
        candidate, node = step.candidate, step.node
        if candidate.func is None:
            continue
        about = plan.graph.called(node), node.op, candidate.func.name
        if isinstance(candidate.func, External):
            made.append(LayerBounds(*about, 0, foreign=True))
            continue
        found = accesses(candidate.func, candidate.args, pointers(candidate))
        unproven = dict.fromkeys(_told(one) for one in found if not one.is_inside)
        made.append(LayerBounds(*about, len(found), tuple(unproven)))
    return tuple(made)


def pointers(candidate: Candidate) -> list[Memory]:
    """The memory that each of a kernel's pointers leads to, in their order."""
    return list(_pointers(candidate))


def _pointers(candidate: Candidate) -> Iterator[Memory]:
    for kind, rows in (("output", candidate.outputs), ("input", candidate.inputs)):
        for number, row in enumerate(rows, 1):
            memory = Memory(
                f"{kind} {number}" if len(rows) > 1 else kind, row.row_bytes
            )
            yield from [memory] * row.window
    for packed in candidate.constants:
        # what may be replaced is not known
        array = None if packed.parameters else packed.array
        yield Memory(f"constant {packed.role}", packed.array.nbytes, array)
    if candidate.scratch:
        yield Memory("scratch", candidate.scratch)


def _told(access: Access) -> str:
    what = "store to" if access.is_store else "load from"
    where = f"bytes {access.least:,} to {access.end:,} of {access.memory.bytes:,}"
    return f"{what} {access.memory.name}: {where}".replace("inf", "?")
