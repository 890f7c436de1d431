"""share_params and lazy_init_input of the patches behind docs/graph-executor.md."""

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


def test_weights_of_kernels_that_pack_are_shared() -> None:
    """Convolution and dense, loaded late into one module, used by ten."""
    graph, lib, params = tvm.build(workload()[0], "llvm")
    blob = runtime.save_param_dict(params)
    donor = graph_executor.create(graph, lib, tvm.cpu(0))
    donor.load_params(blob)
    sharers = [graph_executor.create(graph, lib, tvm.cpu(0)) for _ in range(10)]
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
