"""Models on several devices give the bits of one: on a device whose memory the CPU
cannot touch, working at once, as late as it may, and in a thread."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.host.devices import Cpu
from pybuild.host.native import Net
from pybuild.model import Library, Model
from pybuild.verify.samples import example_inputs
from tests.conftest import model_path
from tests.devices.protected import PACES, Protected
from tests.frontends.graphjson.tvm_graphs import duplex, simplex
from tests.graphs.networks import classifier

BACKENDS = ("llvm", "c")
FUNCTIONS = pybuild.functions(
    pybuild.function("elemwise_add", op="add"),
    pybuild.function("elemwise_sub", op="sub"),
)


@contextmanager
def instance(library: Library, backend: str = "llvm") -> Iterator[tuple[Net, Any]]:
    """An instance, every device but the CPU a protected one."""
    devices = [Protected() for _ in range(library.tables.device_count - 1)]
    net = library.host(backend, [Cpu(), *devices])
    try:
        yield net, devices
    finally:
        net.close()
        for device in devices:
            device.close()


def same_at_every_pace(
    library: Library,
    inputs: Mapping[str, Array],
    want: Mapping[str, Array],
    backend: str = "llvm",
) -> None:
    with instance(library, backend) as (net, devices):
        for pace in PACES:
            for device in devices:
                device.work(pace)
            for name, made in net(**inputs).items():
                assert made.tobytes() == want[name].tobytes(), (pace, name)


def devices_of(library: Library) -> list[tuple[str, int]]:
    return [(node.op, node.device) for node in library.plan.graph.nodes]


# ---- graphs that say it themselves --------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("storage", ["planned", "given"])
@pytest.mark.parametrize("graph", [simplex, duplex])
def test_graphs_of_another_executor(graph: Any, storage: str, backend: str) -> None:
    """test_runtime_heterogeneous.py of TVM: equal to numpy exactly."""
    table = {0: "generic", 1: "generic", 2: "host"}
    library = pybuild.build(
        json.dumps(graph()), functions=FUNCTIONS, target=table, storage=storage
    )
    rng = np.random.default_rng(1)
    values = {n: rng.standard_normal(4).astype("f4") for n in library.plan.graph.inputs}
    want = values["A"] + values["B"] - values["C"] + values.get("D", np.float32(0))
    (output,) = library.plan.graph.outputs
    same_at_every_pace(library, values, {output: want}, backend)


def test_inputs_and_outputs_stay_on_their_devices() -> None:
    library = pybuild.build(
        json.dumps(duplex()),
        functions=FUNCTIONS,
        target=dict.fromkeys(range(3), "generic"),
    )
    regions = [row.device for row in library.tables.regions]
    homes = {r.tensor.name: regions[r.region] for r in library.tables.tensors}
    assert homes == {"A": 2, "B": 2, "C": 1, "D": 2, "add2": 2}
    with instance(library) as (net, _):
        a = np.float32([1, 2, 3, 4])
        net.set_input("A", a)
        assert net.borrow_input("A").tolist() == a.tolist()  # a copy


def test_two_devices_that_are_no_cpu_meet_at_the_cpu() -> None:
    library = pybuild.build(
        json.dumps(duplex()),
        functions=FUNCTIONS,
        target=dict.fromkeys(range(3), "generic"),
    )
    assert devices_of(library) == [
        ("add", 2), ("copy", 0), ("copy", 1), ("sub", 1),
        ("copy", 0), ("copy", 2), ("add", 2),
    ]  # fmt: skip
    assert set(library.plan.graph.crossings().values()) == {
        (2, 0), (0, 1), (1, 0), (0, 2),
    }  # fmt: skip


def test_a_graph_all_on_one_device_of_another_numbering() -> None:
    """Device types: a CPU is 1."""
    top = duplex()
    top["attrs"]["device_index"] = ["list_int", [1] * 9]
    library = pybuild.build(json.dumps(top), functions=FUNCTIONS)
    assert {node.device for node in library.plan.graph.nodes} == {0}
    assert library.tables.device_count == 1


# ---- every split --------------------------------------------------------------


def splits(model: Model) -> Iterator[tuple[str, dict[str, int]]]:
    """The first layers on the CPU, the others on the device; and the reverse."""
    layers = list(dict.fromkeys(node.name for node in model.lower().nodes))
    for at in range(len(layers) + 1):
        yield f"{at} first", dict.fromkeys(layers[at:], 1)
        yield f"{at} last", dict.fromkeys(layers[:at], 1)


# which of the splits; C prints tables and places as LLVM has them: one split of it
WHOLE, SOME, ONE = slice(None, None, 2), slice(None, None, 6), slice(8, 9)


@pytest.mark.parametrize(
    ("backend", "network", "which"),
    [
        pytest.param("llvm", "kws", WHOLE, id="llvm-kws"),
        pytest.param("c", "kws", ONE, id="c-kws"),
        pytest.param("c", "kws", SOME, id="c-kws-more", marks=pytest.mark.sweep),
        pytest.param("llvm", "ic", WHOLE, id="llvm-ic", marks=pytest.mark.sweep),
        pytest.param("c", "ic", SOME, id="c-ic", marks=pytest.mark.sweep),
    ],
)
def test_every_split_of_a_real_network(
    network: str, backend: str, which: slice
) -> None:
    model = pybuild.load(model_path(f"{network}_int8.tflite"))
    inputs = example_inputs(model.lower())
    with_one = model.build().host()
    want = with_one(**inputs)
    found = list(splits(model))
    for label, place in found[which]:
        library = model.build(target={0: "generic", 1: "host"}, place=place)
        assert (len(library.tables.regions) == 2) == bool(place), label
        same_at_every_pace(library, inputs, want, backend)


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_layers_anywhere(kind: str) -> None:
    """Three devices, two of them of one type, layers in any order on them."""
    model = classifier("any", kind).model()
    inputs = example_inputs(model.lower())
    want = model.build().host()(**inputs)
    chance = np.random.default_rng(7)
    layers = [node.name for node in model.lower().nodes]
    ends = [f"input:{model.graph.inputs[0]}", f"output:{model.graph.outputs[0]}"]
    table = {0: "generic", 1: "cortex-m4", 2: "cortex-m4"}
    for _ in range(12):
        place = {n: int(chance.integers(3)) for n in (*layers, *ends)}
        library = model.build(target=table, place=place)
        same_at_every_pace(library, inputs, want)


# ---- a missing copy is a fault ------------------------------------------------

MISSING = """
import dataclasses
from tests.devices.test_devices import *
library = classifier().model().build(
    target={0: "generic", 1: "generic"}, place={"dense": 1}
)
operands = list(library.tables.operands)
for index, operand in enumerate(operands):
    if f" {NAME}, " in operand.comment:
        operands[index] = dataclasses.replace(operand, buffer=BUFFER, at=0)
tables = dataclasses.replace(library.tables, operands=tuple(operands))
with instance(dataclasses.replace(library, tables=tables)) as (net, _):
    net(**example_inputs(library.plan.graph))
"""


@pytest.mark.parametrize(
    ("name", "buffer"), [("flat_device_1", 0), ("logits_device_0", 1)]
)
def test_a_missing_copy_is_a_fault(name: str, buffer: int) -> None:
    """The device reads where the CPU wrote; the CPU reads where the device wrote."""
    code = MISSING.replace("NAME", repr(name)).replace("BUFFER", str(buffer))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV, done.stderr
