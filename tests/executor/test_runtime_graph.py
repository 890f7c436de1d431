"""TVM's test_runtime_graph: a graph of one function, here and on a board; ten sharers
of one module's parameters; parameters that the graph does not know; files of them.
"""

from __future__ import annotations

import gc

import numpy as np

import pybuild as tvm
from pybuild import relay, rpc, runtime
from pybuild.contrib import graph_executor, utils
from tests.executor.kernels import add_one, add_one_graph, addition
from tests.toolchains import require

N = 4


def check(dev: tvm.runtime.Device) -> None:
    mod = graph_executor.create(add_one_graph(N), add_one(), dev)
    a = np.random.default_rng(0).uniform(size=(N,)).astype("float32")
    mod.run(x=tvm.nd.array(a, dev))
    out = mod.get_output(0, tvm.nd.empty((N,), device=dev))
    np.testing.assert_equal(out.numpy(), a + 1)


def test_graph_simple() -> None:
    check(tvm.cpu(0))


def test_graph_simple_remote() -> None:
    require("qemu-system-arm")
    with rpc.connect("qemu:mps2-an386") as remote:
        check(remote.cpu(0))


def test_sharing() -> None:
    x_in = np.ones((1, 10), "float32")
    graph, lib, params = relay.build(addition(), target="llvm", params={"x": x_in})
    mod_shared = graph_executor.create(graph, lib, tvm.cpu(0))
    mod_shared.load_params(runtime.save_param_dict(params))
    mods = [graph_executor.create(graph, lib, tvm.cpu(0)) for _ in range(10)]
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


def test_load_unexpected_params() -> None:
    graph, lib, params = relay.build(
        addition(), target="llvm", params={"x": np.ones((1, 10), "float32")}
    )
    new_params = {**params, "y_unknown": np.ones((1,), "float32")}
    mod = graph_executor.create(graph, lib, tvm.cpu(0))
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
