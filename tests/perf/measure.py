"""What a made layer takes on a core, and whether it makes what it must: counted and
compared in the same run of an emulated board."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from pybuild.boards.device import Device, open_device, pack_inputs, program_of
from pybuild.boards.firmware.fit import Program
from pybuild.boards.simulators.count import count_plan
from pybuild.boards.simulators.simulator import must_succeed
from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from pybuild.verify.samples import sample
from tests.boards.devices import CORES
from tests.figures import tools
from tests.figures.counted import program_key
from tests.figures.store import Facts, Ready
from tests.ops.litert import run_litert

EMITS = ("c", "obj")


class Layer(Protocol):
    """What is measured: of layers.py or operators.py."""

    @property
    def seed(self) -> int: ...
    @property
    def words(self) -> str: ...
    @property
    def rounding(self) -> str: ...
    @property
    def file(self) -> bytes: ...
    @property
    def macs(self) -> int: ...


L = TypeVar("L", bound=Layer)


@dataclass(frozen=True)
class Measured(Generic[L]):
    """A layer on a core by one back end.

    instructions  of its kernels; estimate: of the cost model
    kernels       their names; plain: one of them is the plain kernel
    unequal       values that are not the reference's
    """

    made: L
    core: str
    emit: str
    instructions: int
    estimate: int
    kernels: tuple[str, ...]
    unequal: int

    @property
    def per_mac(self) -> float:
        return self.instructions / self.made.macs

    @property
    def plain(self) -> bool:
        return is_plain(self.kernels)


def is_plain(kernels: tuple[str, ...]) -> bool:
    """Whether one of them is for any core, where families of it have faster ones."""
    return any(k.startswith(_PLAIN) and "_dsp_" not in k for k in kernels)


_PLAIN = ("conv2d_s", "dense_s", "depthwise_s")


@functools.cache
def device(core: str) -> Device:
    return open_device(CORES[core], "gcc", "qemu", core)


def model(made: Layer) -> Model:
    graph = load("layer.tflite", made.file, {})
    return Model("layer.tflite", graph, "litert", "0" * 64)


def wanted(made: Layer, given: Mapping[str, Array]) -> Array:
    """What the layer makes of its inputs, by LiteRT where it has this rule."""
    graph = model(made).lower(made.rounding)
    ours = interpret(graph, given)[graph.outputs[0]]
    if made.rounding == "litert":
        (theirs,) = run_litert(made.file, [given])
        np.testing.assert_array_equal(ours, theirs[graph.outputs[0]], made.words)
    return ours


def inputs(made: Layer) -> dict[str, Array]:
    """Values to both ends of the type; floats beyond those of a quantised tensor."""
    chance = np.random.default_rng((7, made.seed))
    graph, given = model(made).graph, {}
    for x in (graph.tensor(name) for name in graph.inputs):
        if x.dtype.is_float:
            given[x.name] = chance.normal(0, 3, x.shape).astype(np.float32)
            continue
        values = chance.integers(x.dtype.low, x.dtype.high + 1, x.shape)
        given[x.name] = values.astype(x.dtype.numpy)
    return given


def ready(made: Layer, core: str, emit: str) -> Ready:
    """One inference, and a run on inputs to both ends of their types."""
    library = model(made).build(
        name="layer", target=core, emit=emit, rounding=made.rounding
    )
    on, given = device(core), inputs(made)
    program = program_of(on, library)
    steps = [s.candidate for s in library.plan.steps if s.candidate.func is not None]

    def measure() -> Facts:
        instructions, found = _run(on, program, given)
        unequal = int((found != wanted(made, given)).sum())
        return {"instructions": instructions, "unequal": unequal}

    told = hashlib.sha256(made.file).hexdigest()
    versions = tools.versions()
    reference = (versions["ai-edge-litert"], versions["numpy"])
    facts = {
        "estimate": sum(price(step, TARGETS[core]).instructions for step in steps),
        "kernels": [step.func.name for step in steps if step.func is not None],
    }
    key = program_key(on, program, told, made.rounding, reference)
    return Ready(key, facts, measure)


def measured(made: L, core: str, emit: str) -> Measured[L]:
    """One inference, whatever is kept."""
    one = ready(made, core, emit)
    return from_facts(made, core, emit, one.facts | one.measure())


def from_facts(made: L, core: str, emit: str, facts: Facts) -> Measured[L]:
    kernels = tuple(facts["kernels"])
    counts = (facts["instructions"], facts["estimate"])
    return Measured(made, core, emit, *counts, kernels, facts["unequal"])


def _run(on: Device, program: Program, given: Mapping[str, Array]) -> tuple[int, Array]:
    """What all kernels take on a seeded input, as `crt bench` counts it, and the output
    for the given one: of two inferences of one run the last is counted."""
    plan, firmware = program.library.plan, program.firmware
    usual = sample(plan.graph, "uniform", (0, 0)).inputs
    files = {"crt.in": pack_inputs(plan, [given, usual])}
    counting = count_plan(firmware, len(plan.steps))
    outcome = must_succeed(on.simulator.run(firmware, files, counting), firmware)
    assert outcome.counts is not None
    tensor = plan.graph.tensor(plan.graph.outputs[0])
    raw = np.frombuffer(outcome.files["crt.out"], np.uint8, tensor.bytes)
    found = raw.view(tensor.dtype.numpy).reshape(tensor.shape)
    return sum(outcome.counts.steps), found
