"""What runs on several devices show besides equal bits: copies overlap compute, weights
are on all devices that read them, a device that fails is an error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.host.abi import CrtError
from pybuild.host.parameter_image import Weights
from pybuild.host.trace import recorded
from pybuild.verify.samples import example_inputs
from tests.devices.test_devices import FUNCTIONS, instance, same_at_every_pace
from tests.frontends.graphjson.tvm_graphs import call, graph, null, simplex
from tests.frontends.onnx.test_functions import elementwise, size
from tests.graphs.networks import Network, classifier

TWO = {0: "generic", 1: "generic"}


def test_copies_and_launches_overlap_the_work_of_the_cpu() -> None:
    """The device does not begin before the CPU's branch is done: nobody waits."""
    net = Network("branches", (1, 8, 8, 3), "int8", 0)
    left = net.conv("left", 4)
    net.last = net.input
    net.conv("right", 4)
    net.add("add", "sum", (1, 8, 8, 4), left)
    model = net.model()
    inputs = example_inputs(model.lower())
    want = model.build().host()(**inputs)
    library = model.build(target=TWO, place={"left": 1})
    names = [step.node.name for step in library.plan.steps]
    assert names == [
        "image to device 1", "left", "left to device 0", "right", "for device 1", "sum",
    ]  # fmt: skip
    with instance(library) as (made, (device,)):
        device.work("thread")
        device.hold(True)

        def hook(context: Any, step: int, row: int, count: int, rows: Any) -> int:
            if names[step] == "right" and row + count == 8:
                device.hold(False)
            return 0

        with made.hooked(hook):
            made.run(**inputs)
        assert made.outputs()["sum"].tobytes() == want["sum"].tobytes()


def _shared() -> str:
    """(x + w) on device 1, copied, minus w on the CPU."""
    nodes = [
        null("x"), null("w"), call("add", "elemwise_add", [[0, 0], [1, 0]]),
        call("copy", "__copy", [[2, 0]]), call("sub", "elemwise_sub", [[3, 0], [1, 0]]),
    ]  # fmt: skip
    top = graph(nodes, [0, 1], [[4, 0]], [[4]] * 5)
    top["attrs"]["device_index"] = ["list_int", [1, 1, 1, 0, 0]]
    return json.dumps(top)


def test_a_shared_parameter_is_on_both_devices() -> None:
    """Where TVM fails (#15019)."""
    x, w = np.arange(4, dtype="f4"), np.full(4, 0.1, "f4")
    library = pybuild.build(
        _shared(), functions=FUNCTIONS, weights={"w": w}, target=TWO
    )
    stored = library.report.parameters
    assert [(p.name, p.copy_of, p.device) for p in stored] == [
        ("w", "", 1), ("w (sub)", "w", 0),
    ]  # fmt: skip
    same_at_every_pace(library, {"x": x}, {"sub": (x + w) - w})
    other = np.full(4, 0.7, "f4")
    with instance(library) as (net, _):
        net.load_params(Weights(library.image({"w": other})))
        assert net(x=x)["sub"].tobytes() == ((x + other) - other).tobytes()


def test_a_shared_input_is_copied_to_both_devices() -> None:
    x, w = np.arange(4, dtype="f4"), np.full(4, 0.1, "f4")
    library = pybuild.build(_shared(), functions=FUNCTIONS, target=TWO)
    same_at_every_pace(library, {"x": x, "w": w}, {"sub": (x + w) - w})
    assert [c.reason for c in library.report.copies] == [
        "from device 1 to device 0"
    ] * 2


def test_a_tensor_is_copied_once_to_a_device() -> None:
    """Two readers there, and an output of the model, have one copy each."""
    net = Network("readers", (1, 4, 4, 2), "int8", 0)
    first = net.conv("first", 2)
    net.conv("second", 2)
    net.add("add", "sum", (1, 4, 4, 2), first)
    library = net.model("sum", "first").build(target=TWO, place={"second": 1, "sum": 1})
    assert [(c.tensor, c.bytes, c.reason) for c in library.report.copies] == [
        ("first (device 1)", 32, "from device 0 to device 1"),
        ("sum", 32, "from device 1 to device 0"),
    ]
    assert [(d.index, d.layers, d.arena) for d in library.report.devices] == [
        (0, 1, 64), (1, 2, 64),
    ]  # fmt: skip


def test_functions_of_one_name_on_two_devices_do_not_clash() -> None:
    library = pybuild.build(
        json.dumps(simplex()),
        functions=pybuild.functions(
            *(
                pybuild.function(name, loop=elementwise("same", op), arguments=size)
                for name, op in (("elemwise_add", "+"), ("elemwise_sub", "-"))
            )
        ),
        target=dict.fromkeys(range(3), "generic"),
    )
    assert [f.name for f, _ in library.tables.kernels] == ["same", "same_2"]
    values = {n: np.full(4, i + 0.1, "f4") for i, n in enumerate("ABC")}
    want = values["A"] + values["B"] - values["C"]
    for backend in ("llvm", "c"):
        same_at_every_pace(library, values, {"sub": want}, backend)


def test_each_device_has_kernels_for_its_target() -> None:
    net = Network("two", (1, 8, 8, 16), "int8", 0)
    net.conv("a", 16)
    net.conv("b", 16)
    library = net.model().build(target={0: "generic", 1: "cortex-m4"}, place={"b": 1})
    for device, target in enumerate(("generic", "cortex-m4")):
        alone = net.model().build(target=target)
        steps = [s for s in library.plan.steps if s.candidate.func]
        assert steps[device].candidate.func == alone.plan.steps[device].candidate.func
    assert steps[0].candidate.func != steps[1].candidate.func


def test_each_failing_call_is_an_error_and_the_next_run_is_good() -> None:
    model = classifier().model()
    inputs = example_inputs(model.lower())
    library = model.build(target=TWO, place={"dense": 1, "output:scores": 1})
    want = model.build().host()(**inputs)["scores"].tobytes()
    with instance(library) as (net, (device,)):
        net.run(**inputs)
        calls = sum(device.count(w) for w in ("copy_in", "copy_out", "launch", "wait"))
        assert calls == 6 + 2  # the output lies there: a run brings it back
        for call_ in range(1, calls + 1):
            device.fail(call_)
            with pytest.raises(CrtError, match="CRT_ERR_DEVICE"):
                net.run(**inputs)
            assert net(**inputs)["scores"].tobytes() == want


def test_every_tensor_can_be_recorded() -> None:
    model = classifier().model()
    inputs = example_inputs(model.lower())
    want = recorded(model.build().host(), inputs)
    library = model.build(target=TWO, place={"depth": 1, "dense": 1})
    with instance(library) as (net, (device,)):
        device.work("late")
        found = recorded(net, inputs)
    for name, value in want.items():
        assert found[name].tobytes() == value.tobytes(), name


def test_weights_packed_by_layer_are_not_unpacked_for_devices() -> None:
    net = Network("zeros", (1, 4, 4, 8), "int8", 0)
    for name in ("a", "b"):
        net.conv(name, 8)
        net.constants[f"{name}/w"][:] = 1
    model = net.model()
    inputs = example_inputs(model.lower())
    want = model.build().host()(**inputs)
    for compress, packed in (("lz4-layer", ["a w"]), ("lz4", None)):
        library = model.build(target=TWO, place={"b": 1}, compress=compress)
        if packed:
            assert {u.name.split()[0] for u in library.plan.unpacks} == {"a"}
        same_at_every_pace(library, inputs, want)
