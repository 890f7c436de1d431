"""Parameters and packed constants as rows of the report."""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.graph import Graph
from pybuild.package.report import Stored
from pybuild.params.image_read import read_image
from pybuild.plan.plan import Plan

Rows = tuple[Stored, ...]


def stored(
    plan: Plan, given: Graph, image: Callable[[], bytes], named: bool
) -> tuple[Rows, Rows]:
    """The user's parameters, and the constants that are packed.

    given  the graph that has the parameters' names
    image  of parameters; named: its entries have names, not numbers
    """
    graph = plan.graph
    if not plan.slots:
        unpacks = [unpack for unpack in plan.unpacks if not unpack.plain]
        return (), tuple(
            Stored(u.name, u.size, len(u.packed), short=graph.shown(u.name))
            for u in unpacks
        )
    entries = {e.name: e for e in read_image(image(), graph.name).entries}
    parameters: list[Stored] = []
    packed: list[Stored] = []
    for index, slot in enumerate(plan.slots.values()):
        entry = entries[slot.name if named else str(index)]
        known = given if slot.sources else graph
        row = Stored(
            slot.title, entry.bytes, entry.stored, slot.layout, slot.copy_of,
            slot.device, known.shown(slot.title),
        )  # fmt: skip
        (parameters if slot.sources else packed).append(row)
    return tuple(parameters), tuple(packed)
