"""TVM's test_runtime_graph: a graph of one function, here and on a board; ten sharers
of one module's parameters; parameters that the graph does not know; files of them.
"""

from __future__ import annotations

import gc

import numpy as np

import pybuild as tvm
from pybuild import relay, runtime
from pybuild.contrib import graph_executor, utils
from tests.executor.kernels import add_one, add_one_graph, addition

N = 4


def test_graph_simple(device: tvm.runtime.Device) -> None:
    mod = graph_executor.create(add_one_graph(N), add_one(), device)
    a = np.random.default_rng(0).uniform(size=(N,)).astype("float32")
    mod.run(x=tvm.nd.array(a, device))
    out = mod.get_output(0, tvm.nd.empty((N,), device=device))
    np.testing.assert_equal(out.numpy(), a + 1)


def test_sharing(device: tvm.runtime.Device) -> None:
    x_in = np.ones((1, 10), "float32")
    graph, lib, params = relay.build(addition(), target="llvm", params={"x": x_in})
    mod_shared = graph_executor.create(graph, lib, device)
    mod_shared.load_params(runtime.save_param_dict(params))
    mods = [graph_executor.create(graph, lib, device) for _ in range(10)]
    for mod in mods:
        mod.share_params(mod_shared, runtime.save_param_dict(params))
    a = np.random.default_rng(1).uniform(size=(1, 10)).astype("float32")

    def verify() -> None:
        for mod in mods:
            mod.run(y=a)
            out = mod.get_output(0, tvm.nd.empty((1, 10)))
            np.testing.assert_equal(out.numpy(), x_in + a)

    verify()
    del mod_shared
    gc.collect()
    verify()


def test_load_unexpected_params(device: tvm.runtime.Device) -> None:
    graph, lib, params = relay.build(
        addition(), target="llvm", params={"x": np.ones((1, 10), "float32")}
    )
    new_params = {**params, "y_unknown": np.ones((1,), "float32")}
    mod = graph_executor.create(graph, lib, device)
    mod.load_params(runtime.save_param_dict(new_params))
    mod.run(y=np.zeros((1, 10), "float32"))
    np.testing.assert_equal(mod.get_output(0).numpy(), np.ones((1, 10)))


def test_save_load_file() -> None:
    p = np.random.default_rng(2).standard_normal(10)
    temp = utils.tempdir()
    path = temp.relpath("params.bin")
    runtime.save_param_dict_to_file({"x": p}, path)
    np.testing.assert_equal(runtime.load_param_dict_from_file(path)["x"].numpy(), p)
    blob = runtime.save_param_dict({"x": tvm.nd.array(p)})
    np.testing.assert_equal(relay.load_param_dict(blob)["x"].numpy(), p)
