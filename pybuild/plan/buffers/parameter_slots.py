"""The parameters that an instance binds: one slot for each array that kernels read. A
parameter that all its readers want in one layout has one slot, under its own name; each
further layout is a further slot. Knows no addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.plan.buffers.sharing import Block
from pybuild.records import dataclass

Key = tuple[tuple[str, ...], int, int]


@dataclass(frozen=True)
class Slot:
    """An array that is bound at run time.

    tensor   its name; type and shape as stored
    layout   0: row-major, as the user has it; else the id of a packed layout
    sources  the user's parameters from which it is packed; (): a constant, packed in
             flash
    value    the values that came with the model
    title    its name for people: the parameter, or the layer and the role of the array
             in it
    copy_of  the slot that already holds the parameter, in another layout or for another
             device; ""
    device   the device whose memory it is copied to; 0: read where it is bound
    """

    tensor: Tensor
    layout: int
    sources: tuple[str, ...]
    value: Array = field(compare=False, repr=False)
    title: str
    copy_of: str = ""
    device: int = 0

    @property
    def home(self) -> str:
        """The name of its block in its device's memory."""
        return f"{self.name} (parameter)"

    @property
    def name(self) -> str:
        return self.tensor.name


def key_of(packed: Packed, node: Node) -> Key:
    """The key that distinguishes slots."""
    return packed.parameters, packed.layout, node.device


def slot_blocks(slots: Iterable[Slot], steps: int) -> dict[str, Block]:
    """The blocks of parameters in the memory of devices, by slot name."""
    return {
        slot.name: Block(slot.home, slot.value.nbytes, -1, steps)
        for slot in slots
        if slot.device
    }


def find_slots(
    graph: Graph, steps: Iterable[tuple[Node, Candidate]]
) -> dict[Key, Slot]:
    """Return the slots of all steps; the first use of a parameter names its slot. Slots
    are in node order, which unlike that of stages does not change: images packed for a
    model without names in flash know its parameters by number."""
    slots: dict[Key, Slot] = {}
    taken: dict[str, str] = {}
    order = {node.output: index for index, node in enumerate(graph.nodes)}
    for node, candidate in sorted(
        steps, key=lambda step: order.get(step[0].output, -1)
    ):
        for packed in candidate.constants:
            key = key_of(packed, node)
            if packed.parameters and key not in slots:
                slots[key] = _slot(graph, node, packed, taken)
    return slots


def _slot(graph: Graph, node: Node, packed: Packed, taken: dict[str, str]) -> Slot:
    users = [graph.parameters[n] for n in packed.parameters if n in graph.parameters]
    sources = tuple(dict.fromkeys(users))
    plain = _own_name(graph, packed)
    name, copy_of = plain, ""
    if plain in taken:
        copy_of = plain if taken[plain] == packed.role else ""
        name = f"{plain} ({node.name})"
    count = 1
    while name in taken:
        count += 1
        name = f"{plain} ({node.name} {count})"
    taken[name] = packed.role
    shape = packed.array.shape
    if packed.layout == 0:
        shape = graph.tensor(packed.parameters[0]).shape
    tensor = Tensor(name, shape, DType.of(packed.array))
    title = name if sources else f"{node.name} {packed.role}"
    given = packed.layout, sources, packed.array, title, copy_of, node.device
    return Slot(tensor, *given)


def _own_name(graph: Graph, packed: Packed) -> str:
    """Return the parameter that fills the whole array, or "PARAMETER.ROLE" if none
    does."""
    array = packed.array
    if packed.parameters[0] not in graph.parameters:
        return packed.parameters[0]
    for name in packed.parameters:
        value = graph.constants[name]
        if value.size == array.size and value.dtype == array.dtype:
            return graph.parameters[name]
    return f"{graph.parameters[packed.parameters[0]]}.{packed.role}"
