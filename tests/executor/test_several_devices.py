"""Modules on several devices: what a script gives and gets goes through each device,
also through one whose memory the CPU cannot touch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild as tvm
from pybuild import debug_executor, graph_executor
from pybuild.errors import BuildError
from pybuild.graph_executor import GraphModule
from pybuild.host.devices import Cpu
from tests.devices.protected import Protected
from tests.frontends.graphjson.tvm_graphs import duplex, simple, simplex

CPU, EXT = tvm.cpu(0), tvm.device("ext_dev", 0)
FUNCTIONS = [
    tvm.function("elemwise_add", op="add"), tvm.function("elemwise_sub", op="sub"),
    tvm.function("myadd", op="add"),
]  # fmt: skip
Tables = Callable[[], list[Any]]


def typed(top: dict[str, Any], target: int = 12) -> str:
    """The same graph, its target device of this type, its host a CPU."""
    types = [target if kind == 2 else 1 for kind in top["attrs"]["device_index"][1]]
    top["attrs"]["device_index"] = ["list_int", types]
    return json.dumps(top)


@pytest.fixture(params=["named", "named, cpu last", "protected", "late"])
def table(request: pytest.FixtureRequest) -> Iterator[list[Any]]:
    if request.param.startswith("named"):
        yield [EXT, CPU] if "last" in request.param else [CPU, EXT]
        return
    device = Protected("late" if request.param == "late" else "at once")
    yield [Cpu(), device]
    device.close()


def values(names: str = "ABCD", seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(4).astype(np.float32) for name in names}


def expected(given: Mapping[str, np.ndarray]) -> np.ndarray:
    return given["A"] + given["B"] - given["C"] + given.get("D", np.float32(0))


@pytest.mark.parametrize("graph", [simplex, duplex])
def test_create_takes_devices_by_their_types(graph: Any, table: list[Any]) -> None:
    top = graph()
    names = "ABCD" if graph is duplex else "ABC"
    made = graph_executor.create(typed(top), FUNCTIONS, table)
    given = values(names)
    made.set_input(**given)
    made.run()
    np.testing.assert_array_equal(made.get_output(0), expected(given))
    for name, value in given.items():
        np.testing.assert_array_equal(made.get_input(name), value)
    out = tvm.nd.empty((4,))
    np.testing.assert_array_equal(made.get_output(0, out), expected(given))


def test_parameters_are_loaded_and_shared_there(table: list[Any]) -> None:
    given = values()
    blob = tvm.runtime.save_param_dict({n: given[n] for n in "BCD"})
    donor = graph_executor.create(typed(duplex()), FUNCTIONS, table)
    sharer = graph_executor.create(typed(duplex()), FUNCTIONS, table)
    donor.load_params(blob)
    sharer.share_params(donor)
    donor.load_params(tvm.runtime.save_param_dict(values("BCD", 1)))
    sharer.run(A=given["A"])
    np.testing.assert_array_equal(sharer.get_output(0), expected(given))
    donor.run(A=given["A"])
    other = {**values("BCD", 1), "A": given["A"]}
    np.testing.assert_array_equal(donor.get_output(0), expected(other))


def test_copies_are_handed_over_end_to_end(table: list[Any]) -> None:
    made, given = graph_executor.create(typed(duplex()), FUNCTIONS, table), values()
    flat = [part for pair in given.items() for part in pair]
    (output,) = made.run_from_inputs(1, 0, *flat)
    np.testing.assert_array_equal(output, expected(given))
    made.benchmark(end_to_end=True, repeat=2, number=2, **values(seed=1))
    np.testing.assert_array_equal(made.get_output(0), expected(values(seed=1)))
    changed = np.ones(4, np.float32)
    made.get_input("A").copyfrom(changed)
    made.run()
    want = expected({**values(seed=1), "A": changed})
    np.testing.assert_array_equal(made.get_output(0), want)


def test_the_debug_executor_sees_every_device(
    table: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = debug_executor.create(typed(duplex()), FUNCTIONS, table, str(tmp_path))
    given = values()
    made.set_input(**given)
    made.run(number=1)
    assert "copy1" in capsys.readouterr().out
    first = given["A"] + given["B"]
    np.testing.assert_array_equal(made.debug_get_output("add1"), first)
    np.testing.assert_array_equal(made.debug_get_output("sub"), first - given["C"])
    np.testing.assert_array_equal(made.get_output(0), expected(given))
    assert len(made.run_individual(2, 2)) == len(made.nodes)


def test_an_array_of_this_machine_is_no_devices() -> None:
    device = Protected()
    made = graph_executor.create(typed(duplex()), FUNCTIONS, [Cpu(), device])
    given = values()
    with pytest.raises(ValueError, match=r"'A' is in the memory of device 1"):
        made.set_input_zero_copy("A", given["A"])
    with pytest.raises(ValueError, match=r"in the memory of device 1"):
        made.set_output_zero_copy(0, np.empty(4, np.float32))
    made.set_input_zero_copy("C", given["C"])
    made.set_input(**{n: given[n] for n in "ABD"})
    made.run()
    np.testing.assert_array_equal(made.get_output(0), expected(given))
    made.net.close()
    device.close()


def test_an_input_is_read_where_another_module_of_the_device_writes(
    table: list[Any],
) -> None:
    first = graph_executor.create(typed(duplex()), FUNCTIONS, table)
    second = graph_executor.create(typed(duplex()), FUNCTIONS, table)
    given = values()
    second.set_shared_input("A", first, "add2")
    first.run(**given)
    second.run(**{n: given[n] for n in "BCD"})
    want = expected({**given, "A": expected(given)})
    np.testing.assert_array_equal(second.get_output(0), want)
    if table[-1] is EXT or table[0] is EXT:
        return
    with pytest.raises(ValueError, match="'C' is in the memory of device 0"):
        second.set_shared_input("C", first, "add2")
    second.run()
    np.testing.assert_array_equal(second.get_output(0), want)


def test_devices_that_a_graph_does_not_need_are_no_error() -> None:
    made = graph_executor.create(json.dumps(simple()), FUNCTIONS, [CPU, EXT])
    x = np.ones(4, np.float32)
    made.run(x=x, y=x)
    assert made.get_output(0).tolist() == [2, 2, 2, 2]


def test_a_device_that_is_not_given_is_named() -> None:
    with pytest.raises(BuildError, match=r"on (cuda|2)\(0\).*given are cpu\(0\)"):
        graph_executor.create(json.dumps(duplex()), FUNCTIONS, [CPU, EXT])


def test_indices_of_our_own_files_are_places_in_the_list(table: list[Any]) -> None:
    library = tvm.build(
        typed(duplex(), 1).replace("[1, 1, 1, 1, 1, 1, 1, 1, 1]",
                                   "[1, 1, 1, 0, 0, 0, 1, 1, 1]"),
        functions=FUNCTIONS, target={0: "host", 1: "host"}, input="keep",
    )  # fmt: skip
    made = GraphModule(library["default"](*([CPU, EXT] if EXT in table else table)))
    given = values()
    made.run(**given)
    np.testing.assert_array_equal(made.get_output(0), expected(given))
