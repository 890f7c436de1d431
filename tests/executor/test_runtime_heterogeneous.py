"""TVM's test_runtime_heterogeneous: an addition on a device, a subtraction here, copies
in between; devices by TVM's types or by our numbers.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import pybuild as tvm
from pybuild.contrib import graph_executor
from pybuild.contrib.debugger import debug_executor
from tests.executor.kernels import elemwise_add, elemwise_sub
from tests.frontends.graphjson.tvm_graphs import duplex, simplex

FUNCTIONS = [elemwise_add, elemwise_sub]
KINDS = [(1, 2), (1, 12), (0, 1)]  # of the host and the device in the graph
RNG = np.random.default_rng(0)
PARAMS = {name: RNG.uniform(size=4).astype("float32") for name in "ABCD"}


def placed(top: dict[str, Any], host: int, device: int) -> str:
    """The graph, whose own types are 1 and 2, with other ones."""
    kinds = top["attrs"]["device_index"][1]
    top["attrs"]["device_index"][1] = [{1: host, 2: device}[kind] for kind in kinds]
    return json.dumps(top)


def devices(device: int) -> list[tvm.runtime.Device]:
    return [tvm.cpu(0), tvm.device(12 if device == 1 else device)]


@pytest.mark.parametrize(("host", "device"), KINDS)
def test_simplex_data_transferring(host: int, device: int) -> None:
    graph = placed(simplex(), host, device)
    mod = graph_executor.create(graph, FUNCTIONS, devices(device))
    mod.set_input(**{name: PARAMS[name] for name in "ABC"})
    mod.run()
    out = mod.get_output(0, tvm.nd.empty((4,)))
    want = (PARAMS["A"] + PARAMS["B"]) - PARAMS["C"]
    np.testing.assert_equal(out.numpy(), want)


@pytest.mark.parametrize(("host", "device"), KINDS)
def test_duplex_data_transferring(host: int, device: int) -> None:
    graph = placed(duplex(), host, device)
    mod = graph_executor.create(graph, FUNCTIONS, devices(device))
    mod.set_input(**PARAMS)
    mod.run()
    out = mod.get_output(0, tvm.nd.empty((4,)))
    want = PARAMS["A"] + PARAMS["B"] - PARAMS["C"] + PARAMS["D"]
    np.testing.assert_equal(out.numpy(), want)


def test_each_layer_of_two_devices() -> None:
    mod = debug_executor.create(placed(simplex(), 1, 12), FUNCTIONS, devices(12))
    mod.set_input(**{name: PARAMS[name] for name in "ABC"})
    found = mod.debug_get_output("add")
    np.testing.assert_equal(found, PARAMS["A"] + PARAMS["B"])
    mod.exit()
