"""Views, results in place, boundary memory and the RAM limit, with toy kernels."""

from __future__ import annotations

import time

import pytest

from pybuild.dtype import DType
from pybuild.errors import LimitError
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import Func
from pybuild.kernels.base.candidate import Candidate, whole
from pybuild.plan.make import make_plan
from pybuild.plan.plan import Plan
from pybuild.plan.regions.regions import check_limits

NOTHING = Func("nothing", (), (), ())
IN_PLACE = {"relu": (0,), "add": (0, 1)}


def toy(node: Node, graph: Graph) -> list[Candidate]:
    """A kernel that reads and writes whole tensors."""
    outputs = tuple(whole(graph.tensor(n)) for n in node.outputs)
    inputs = tuple(whole(graph.tensor(n)) for n in node.inputs)
    in_place = IN_PLACE.get(node.op, ())
    scratch = node.attrs.get("scratch", 0)
    return [Candidate(NOTHING, (), outputs, inputs, scratch=scratch, in_place=in_place)]


def network(rows: list[str], outputs: str, sizes: dict[str, int]) -> Graph:
    """Rows "y = op a b [attr=value]"; sizes in bytes, "x" is the input."""
    nodes = []
    for row in rows:
        made, rest = row.split(" = ")
        words = rest.split()
        attrs = dict(w.split("=") for w in words if "=" in w)
        numbers = {k: int(v) for k, v in attrs.items() if v.isdigit()}
        reads = tuple(w for w in words[1:] if "=" not in w)
        nodes.append(Node(words[0], made, reads, (made,), numbers))
    tensors = {n: Tensor(n, (s,), DType.INT8) for n, s in sizes.items()}
    return Graph("toy", "toy", tuple(nodes), tensors, ("x",), tuple(outputs.split()))


def plan(graph: Graph, keep: bool = False, limit: int | None = None) -> Plan:
    return make_plan(graph, toy, keep, limit)


def test_a_chain_uses_two_buffers() -> None:
    sizes = {"x": 64, "a": 128, "b": 64, "y": 32}
    made = plan(network(["a = conv x", "b = conv a", "y = conv b"], "y", sizes))
    assert made.arena_bytes == made.lower_bound == 192
    assert made.consumed == {"x"}


def test_a_kept_input_is_never_overwritten() -> None:
    sizes = {"x": 64, "a": 128, "b": 64, "y": 32}
    graph = network(["a = conv x", "b = conv a", "y = conv b"], "y", sizes)
    made = plan(graph, keep=True)
    assert made.arena_bytes == 256
    assert made.consumed == frozenset()


def test_elementwise_takes_over_the_memory_of_a_dying_input() -> None:
    sizes = {"x": 64, "a": 64, "b": 64, "y": 16}
    made = plan(network(["a = conv x", "b = relu a", "y = conv b"], "y", sizes))
    assert made.arena_bytes == 128
    assert made.places["a"].home == made.places["b"].home


def test_an_input_that_is_read_again_is_not_taken_over() -> None:
    sizes = {"x": 64, "a": 64, "b": 64, "y": 64}
    made = plan(network(["a = conv x", "b = relu a", "y = add a b"], "y", sizes))
    assert made.places["a"].home != made.places["b"].home


def test_a_tensor_added_to_itself_may_be_taken_over() -> None:
    sizes = {"x": 64, "a": 64, "b": 64, "y": 16}
    made = plan(network(["a = conv x", "b = add a a", "y = conv b"], "y", sizes))
    assert made.places["a"].home == made.places["b"].home


def test_reshape_moves_nothing() -> None:
    sizes = {"x": 64, "a": 64, "b": 64, "y": 16}
    made = plan(network(["a = conv x", "b = reshape a", "y = conv b"], "y", sizes))
    assert [step.node.op for step in made.steps] == ["conv", "conv"]
    assert made.places["a"] == made.places["b"]


def test_a_reshaped_output_is_written_where_the_output_is() -> None:
    sizes = {"x": 64, "a": 64, "y": 64}
    made = plan(network(["a = conv x", "y = reshape a"], "y", sizes))
    assert len(made.steps) == 1
    assert made.places["a"].buffer == made.places["y"].buffer == "y"


def test_a_reshaped_input_that_is_an_output_is_copied() -> None:
    made = plan(network(["y = reshape x"], "y", {"x": 64, "y": 64}))
    assert len(made.steps) == 1
    assert made.places["y"].buffer == "y" and made.places["x"].buffer == "x"


def test_two_outputs_never_share_memory() -> None:
    sizes = {"x": 64, "y": 64, "z": 64}
    made = plan(network(["y = conv x", "z = reshape y"], "y z", sizes))
    assert len(made.steps) == 2
    assert made.places["y"].home != made.places["z"].home


def test_scratch_is_placed_and_counted() -> None:
    sizes = {"x": 64, "y": 64}
    made = plan(network(["y = conv x scratch=100"], "y", sizes))
    assert made.lower_bound == made.arena_bytes == 228
    assert made.steps[0].scratch_at >= 0


def test_branches_run_in_the_order_that_keeps_less() -> None:
    rows = ["a = conv x", "b = conv x", "c = conv a", "d = conv b", "y = add c d"]
    sizes = {"x": 8, "a": 1000, "b": 1000, "c": 8, "d": 8, "y": 8}
    made = plan(network(rows, "y", sizes))
    assert made.arena_bytes < 1100


def test_the_limit_names_what_is_alive_at_the_peak() -> None:
    sizes = {"x": 64, "big": 5000, "y": 32}
    graph = network(["big = conv x", "y = conv big"], "y", sizes)
    regions = plan(graph, limit=4096).regions
    with pytest.raises(LimitError) as caught:
        check_limits(graph, regions, 4096, lambda peak: "less")
    assert "'big' 5000" in str(caught.value) and caught.value.exit_code == 3


def test_ten_thousand_nodes_in_seconds() -> None:
    sizes = {"x": 64, **{f"t{i}": 32 + i % 97 for i in range(10_000)}}
    rows = ["t0 = conv x"]
    for i in range(1, 10_000):
        skip = f" t{i - 5}" if i % 5 == 0 else ""
        rows.append(f"t{i} = conv t{i - 1}{skip}")
    graph = network(rows, "t9999", sizes)
    start = time.process_time()
    made = plan(graph)
    assert time.process_time() - start < 10
    assert made.arena_bytes <= 1.2 * made.lower_bound
