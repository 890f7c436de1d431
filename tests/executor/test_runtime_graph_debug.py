"""TVM's test_runtime_graph_debug: files, table, trace and values of a debug executor;
one node timed; nodes with several outputs.
"""

from __future__ import annotations

import json
import os
import re
import time

import numpy as np
import pytest

import pybuild as tvm
from pybuild import rpc
from pybuild.contrib.debugger import debug_executor
from pybuild.error import TVMError
from tests.executor.kernels import add_one, add_one_graph, split_in_two, workload
from tests.frontends.graphjson.tvm_graphs import call, graph, null
from tests.toolchains import require

N = 4
HEADS = ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs",
         "Measurements(us)"]  # fmt: skip


def test_end_to_end_graph_simple() -> None:
    mod = debug_executor.create(add_one_graph(N), add_one(), tvm.cpu(0))
    a = np.random.default_rng(0).uniform(size=(N,)).astype("float32")
    mod.set_input(x=a)

    directory = mod._dump_path
    assert os.listdir(directory) == ["_tvmdbg_graph_dump.json"]
    with open(os.path.join(directory, "_tvmdbg_graph_dump.json")) as graph_f:
        dumped_graph = json.load(graph_f)
    for key in ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"):
        assert key in dumped_graph
    assert dumped_graph["node_row_ptr"] == [0, 1, 2]
    assert dumped_graph["attrs"]["shape"] == ["list_shape", [[N], [N]]]

    mod.run()
    assert len(os.listdir(directory)) > 1
    debug_lines = mod.debug_datum.get_debug_result().split("\n")

    def split_debug_line(i: int) -> list[str]:
        parts = re.split(r"  [ ]*", debug_lines[i])
        assert parts[-1] == ""
        return parts[:-1]

    assert split_debug_line(0) == HEADS
    myadd_lines = split_debug_line(2)
    assert myadd_lines[:2] == ["add", "myadd"]
    assert float(myadd_lines[2]) > 0
    total_lines = split_debug_line(3)
    assert (total_lines[0], total_lines[2]) == ("Total_time", myadd_lines[2])

    with open(os.path.join(directory, "_tvmdbg_execution_trace.json")) as f:
        trace = json.load(f)
    assert trace["displayTimeUnit"] == "ns"
    events = trace["traceEvents"]
    assert [event["name"] for event in events] == ["x", "x", "add", "add"]
    assert [event["ph"] for event in events] == ["B", "E", "B", "E"]
    assert {(event["pid"], event["tid"]) for event in events} == {(1, 1)}
    assert events[0]["ts"] == 0

    out = mod.get_output(0, tvm.nd.empty((N,)))
    np.testing.assert_equal(out.numpy(), a + 1)
    mod.exit()
    assert not os.path.exists(directory)


def test_remote() -> None:
    require("qemu-system-arm")
    with rpc.connect("qemu:mps2-an386") as remote:
        dev = remote.cpu(0)
        mod = debug_executor.create(add_one_graph(N), add_one(), dev)
        a = np.random.default_rng(0).uniform(size=(N,)).astype("float32")
        mod.run(x=tvm.nd.array(a, dev))
        out = mod.get_output(0, tvm.nd.empty((N,), device=dev))
        np.testing.assert_equal(out.numpy(), a + 1)
        mod.exit()


def test_run_single_node() -> None:
    mod: debug_executor.GraphModuleDebug = debug_executor.create(
        add_one_graph(N), add_one(), tvm.cpu(0)
    )
    mod.set_input(x=np.ones(N, "float32"))
    nodes = mod.debug_datum.get_graph_nodes()
    assert [node["op"] for node in nodes] == ["param", "myadd"]

    assert mod.run_individual_node(0, number=1).mean == 0
    assert mod.run_individual_node(1, repeat=1).mean > 0
    assert len(mod.run_individual_node(1, repeat=10).results) == 10

    def elapsed(**options: int) -> float:
        start = time.time()
        mod.run_individual_node(1, **options)
        return time.time() - start

    assert elapsed(min_repeat_ms=100) >= 0.1
    every = elapsed(repeat=2, min_repeat_ms=50, cooldown_interval_ms=200)
    assert every >= 0.5
    second = elapsed(
        repeat=2, min_repeat_ms=50, cooldown_interval_ms=200, repeats_to_cooldown=2
    )
    assert 0.3 <= second < every
    with pytest.raises(TVMError):
        mod.run_individual_node(2)
    mod.exit()


def test_multiple_output(device: tvm.runtime.Device) -> None:
    """Behind a node of two outputs all shapes and values are right."""
    lib = tvm.build(workload()[0], target="llvm")
    m = debug_executor.GraphModuleDebug(
        lib["debug_create"]("default", device), [device], lib.get_graph_json(), None
    )
    nodes = m.debug_datum.get_graph_nodes()
    assert nodes[1]["shape"] == [4, 3, 3, 3]
    m.exit()


def test_second_outputs_are_recorded(device: tvm.runtime.Device) -> None:
    nodes = [
        null("x"), call("s", "halves", [[0, 0]], outputs=2),
        call("view", "__nop", [[1, 1]]), call("last", "plus", [[2, 0]]),
    ]  # fmt: skip
    top = graph(nodes, [0], [[1, 0], [3, 0]], [[8], [4], [4], [2, 2], [4]],
                storage=[0, 1, 2, 2, 3])  # fmt: skip
    functions = [split_in_two(), add_one("plus")]
    m = debug_executor.create(json.dumps(top), functions, device)
    x = np.arange(8, dtype="float32")
    m.run(x=x)
    found = {key.split("____topo")[0]: 0 for key in m.debug_datum.get_output_tensors()}
    assert list(found) == ["s", "view", "last"]
    tensors = m.debug_datum.get_output_tensors()
    second = tensors["s____topo-index:1____output-num:1"]
    np.testing.assert_equal(second, x[4:])
    np.testing.assert_equal(m.debug_get_output("view"), x[4:].reshape(2, 2))
    np.testing.assert_equal(m.debug_get_output("last"), x[4:] + 1)
    m.execute_node(1)
    np.testing.assert_equal(m.get_node_output(1, 1), x[4:])
    with open(os.path.join(m._dump_path, "_tvmdbg_graph_dump.json")) as file:
        dump = json.load(file)
    assert dump["node_row_ptr"] == [0, 1, 3, 4, 5]
    assert dump["heads"] == [[1, 0, 0], [3, 0, 0]]
    assert m.debug_datum.get_graph_node_shapes() == [[8], [4], [4], [2, 2], [4]]
    with pytest.raises(ValueError, match="not on ext_dev"):
        debug_executor.GraphModuleDebug(m, [tvm.ext_dev()], json.dumps(top), None)
    with pytest.raises(ValueError, match="not a graph JSON"):
        debug_executor.GraphModuleDebug(m, [device], "{}", None)
    with pytest.raises(ValueError, match="collectors are not supported"):
        m.profile(collectors=["papi"])
    m.exit()
