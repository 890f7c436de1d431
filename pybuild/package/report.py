"""The cost of a build and its guarantees: the same facts for people and for scripts.

Values only; knows nothing of how they were found or where they are printed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pybuild.bounds.stack import NO_STACK, KernelStack
from pybuild.bounds.static import LayerLimits
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops import OPERATORS
from pybuild.package.choices import CodePiece, KernelChoice
from pybuild.package.memory import Held, StageFacts
from pybuild.package.occupancy import Occupancy
from pybuild.package.saving import Saving
from pybuild.package.structure import GraphFacts, WeightFacts
from pybuild.plan.plan import Plan
from pybuild.quantisation.report import Quantisation
from pybuild.records import dataclass, renamed, with_old_keys
from pybuild.targets.target import Target

# what a user may compare the numbers with, by build option
REFERENCES = {
    "litert": "LiteRT reference kernels, bit for bit",
    "tflm": "TensorFlow Lite Micro: rounds twice everywhere",
    "single": "one rounding where XNNPACK computes; near it, not equal",
    "onnx": "ONNX standard, ties to even",
}
FLOAT_REFERENCE = "float32, compared within a tolerance"
# whose bits a build is made to give, by its rounding
FOLLOWED = {
    "litert": "LiteRT's reference kernels",
    "tflm": "TensorFlow Lite Micro's",
    "single": "XNNPACK's to within a step",
    "onnx": "the ONNX standard",
}


SCHEMA = 2


@dataclass(frozen=True)
class Ram:
    """Units  bytes; instance: of struct <name> on a 32-bit target; unpacked: weights,
    once for all instances.
    """

    arena: int
    instance: int
    lower_bound: int
    unpacked: int = 0


@dataclass(frozen=True)
class Flash:
    """Units  bytes; tables: steps, arguments, descriptions; stages: the part of the
    tables that is for what advances together; kernels not counted.

    removed_channels  channels of layers whose value never changes: they are removed;
                      removed: bytes of constants that the file has for them
    """

    weights: int
    tables: int
    stages: int = 0
    removed_channels: int = 0
    removed: int = 0


@dataclass(frozen=True)
class Boundary:
    """An input or output; real = scale * (q - zero_point) where scale is given."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class Layer:
    """A node of the final graph, by the file's name and by one that people read.

    out_bytes  of all its outputs
    """

    name: str
    short: str
    op: str
    macs: int
    out_bytes: int


@renamed(why="reason")
@dataclass(frozen=True)
class Copy:
    """Bytes moved for layout only, or between devices."""

    tensor: str
    bytes: int
    reason: str


@dataclass(frozen=True)
class Stored:
    """A parameter, or a constant that is packed; stored: its bytes in flash.

    layout   0: row-major; else the number of an arrangement
    copy_of  the parameter that this is again, arranged otherwise or on a device; ""
    device   that has it in its memory too; 0: none
    """

    name: str
    bytes: int
    stored: int
    layout: int = 0
    copy_of: str = ""
    device: int = 0
    short: str = ""


@dataclass(frozen=True)
class Device:
    """A device of the table, the CPU being 0: its target, layers and arena.

    Units  bytes
    """

    index: int
    target: str
    layers: int
    arena: int
    lower_bound: int


@dataclass(frozen=True)
class RegionUse:
    """A region that the user gave.

    limit   what it may hold
    moved   bytes that a run reads and writes there
    copied  bytes of weights that a run copies there
    holds   tensors, scratch and weights by name
    Units   bytes
    """

    name: str
    device: int
    speed: str
    bytes: int
    limit: int
    moved: int
    copied: int
    holds: tuple[str, ...]


@dataclass(frozen=True)
class CoreStep:
    """A step of a run on several cores: estimated instructions in all its calls.

    cores     of each core; 0: it waits
    meetings  how often cores wait for each other, once after each call; 0: the first
              core computes it alone
    meeting   the first core's instructions for that, or to find that there is none
    """

    layer: str
    short: str
    op: str
    cores: tuple[int, ...]
    meetings: int
    meeting: int


@dataclass(frozen=True)
class CoresUse:
    """How a run is shared by equal cores, by estimate.

    cores   as asked for; sliced: steps that all compute, of `steps`; 0: one core runs
    share   of one core's instructions, from begin to end
    arena   bytes of the plan for one core
    alone   instructions of that plan's kernels; together: of several cores, from begin
            to end: to come together, then what the slower core takes between meetings
    shared  what each core does; (): one core runs
    """

    cores: int
    sliced: int
    steps: int
    share: float
    arena: int
    alone: int
    together: int
    shared: tuple[CoreStep, ...]


@renamed(packed="packed_constants", made="provenance")
@dataclass(frozen=True)
class Report:
    """A build in figures.

    reference  what integer results are equal to
    cpu        with its features, what an object was compiled for; C: ""
    devices    (): the CPU does it all
    regions    (): each device has one, as large as it needs
    tensors    where each is; stages: what is computed together
    state      bytes that are saved of what is kept from run to run; warm_runs: until
               the results of a stream are those of its whole window
    quantisation  what it cost, of a model that was quantised here
    kernels    which computes each layer, and why; chosen by `optimise`
    provenance  pybuild's version, files with their SHA-256, every option
    graph      a row for each of `layers`; weights: what is in flash
    memory     what regions hold at each time
    code       kernels in flash, as estimated
    bounds     what holds of each layer for any input: its sums, tests of data
    stack      of the kernels of an object, at most
    cores      how several cores share the work; None: it is one core's
    signatures  of a file that has several: the one that is built, then the others
    command    that makes the same again
    file_bytes  of the model's file, with its weights; 0: it has none
    savings    options with which the arena would be a twentieth smaller, or more
    schema     of these keys: one more whenever one goes or means something else
    """

    name: str
    ram: Ram
    flash: Flash
    macs: int
    inputs: tuple[Boundary, ...]
    outputs: tuple[Boundary, ...]
    layers: tuple[Layer, ...]
    rounding: str
    reference: str
    copies: tuple[Copy, ...] = ()
    parameters: tuple[Stored, ...] = ()
    packed_constants: tuple[Stored, ...] = ()
    emit: str = "c"
    target: str = "generic"
    cpu: str = ""
    features: str = ""
    devices: tuple[Device, ...] = ()
    regions: tuple[RegionUse, ...] = ()
    tensors: tuple[Held, ...] = ()
    stages: tuple[StageFacts, ...] = ()
    quantisation: Quantisation | None = None
    optimise: str = "balanced"
    kernels: tuple[KernelChoice, ...] = ()
    state: int = 0
    warm_runs: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict)
    graph: GraphFacts | None = None
    weights: tuple[WeightFacts, ...] = ()
    memory: Occupancy | None = None
    code: tuple[CodePiece, ...] = ()
    bounds: tuple[LayerLimits, ...] = ()
    stack: KernelStack = NO_STACK
    cores: CoresUse | None = None
    signatures: tuple[str, ...] = ()
    command: str = ""
    file_bytes: int = 0
    savings: tuple[Saving, ...] = ()
    schema: int = SCHEMA

    def __repr__(self) -> str:
        ram, flash = self.ram.arena + self.ram.instance, self.flash
        held = flash.weights + flash.tables
        return f"Report({self.name!r}, RAM {ram:,}, flash {held:,} bytes)"

    def short(self, name: str) -> str:
        """For people, of a layer, tensor or parameter by the file's name."""
        return self._short.get(name, name)

    @functools.cached_property
    def _short(self) -> Mapping[str, str]:
        found = {row.tensor: row.short for row in self.tensors}
        found |= {
            row.name: row.short for row in (*self.parameters, *self.packed_constants)
        }
        return {row.name: row.short for row in self.layers} | found

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers, in a fixed order."""
        plain: dict[str, Any] = with_old_keys(self)
        return plain


def devices(plan: Plan, targets: Sequence[Target]) -> tuple[Device, ...]:
    """The work of each device; () for the CPU alone."""
    if len(targets) == 1:
        return ()
    work = [s.device for s in plan.steps if s.candidate.func is not None]
    found = []
    for index, target in enumerate(targets):
        mine = [region for region in plan.regions if region.device == index]
        size = sum(r.bytes for r in mine), sum(r.lower_bound for r in mine)
        found.append(Device(index, target.name, work.count(index), *size))
    return tuple(found)


def regions(plan: Plan) -> tuple[RegionUse, ...]:
    """The user's regions, empty ones last."""
    copied = {u.place: u.size for u in plan.unpacks if u.plain}
    found = []
    for region in plan.regions:
        spec = region.spec
        if spec is not None:
            found.append(
                RegionUse(
                    name=spec.name,
                    device=spec.device,
                    speed=spec.speed,
                    bytes=region.bytes,
                    limit=spec.bytes,
                    moved=region.moved,
                    copied=sum(copied.get(name, 0) for name in region.holds),
                    holds=region.holds,
                )
            )
    return tuple(found)


def copies(plan: Plan) -> tuple[Copy, ...]:
    """Nodes that only move bytes."""
    crossings = plan.graph.crossings()
    found = []
    for node in plan.copied:
        why = node.op
        if node.output in crossings:
            why = "from device {} to device {}".format(*crossings[node.output])
        found.append(Copy(node.output, plan.graph.tensor(node.output).bytes, why))
    return tuple(found)


def boundary(tensor: Tensor) -> Boundary:
    whole = tensor.quant is not None and len(tensor.quant.scale) == 1
    return Boundary(
        tensor.name,
        tensor.dtype.value,
        tensor.shape,
        tensor.bytes,
        tensor.scale if whole else None,
        tensor.zero_point if whole else None,
    )


def layer(node: Node, graph: Graph) -> Layer:
    known = [n for n in node.of or (node,) if n.op in OPERATORS]
    if not known:  # a task of the runtime's own
        return Layer(node.name, graph.called(node), node.op, 0, 0)
    made = sum(graph.tensor(n).bytes for n in node.outputs if n in graph.tensors)
    macs = sum(OPERATORS[n.op].macs(n, graph) for n in known)
    return Layer(node.name, graph.called(node), node.op, macs, made)


def layers(graph: Graph) -> tuple[Layer, ...]:
    """Every node of the graph in its order."""
    return tuple(layer(node, graph) for node in graph.nodes)


def promise(graph: Graph, rounding: str) -> str:
    """The reference that the integers of a build equal, or that it has no integers."""
    integers = any("rounding" in node.attrs for node in graph.nodes)
    return REFERENCES[rounding] if integers else FLOAT_REFERENCE
