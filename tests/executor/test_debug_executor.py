"""The debug executor: each layer's values and times, and the files it leaves."""

from __future__ import annotations

import json
import os
import stat
import time

import numpy as np
import pytest

import pybuild as tvm
from pybuild import debug_executor
from pybuild.errors import BuildError
from pybuild.executor.debug import GraphModuleDebug
from pybuild.executor.profile import Report
from pybuild.host.abi import UnknownName
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from tests.executor.test_graph_executor import ADD, DEV, image
from tests.frontends.graphjson.tvm_graphs import simple
from tests.graphs.networks import classifier

LAYERS = ["stem", "depth", "residual", "pool", "flat", "logits", "scores"]


@pytest.fixture(scope="module")
def library() -> Library:
    return tvm.build(classifier("tiny").model(), target="llvm")


@pytest.fixture
def debug(library: Library, tmp_path) -> GraphModuleDebug:
    text, code = library.get_graph_json(), library.get_lib()
    return debug_executor.create(text, code, DEV, tmp_path / "dump")


def files(debug: GraphModuleDebug) -> list[str]:
    return sorted(os.listdir(debug.folder.path))


def test_every_output_is_right_though_memory_is_used_again(debug, library) -> None:
    debug.set_input("image", image())
    wanted = interpret(library.plan.graph, {"image": image()})
    for number, name in enumerate(LAYERS, 1):
        np.testing.assert_array_equal(debug.debug_get_output(name), wanted[name])
        np.testing.assert_array_equal(debug.debug_get_output(number), wanted[name])
    np.testing.assert_array_equal(debug.debug_get_output("image"), image())
    out = tvm.nd.empty((1, 5), "int8")
    assert debug.debug_get_output("scores", out) is out
    np.testing.assert_array_equal(out, wanted["scores"])


def test_a_run_prints_a_table_and_leaves_files(debug, capsys) -> None:
    assert files(debug) == ["_tvmdbg_graph_dump.json"]
    debug.run(image=image())
    lines = capsys.readouterr().out.splitlines()
    heads = ["Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs"]
    places = [lines[0].index(head) for head in (*heads, "Measurements(us)")]
    assert places == sorted(places)
    assert lines[1].split() == [
        "-" * len(head) for head in (*heads, "Measurements(us)")
    ]
    assert sorted(line.split()[0] for line in lines[2:-1]) == sorted(LAYERS)
    assert lines[-1].startswith("Total_time")
    spent = [float(line[places[2] :].split()[0]) for line in lines[2:-1]]
    assert spent == sorted(spent, reverse=True) and spent[0] > 0
    assert files(debug) == [
        "_tvmdbg_execution_trace.json",
        "_tvmdbg_graph_dump.json",
        "output_tensors.params",
    ]
    assert stat.S_IMODE(debug.folder.path.stat().st_mode) == 0o700
    assert debug.folder.path.name == "_tvmdbg_device_CPU_0"


def test_unsorted_tables_are_in_running_order_without_a_total(debug, capsys) -> None:
    debug.run(image=image(), sort_by_time=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == LAYERS


def test_the_graph_dump(debug) -> None:
    text = (debug.folder.path / "_tvmdbg_graph_dump.json").read_text()
    top = json.loads(text)
    nodes = {node["name"]: node for node in top["nodes"]}
    assert list(nodes) == ["image", *LAYERS]
    assert nodes["image"]["op"] == "param"
    assert nodes["residual"]["inputs"] == ["depth", "stem"]
    assert nodes["residual"]["op"] == "add"
    assert nodes["pool"]["shape"] == [1, 2, 2, 8]
    assert nodes["pool"]["attrs"] == {"T": "type: int8"}
    assert top["heads"] == [[7, 0, 0]]
    assert text.splitlines()[1].startswith("    ")


def test_the_trace_has_two_events_a_node_one_after_the_other(debug, capsys) -> None:
    debug.run(image=image())
    text = (debug.folder.path / "_tvmdbg_execution_trace.json").read_text()
    top = json.loads(text)
    events = top["traceEvents"]
    assert top["displayTimeUnit"] == "ns"
    assert [event["ph"] for event in events] == ["B", "E"] * 8
    assert [event["name"] for event in events[::2]] == ["image", *LAYERS]
    starts = [event["ts"] for event in events]
    assert starts == sorted(starts) and starts[0] == 0 and starts[-1] > 0


def test_dumped_tensors_are_those_of_the_last_run(debug, library, capsys) -> None:
    for seed in (0, 1):
        debug.run(image=image(seed))
        data = (debug.folder.path / "output_tensors.params").read_bytes()
        found = tvm.runtime.load_param_dict(data)
        wanted = interpret(library.plan.graph, {"image": image(seed)})
        keys = [
            f"{n}____topo-index:{i}____output-num:0" for i, n in enumerate(LAYERS, 1)
        ]
        assert sorted(found) == sorted(keys)
        for key, name in zip(keys, LAYERS, strict=True):
            np.testing.assert_array_equal(found[key], wanted[name])


def test_keys_are_unique_where_names_are_not(tmp_path) -> None:
    top = simple()
    top["nodes"][2]["name"] = "x"
    made = debug_executor.create(json.dumps(top), ADD, DEV, tmp_path)
    made.run(x=np.ones(4, np.float32), y=np.ones(4, np.float32))
    (key,) = made.tensors()
    assert key.endswith("____topo-index:2____output-num:0")


def test_exit_removes_the_folder(library) -> None:
    text, code = library.get_graph_json(), library.get_lib()
    made = debug_executor.create(text, code, DEV)
    assert made.folder.path.is_dir()
    made.exit()
    assert not made.folder.root.exists()


def test_run_individual(debug, library) -> None:
    debug.set_input("image", image())
    rows = debug.run_individual(number=2, repeat=3, min_repeat_ms=0)
    assert [len(row) for row in rows] == [3] * 8
    assert rows[0] == [0.0] * 3  # an input
    assert rows[LAYERS.index("flat") + 1] == [0.0] * 3  # moves no bytes
    assert all(second > 0 for second in rows[1])


def test_run_individual_node(debug) -> None:
    debug.set_input("image", image())
    assert debug.run_individual_node(0).mean == 0
    assert len(debug.run_individual_node(1, repeat=4).results) == 4
    with pytest.raises(UnknownName, match="there are 8"):
        debug.run_individual_node(8)
    for wrong in ({"number": 0}, {"repeat": 0}, {"min_repeat_ms": -1}):
        with pytest.raises(ValueError, match="at least"):
            debug.run_individual_node(1, **wrong)


def test_run_individual_node_takes_as_long_as_asked(debug) -> None:
    """TVM's cases, but shorter: a least time, cooling after each or each other."""

    def spent(**options: float) -> float:
        start = time.perf_counter()
        debug.run_individual_node(1, 1, 2, min_repeat_ms=50, **options)
        return time.perf_counter() - start

    debug.set_input("image", image())
    assert spent() >= 2 * 0.05
    often = spent(cooldown_interval_ms=200)
    assert often >= 2 * 0.05 + 2 * 0.2
    assert spent(cooldown_interval_ms=200, repeats_to_cooldown=2) >= 2 * 0.05 + 0.2


def test_timing_one_layer_leaves_memory_as_it_was(debug, library) -> None:
    debug.set_input("image", image())
    wanted = interpret(library.plan.graph, {"image": image()})["scores"]
    for index in range(1, 8):
        debug.run_individual_node(index, number=3)
        np.testing.assert_array_equal(debug.get_output(0), wanted)


def test_nodes_one_by_one(debug, library) -> None:
    debug.set_input("image", image())
    wanted = interpret(library.plan.graph, {"image": image()})
    for index in (1, 3, 3, 2):
        debug.execute_node(index)
        found = debug.get_node_output(index, 0)
        np.testing.assert_array_equal(found, wanted[LAYERS[index - 1]])
    with pytest.raises(ValueError, match="not the last"):
        debug.get_node_output(5, 0)


def test_unknown_nodes_are_errors(debug) -> None:
    with pytest.raises(AttributeError, match="'residual'"):
        debug.debug_get_output("residue")
    with pytest.raises(UnknownName, match="there are 8"):
        debug.debug_get_output(8)
    with pytest.raises(TypeError, match="number or name"):
        debug.debug_get_output(1.5)
    with pytest.raises(BuildError, match="another graph"):
        code = tvm.build(classifier("tiny").model(), target="llvm").get_lib()
        debug_executor.create(json.dumps(simple()), code, DEV)


def test_a_profile_is_a_table_csv_and_json(debug) -> None:
    report = debug.profile(image=image())
    table = report.table()
    assert "Configuration" in table and "Executor: Graph" in table
    lines = table.splitlines()
    assert lines[0].split() == [
        "Name", "Duration", "(us)", "Percent", "Device", "Count", "Argument", "Shapes",
        "Op",
    ]  # fmt: skip
    assert sum("conv2d" in line for line in lines) == 2
    assert "Sum" in table and "Sum" not in report.table(col_sums=False)
    rows = report.csv().splitlines()
    assert len(rows) == 1 + 6
    again = Report.from_json(report.json())
    assert again == report
    assert abs(sum(row["Percent"] for row in report.calls) - 100) < 1e-6


def test_equal_layers_are_one_row_of_an_aggregated_profile() -> None:
    row = {"Op": "add", "Percent": 50.0, "Count": 1, "Duration (us)": 2.0}
    row |= {"Argument Shapes": "float32[4]", "Device": "cpu(0)"}
    report = Report(({"Name": "a", **row}, {"Name": "b", **row}), {})
    assert "2 x add" in report.table() and "2 x add" not in report.table(
        aggregate=False
    )


def test_the_weights_of_a_library_are_there(tmp_path) -> None:
    model = classifier("tiny").model().with_parameters("replaceable")
    library = tvm.build(model, target="llvm")
    made = debug_executor.create(library.get_graph_json(), library, DEV, tmp_path)
    made.run(image=image())
    wanted = interpret(library.plan.graph, {"image": image()})["scores"]
    np.testing.assert_array_equal(made.get_output(0), wanted)
    np.testing.assert_array_equal(
        made.debug_get_output("stem/w"), library.value("stem/w")
    )
