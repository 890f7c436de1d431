"""Copies often-read constants from flash to a fast region just before their step, in
each run. The copy writes each byte once; a kernel reads each byte on every call. The
copies need memory only while their step runs, so instances that take turns can share
it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.compressed import Unpack

# calls of a kernel from which a copy pays off: the copy itself reads flash and writes
LEAST_CALLS = 4
# the cost of a pointer, an operand and a step
LEAST_BYTES = 64

Steps = Sequence[tuple[Node, Candidate]]


def find_hot(steps: Steps) -> tuple[list[tuple[Node, Candidate]], list[Unpack]]:
    """Return the steps, with constants that gain from a copy read from RAM, and the
    copies."""
    made: list[tuple[Node, Candidate]] = []
    found: list[Unpack] = []
    for index, (node, candidate) in enumerate(steps):
        constants = []
        often = candidate.images * candidate.bands >= LEAST_CALLS
        for packed in candidate.constants:
            large = packed.array.nbytes >= LEAST_BYTES
            if often and large and not packed.is_bound and not node.device:
                place = f"{node.output} {packed.role} (copied)"
                name, data = f"{node.name} {packed.role}", packed.array.tobytes()
                found.append(Unpack(index, name, place, len(data), data, packed))
                packed = replace(packed, place=place)
            constants.append(packed)
        made.append((node, replace(candidate, constants=tuple(constants))))
    return made, found


def keep_placed(
    steps: Steps, unpacks: Sequence[Unpack], placed: Collection[str]
) -> tuple[list[tuple[Node, Candidate]], list[Unpack]]:
    """Make the constants for which no room was found read from flash again."""
    made = []
    for node, candidate in steps:
        constants = tuple(
            replace(packed, place="" if packed.place not in placed else packed.place)
            for packed in candidate.constants
        )
        made.append((node, replace(candidate, constants=constants)))
    return made, [unpack for unpack in unpacks if unpack.place in placed]
