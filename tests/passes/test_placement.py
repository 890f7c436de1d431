"""Which device computes what, what is copied, and where the CPU waits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pybuild.errors import BuildError, LimitError
from pybuild.ir.graph import Graph, Node
from pybuild.passes.placement.cheapest import Bill, cheapest
from pybuild.passes.placement.copies import with_copies
from pybuild.plan.schedule.device_waits import Span, Touch, waits
from pybuild.select.devices import on_devices, table_of
from pybuild.targets.target import Target
from tests.graphs.networks import Network, classifier

NPU = Target("npu", operators=frozenset({"conv2d", "depthwise_conv2d", "add"}))
TABLE = (Target("generic"), NPU)


def devices(graph: Graph) -> list[int]:
    return [n.device for n in graph.nodes if n.output not in graph.crossings()]


# ---- rules --------------------------------------------------------------------


def test_layers_go_before_operators_and_operators_before_the_rest() -> None:
    graph = classifier().model().lower()
    table = table_of(dict.fromkeys(range(4), "generic"))
    rules = {"stem": 3, "conv2d": 2, "max_pool2d": 2, "*": 1}
    ops = [node.op for node in graph.nodes]
    assert ops[3:] == ["max_pool2d", "reshape", "dense", "softmax"]
    # the reshape moves nothing: it is where its input is
    assert devices(on_devices(graph, table, rules)) == [3, 1, 1, 2, 2, 1, 1]


def test_by_capability() -> None:
    graph = classifier().model().lower()
    placed = on_devices(graph, TABLE, {"*": "capability"})
    assert devices(placed) == [1, 1, 1, 0, 0, 0, 0]
    placed = on_devices(graph, TABLE, {"*": "capability", "depth": 0})
    assert devices(placed) == [1, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_cost_is_the_least_of_all_placements_of_a_chain(seed: int) -> None:
    net = Network("chain", (1, 4, 4, 2), "float32", seed)
    for index in range(5):
        net.conv(f"c{index}", int(net.chance.integers(1, 9)))
    graph = net.graph()
    times = net.chance.uniform(0, 300, (5, 3)).tolist()
    bill = Bill(
        tuple(
            Target(str(d), copy_start=20.0, copy_pace=float(net.chance.uniform(0, 1)))
            for d in range(3)
        ),
        lambda node, device: float(times[int(node.name[1:])][device]),
    )

    def price(choice: Sequence[int]) -> float:
        ends = [0, *choice, 0]
        names = [graph.inputs[0], *(node.output for node in graph.nodes)]
        moved = sum(
            bill.copy(graph.tensor(name).bytes, start, end)
            for name, (start, end) in zip(names, itertools.pairwise(ends), strict=True)
        )
        return moved + sum(times[i][d] for i, d in enumerate(choice))

    best = min(itertools.product(range(3), repeat=5), key=price)
    found = cheapest(graph, [None] * 5, bill)
    assert price(found) == pytest.approx(price(best))
    fixed: list[int | None] = [None, 2, None, None, None]
    assert cheapest(graph, fixed, bill)[1] == 2


def test_a_fast_device_is_worth_its_copies_and_a_slow_one_is_not() -> None:
    graph = classifier().model().lower()
    for pace, want in ((0.01, {0, 1}), (1.0, {0})):
        npu = Target("npu", operators=NPU.operators, pace=pace)
        placed = on_devices(graph, (Target("generic"), npu), {"*": "cost"})
        assert set(devices(placed)) == want


# ---- what does not fit together -------------------------------------------------


def test_every_fault_of_the_rules_is_found() -> None:
    graph = classifier().model().lower()
    with pytest.raises(BuildError) as caught:
        on_devices(graph, TABLE, {"no": 1, "stem": 2, "dense": "cost", "*": "magic"})
    assert [str(p).partition(". Hint")[0] for p in caught.value.problems] == [
        "--place: there is no layer or operator 'no'",
        "--place: 'stem' is placed on device 2",
        "--place: 'dense' cannot be placed by 'cost'",
        "--place: '*' cannot be placed by 'magic'",
    ]


def test_operators_that_a_device_has_not() -> None:
    graph = classifier().model().lower()
    with pytest.raises(BuildError) as caught:
        on_devices(graph, TABLE, {"pool": 1, "scores": 1})
    assert [str(p) for p in caught.value.problems] == [
        f"tiny.test: node '{name}' ({op}): is on device 1 (npu), which has no such "
        "operator. Hint: it has add, conv2d, depthwise_conv2d"
        for name, op in (("pool", "max_pool2d"), ("scores", "softmax"))
    ]


def test_tables_that_leave_a_device_out() -> None:
    for target, said in (
        ({0: "generic", 2: "generic"}, "there is a device 2, but none of number 1"),
        ({1: "generic"}, "there is a device 1, but none of number 0"),
        ({}, "there is no device"),
        ({0: "z80", 1: "pdp"}, "--target: 'z80' is not known"),
    ):
        with pytest.raises(BuildError, match=said):
            table_of(target)  # type: ignore[arg-type]


def test_a_device_without_memory() -> None:
    """0 bytes: neither tensors nor parameters can be there."""
    model = classifier().model()
    limits = {0: 4096, 1: 0}
    with pytest.raises(LimitError, match="arena found on device 1 has 40 bytes") as e:
        model.build(
            target={0: "generic", 1: "generic"}, place={"dense": 1}, ram_limit=limits
        )
    assert e.value.exit_code == 3


def test_a_file_that_places_its_nodes_needs_its_devices_and_no_rules() -> None:
    graph = classifier().model().lower()
    nodes = tuple(
        Node(n.op, n.name, n.inputs, n.outputs, n.attrs, 5 if n.op == "dense" else 0)
        for n in graph.nodes
    )
    placed = Graph(**{**vars(graph), "nodes": nodes})
    with pytest.raises(BuildError) as caught:
        on_devices(placed, TABLE, {"*": 1})
    assert [str(p) for p in caught.value.problems] == [
        "--place: the file says itself which device computes what. "
        "Hint: leave --place out",
        "tiny.test: node 'logits' (dense): is on device 5. "
        "Hint: there are 2 devices, 0 is the CPU",
    ]


# ---- copies -------------------------------------------------------------------


@given(some.lists(some.integers(0, 2), min_size=7, max_size=7), some.integers(0, 2),
       some.integers(0, 2))  # fmt: skip
def test_copies_are_as_few_as_can_be(
    where: list[int], given_at: int, taken_at: int
) -> None:
    graph = classifier().model().lower()
    nodes = tuple(
        Node(n.op, n.name, n.inputs, n.outputs, n.attrs, d)
        for n, d in zip(graph.nodes, where, strict=True)
    )
    homes = {graph.inputs[0]: given_at, graph.outputs[0]: taken_at}
    made = with_copies(Graph(**{**vars(graph), "nodes": nodes, "homes": homes}))
    at, crossings = made.locations(), made.crossings()
    assert at[made.outputs[0]] == taken_at
    for node in made.nodes:
        for name in node.inputs:
            assert node.output in crossings or at.get(name, node.device) == node.device
    needed = set()
    start = {graph.inputs[0]: given_at} | {n.output: n.device for n in nodes}
    readers = [(name, n.device) for n in nodes for name in n.inputs if name in start]
    for name, device in (*readers, (graph.outputs[0], taken_at)):
        if start[name] != device:
            needed.add((name, device))
            if start[name] and device:
                needed.add((name, 0))
    assert len(crossings) == len(needed)


# ---- waits --------------------------------------------------------------------

SPANS = some.builds(
    lambda start, size: Span("arena", start, start + size),
    some.integers(0, 12), some.integers(1, 6),
)  # fmt: skip
TOUCHES = some.lists(
    some.builds(
        lambda device, reads, writes: Touch(device, tuple(reads), tuple(writes)),
        some.integers(0, 2),
        some.lists(SPANS, max_size=2),
        some.lists(SPANS, max_size=1),
    ),
    max_size=12,
)


@given(TOUCHES)
def test_the_cpu_waits_where_bytes_meet_and_nowhere_else(touches: list[Touch]) -> None:
    pending: dict[int, list[Touch]] = {1: [], 2: []}
    for touch, late in zip(touches, waits(touches), strict=True):
        clash = {
            device
            for device, work in pending.items()
            if device != touch.device and any(_clash(touch, w) for w in work)
        }
        assert set(late) == clash
        for device in late:
            pending[device] = []
        if touch.device:
            pending[touch.device].append(touch)


def _clash(a: Touch, b: Touch) -> bool:
    pairs = [*itertools.product(a.writes, (*b.reads, *b.writes))]
    pairs += itertools.product(a.reads, b.writes)
    return any(
        set(range(x.start, x.end)) & set(range(y.start, y.end)) for x, y in pairs
    )
