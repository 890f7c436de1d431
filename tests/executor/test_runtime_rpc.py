"""TVM's test_runtime_rpc, of a board: arrays there and back, large ones, a module that
is timed there, errors from there, sessions that end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pybuild as tvm
from pybuild import rpc
from pybuild.contrib import graph_executor
from tests.executor.kernels import add_one, add_one_graph
from tests.toolchains import require

N = 102


@pytest.fixture(scope="module")
def remote() -> Iterator[rpc.Remote]:
    require("qemu-system-arm")
    with rpc.connect("qemu:mps2-an386") as made:
        yield made


def create(count: int, remote: rpc.Remote) -> graph_executor.GraphModule:
    graph, functions = add_one_graph(count), add_one(count=count)
    return graph_executor.create(graph, functions, remote.cpu(0))


def test_rpc_array(remote: rpc.Remote) -> None:
    x = np.random.default_rng(0).integers(0, 10, (3, 4))
    r_cpu = tvm.nd.array(x, remote.cpu(0))
    assert str(r_cpu.device).startswith("remote")
    np.testing.assert_equal(r_cpu.numpy(), x)
    mod = create(N, remote)
    mod.set_input("x", np.arange(N, dtype="float32"))
    np.testing.assert_equal(mod.get_input("x").numpy(), np.arange(N))


def test_rpc_remote_module(remote: rpc.Remote) -> None:
    mod = create(N, remote)
    assert mod.type_key == "rpc"
    a = np.random.default_rng(1).uniform(size=N).astype("float32")
    mod.set_input("x", tvm.nd.array(a, remote.cpu(0)))
    time_f = mod.module.time_evaluator("run", remote.cpu(0), number=10)
    assert time_f().mean > 0
    np.testing.assert_equal(mod.get_output(0).numpy(), a + 1)


def test_rpc_large_array(remote: rpc.Remote) -> None:
    mod = create(2500, remote)
    a = np.random.default_rng(2).uniform(size=2500).astype("float32")
    mod.run(x=a)
    np.testing.assert_equal(mod.get_output(0).numpy(), a + 1)


def test_rpc_errors(remote: rpc.Remote) -> None:
    mod = create(N, remote)
    for wrong in (lambda: mod.get_output(0), lambda: mod.run(y=0), lambda: mod["no"]):
        with pytest.raises(tvm.TVMError):
            wrong()
    with pytest.raises(ValueError, match="caches are not flushed"):
        mod.time_evaluator("run", remote.cpu(0), cache_flush_bytes=64)()
    with pytest.raises(ValueError, match="not on cpu"):
        mod.time_evaluator("run", tvm.cpu(0))
