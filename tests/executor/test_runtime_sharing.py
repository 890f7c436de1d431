"""share_params and lazy_init_input of the patches behind docs/graph-executor.md; what
is shared never changes behind the back of who has it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pybuild as tvm
from pybuild import runtime
from pybuild.contrib import graph_executor
from tests.executor.kernels import addition, workload


def test_lazy_init_input() -> None:
    graph = json.loads(addition((4,)))
    graph["attrs"]["lazy_init_input"] = ["list_str", ["y"]]
    mod = graph_executor.create(json.dumps(graph), None, tvm.cpu(0))
    x = np.arange(4, dtype="float32")
    mod.set_input("x", tvm.nd.array(x))
    with pytest.raises(tvm.TVMError):
        mod.set_input("y", tvm.nd.array(x))
    with pytest.raises(tvm.TVMError):
        mod.run()
    y = tvm.nd.array(x * 2)
    mod.set_input_zero_copy("y", y)
    mod.run()
    np.testing.assert_equal(mod.get_output(0).numpy(), x + x * 2)


def test_an_unknown_lazy_input_is_an_error() -> None:
    graph = json.loads(addition((4,)))
    graph["attrs"]["lazy_init_input"] = ["list_str", ["q"]]
    with pytest.raises(tvm.BuildError, match="'q'"):
        graph_executor.create(json.dumps(graph), None, tvm.cpu(0))


def test_weights_of_kernels_that_pack_are_shared(device: tvm.runtime.Device) -> None:
    """Convolution and dense, loaded late into one module, used by ten."""
    graph, lib, params = tvm.build(workload()[0], "llvm")
    blob = runtime.save_param_dict(params)
    donor = graph_executor.create(graph, lib, device)
    donor.load_params(blob)
    sharers = [graph_executor.create(graph, lib, device) for _ in range(10)]
    data = np.random.default_rng(4).uniform(-1, 1, (1, 6, 6, 3)).astype("float32")
    donor.run(data=data)
    want = donor.get_output(0).numpy()
    for sharer in sharers:
        sharer.share_params(donor, blob)
    del donor
    for sharer in sharers:
        sharer.run(data=data)
        np.testing.assert_equal(sharer.get_output(0).numpy(), want)
        assert sharer.get_input_info()[0] == {"data": (1, 6, 6, 3)}


# ---- what is shared is what the donor has then ----------------------------------


def adder(device: tvm.runtime.Device) -> graph_executor.GraphModule:
    """z = x + y of a graph of functions: both are inputs, one may be a weight."""
    return graph_executor.create(addition((4,)), None, device)


def blob(value: float) -> bytes:
    return bytes(runtime.save_param_dict({"y": np.full(4, value, np.float32)}))


def sums(mod: graph_executor.GraphModule) -> list[float]:
    mod.run(x=np.arange(4, dtype=np.float32))
    return [float(v) for v in mod.get_output(0).numpy()]


@pytest.mark.parametrize("names", [None, ["y"], blob(0)], ids=["all", "list", "blob"])
def test_a_donors_later_weights_are_its_own(
    device: tvm.runtime.Device, names: list[str] | bytes | None
) -> None:
    """Of function modules too, whose weights are inputs; all without names."""
    donor, sharer = adder(device), adder(device)
    donor.load_params(blob(1))
    sharer.share_params(donor, names)
    assert sums(sharer) == [1, 2, 3, 4]
    donor.load_params(blob(5))
    assert sums(donor) == [5, 6, 7, 8]
    donor.set_input("y", np.full(4, 7, np.float32))
    assert sums(sharer) == [1, 2, 3, 4]
    donor.close()
    assert sums(sharer) == [1, 2, 3, 4]


@pytest.mark.parametrize("names", [None, ["y"], blob(0)], ids=["all", "list", "blob"])
def test_nothing_is_shared_of_a_donor_that_has_nothing(
    device: tvm.runtime.Device, names: list[str] | bytes | None
) -> None:
    donor, sharer = adder(device), adder(device)
    sharer.load_params(blob(2))
    with pytest.raises(tvm.TVMError, match="CRT_ERR_UNBOUND"):
        sharer.share_params(donor, names)
    assert sums(sharer) == [2, 3, 4, 5]


def test_an_input_follows_an_output_that_is_bound_elsewhere() -> None:
    """There is no binding of arrays on a board; the next test is for both."""
    source, reader = adder(tvm.cpu(0)), adder(tvm.cpu(0))
    reader.load_params(blob(10))
    reader.set_shared_input("x", source, "z")
    ones = np.ones(4, np.float32)
    places = [np.zeros(4, np.float32) for _ in range(3)]
    for number, place in enumerate([None, *places, None], 1):
        source.set_output_zero_copy(0, place)
        source.run(x=number * ones, y=ones)
        reader.run()
        assert reader.get_output(0).tolist() == [number + 11] * 4
    for place in places:
        place[:] = 99  # nobody reads there any more
    reader.run()
    assert reader.get_output(0).tolist() == [16] * 4


def test_an_input_follows_what_another_module_computes(
    device: tvm.runtime.Device,
) -> None:
    source, reader = adder(device), adder(device)
    reader.load_params(blob(10))
    reader.set_shared_input("x", source, "z")
    for number in (1, 2):
        source.run(x=np.full(4, number, np.float32), y=np.ones(4, np.float32))
        reader.run()
        assert reader.get_output(0).numpy().tolist() == [number + 11] * 4
    reader.set_input("x", np.zeros(4, np.float32))
    reader.run()
    assert reader.get_output(0).numpy().tolist() == [10] * 4
