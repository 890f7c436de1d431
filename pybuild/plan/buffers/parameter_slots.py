"""Parameters as an instance binds them: one slot for each array that kernels read.

A parameter that all its readers take in one arrangement has one slot, by its name;
further arrangements are further slots. Knows no addresses.
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

    tensor   its name, and type and shape as it is stored
    layout   0: row-major, as the user has it; else the number of an arrangement
    sources  the user's parameters that it is made of; (): a constant, packed in flash
    value    what the model came with
    title    what people call it: the parameter, or the layer and what it is there
    copy_of  the slot that already holds the parameter, in another arrangement or for
             another device; ""
    device   whose memory it is copied to; 0: it is read where it is bound
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
        """The name of the memory that it has on its device."""
        return f"{self.name} (parameter)"

    @property
    def name(self) -> str:
        return self.tensor.name


def key_of(packed: Packed, node: Node) -> Key:
    """The key that distinguishes slots."""
    return packed.parameters, packed.layout, node.device


def slot_blocks(slots: Iterable[Slot], steps: int) -> dict[str, Block]:
    """The memory of parameters on devices, theirs alone, by the name of the slot."""
    return {
        slot.name: Block(slot.home, slot.value.nbytes, -1, steps)
        for slot in slots
        if slot.device
    }


def find_slots(
    graph: Graph, steps: Iterable[tuple[Node, Candidate]]
) -> dict[Key, Slot]:
    """Return the slots of all steps; the first use of a parameter gives its slot the
    name.

    In the order of the nodes: stages may have another, and without names in flash
    images that were packed for the model know its parameters by their numbers.
    """
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
    """The parameter that the array mostly is, or what is made of one beside it."""
    array = packed.array
    if packed.parameters[0] not in graph.parameters:
        return packed.parameters[0]
    for name in packed.parameters:
        value = graph.constants[name]
        if value.size == array.size and value.dtype == array.dtype:
            return graph.parameters[name]
    return f"{graph.parameters[packed.parameters[0]]}.{packed.role}"
