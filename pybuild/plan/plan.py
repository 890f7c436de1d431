"""The plan: which kernel computes which layer, when, and where each byte is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.passes.ends.when_set import conversions
from pybuild.plan.buffers.compressed import Unpack
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.plan.buffers.parameter_slots import Key, Slot
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.memory.persistent import Kept
from pybuild.plan.memory.tensor_offsets import Place
from pybuild.plan.regions.block_offsets import Occupied
from pybuild.plan.regions.regions import Region
from pybuild.plan.schedule.lock_step import Ring
from pybuild.plan.schedule.stages import Stage
from pybuild.records import dataclass
from pybuild.select.choose import Options, estimated

ARENA_ALIGN = 16


@dataclass(frozen=True)
class Step:
    """The work of one kernel in the plan; scratch_at is its offset in its region, or -1
    for none."""

    node: Node
    candidate: Candidate
    scratch_at: int = -1
    scratch_region: int = 0

    @property
    def device(self) -> int:
        """Return the device that runs the kernel; the runtime runs tasks."""
        return 0 if self.candidate.func is None else self.node.device

    @property
    def is_layer(self) -> bool:
        """Return True if the step writes the result of its node, and False if it only
        prepares that."""
        wrote = self.candidate.outputs
        known = bool(wrote) and wrote[0].tensor == self.node.output
        return known and self.candidate.func is not None


@dataclass(frozen=True)
class Plan:
    """Everything that code generation needs to know about memory.

    regions   the arena of each device that needs one, or the user's regions; the CPU's
              is first, regions without blocks are last
    consumed  inputs whose memory is reused for something else during a run
    slots     parameters that an instance binds, by their distinguishing key
    slot_offsets  offsets of the slots that a device reads, by slot name
    lazy      inputs and outputs without memory: they are used where the user binds them
    unpacks   constants that are packed in flash
    stages    steps that advance together
    rings     the rings of tensors that are not held whole, by tensor name
    pushed    inputs that arrive in rows
    counters  the arena offset of the counters of finished bands, for stages in lock
              step
    owners    the block that holds each group of views, by the group's root
    kept      blocks that keep their contents from run to run
    copied    nodes that only move bytes and could not become views
    occupied  the contents of the regions step by step, for display
    """

    graph: Graph
    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    regions: tuple[Region, ...]
    consumed: frozenset[str]
    slots: Mapping[Key, Slot] = field(default_factory=dict)
    slot_offsets: Mapping[str, BlockOffset] = field(default_factory=dict)
    lazy: frozenset[str] = frozenset()
    unpacks: tuple[Unpack, ...] = ()
    stages: tuple[Stage, ...] = ()
    rings: Mapping[str, Ring] = field(default_factory=dict)
    counters: int = 0
    pushed: frozenset[str] = frozenset()
    owners: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[Kept, ...] = ()
    occupied: Occupied | None = field(default=None, repr=False, compare=False)

    def settled(self) -> Plan:
        """Return the plan with cheaper kernel arguments where an output overwrites its
        operand."""
        return replace(self, steps=tuple(map(self._settled, self.steps)))

    def _settled(self, step: Step) -> Step:
        less, node = step.candidate.over, step.node
        if less is None or self.places[node.output] != self.places[node.inputs[0]]:
            return step
        return replace(step, candidate=replace(step.candidate, args=less))

    @property
    def converted(self) -> Mapping[str, str]:
        """Map each input that is converted when it is set to the tensor that it
        becomes."""
        return conversions(self.graph)

    @property
    def arena_bytes(self) -> int:
        """The bytes of the CPU's arena, in all its regions."""
        return sum(region.bytes for region in self.regions if not region.device)

    @property
    def lower_bound(self) -> int:
        return sum(region.lower_bound for region in self.regions if not region.device)

    @property
    def peak(self) -> tuple[Block, ...]:
        return tuple(b for r in self.regions if not r.device for b in r.peak)

    @property
    def copied(self) -> tuple[Node, ...]:
        moves = ("reshape", "slice", "concat", "copy", "transpose", "pad")
        return tuple(s.node for s in self.steps if s.node.op in moves)


def spent_inputs(graph: Graph, word: str, rows: bool = True) -> tuple[str, ...]:
    """Return the inputs whose rows may be overwritten as soon as they have been read.

    word  "keep": none; "reuse": where layers work by rows; "consumable"
    """
    by_rows = rows and not graph.is_placed and not graph.storage
    if word == "keep" or (word == "reuse" and not by_rows):
        return ()
    kept = (*graph.outputs, graph.sampled, *conversions(graph))
    return tuple(name for name in graph.inputs if name not in kept)


def estimate(plan: Plan, kernels: Options) -> int:
    """Return the estimated instructions of a plan's kernels."""
    steps = ((step.node, step.candidate) for step in plan.steps)
    return sum(estimated(steps, kernels))
