"""The search over stages and orders: as few bytes as any cuts and any order need, and
in time that grows with the graph."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant, Tensor
from pybuild.plan import make as planner
from pybuild.plan.choice import least_bytes, ordered
from pybuild.plan.schedule import partition as cuts
from pybuild.plan.schedule.lower_bound import least_ram
from pybuild.plan.schedule.order import orders
from pybuild.plan.schedule.partition import Cut, Cuts
from pybuild.plan.schedule.stages import Search, arranged
from tests.graphs.rows import model_of, row_graphs
from tests.plan.test_row_input import pushed
from tests.plan.test_rows import quick

_QUANT = {"quant": (0.05, 0)}


class _Branches:
    """Layers that read any of the last tensors; what none reads is an output."""

    def __init__(self, seed: int) -> None:
        self.chance, self.net = random.Random(seed), GraphBuilder("branches")
        pick = self.chance.randint
        shape = (1, pick(4, 10), pick(3, 6), pick(1, 6))
        self.made = [self.net.input("x", shape, "int8", **_QUANT)]
        self.read: set[str] = set()

    def conv(self, x: Tensor, size: int, stride: int = 1) -> Tensor:
        made = self.chance.randint(1, 8)
        values = np.ones((made, size, size, x.shape[3]), np.int8)
        quant = Quant((0.01,) * made, (0,) * made, 0)
        w = self.net.constant(f"w{len(self.made)}", values, quant)
        pads = (size // 2,) * 4
        return self.net.op(
            "conv2d", x, w, pads=pads, strides=(stride, stride), **_QUANT
        )

    def layer(self) -> None:
        x = self.chance.choice(self.made[-3:])
        op = self.chance.choice(["conv", "conv", "point", "half", "relu", "add", "cat"])
        same = [y for y in self.made if y is not x and y.shape[:3] == x.shape[:3]]
        if op == "add":
            same = [y for y in same if y.shape == x.shape]
        self.read.add(x.name)
        if op in ("add", "cat") and same:
            y = self.chance.choice(same)
            self.read.add(y.name)
            joined = {"axis": 3} if op == "cat" else _QUANT
            name = "concat" if op == "cat" else "add"
            self.made.append(self.net.op(name, x, y, **joined))
        elif op == "relu":
            self.made.append(self.net.op("clip", x, clamp=(0.0, None)))
        else:
            sizes = {"point": (1, 1), "half": (3, 2)}
            self.made.append(self.conv(x, *sizes.get(op, (3, 1))))

    def graph(self) -> Graph:
        for _ in range(self.chance.randint(2, 6)):
            self.layer()
        for tensor in self.made[1:]:
            if tensor.name not in self.read:
                self.net.output(tensor)
        return self.net.build()


def search_of(graph: Graph) -> Search:
    """What a build chooses from."""
    with mock.patch.object(planner, "Search", wraps=Search) as made:
        model_of(graph).build()
    return Search(*made.call_args.args)


def every_cutting(known: Cuts) -> Iterator[list[Cut]]:
    """With the kernels that need the least scratch."""
    count = len(known.nodes)
    for marks in itertools.product((False, True), repeat=count - 1):
        ends = [i + 1 for i, mark in enumerate(marks) if mark] + [count]
        found = []
        for at, end in itertools.pairwise([0, *ends]):
            options = (known.alone if end - at == 1 else known.joined)[at:end]
            if not all(options):
                break
            least = (min(o, key=lambda c: c.scratch) for o in options)
            found.append(Cut(at, tuple(least)))
        else:
            yield found


def fewest(search: Search) -> int:
    """Of all cuts of all orders."""
    return min(
        least_bytes(arranged(one, found))
        for order in orders(search.needs, 60)
        for one in [replace(search, nodes=[search.nodes[i] for i in order])]
        for found in every_cutting(one.cuts)
    )


def must_be_the_fewest(seed: int) -> None:
    search = search_of(_Branches(seed).graph())
    free = float("inf")
    found = ordered(search, free).least(free)
    assert least_bytes(found) == fewest(search)
    plan = planner.placed(search, found)
    assert plan.lower_bound <= plan.arena_bytes <= least_bytes(found)
    assert bound_of(search) <= least_bytes(found)


def bound_of(search: Search) -> int:
    return least_ram(search.graph, search.nodes, search.views, search.lazy)


@pytest.mark.parametrize("seed", [16, 24, 37, 50, 64, 72])
def test_no_cuts_and_no_order_need_less(seed: int) -> None:
    must_be_the_fewest(seed)


@pytest.mark.sweep
def test_no_cuts_and_no_order_of_many_graphs_need_less() -> None:
    for seed in range(300):
        must_be_the_fewest(seed)


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_no_plan_is_below_the_bound(kind: str) -> None:
    @given(row_graphs(kind))
    @quick(4)
    def must_be_below(graph: Graph) -> None:
        search = search_of(graph)
        bound = bound_of(search)
        assert bound <= least_bytes(search.least(float("inf")))
        assert bound <= model_of(graph).build(plan="whole").plan.arena_bytes
        library = pushed(graph)
        if library is not None:
            ram = library.report.ram
            assert library.ram_bound() <= ram.arena + ram.instance

    must_be_below()


def test_bounds_of_a_chain_by_hand() -> None:
    """3x3 over 8 rows of 12 bytes, then 1x1: x is whole until it is read, y a row; z is
    an output."""
    maker = _Branches(0)
    net = GraphBuilder("hand")
    x = net.input("x", (1, 8, 4, 3), "int8", **_QUANT)
    maker.net, maker.made = net, [x]
    maker.chance = mock.Mock(randint=lambda low, high: 5)
    y = maker.conv(x, 3)
    maker.made.append(y)
    net.output(maker.conv(y, 1))
    graph = net.build()
    search = search_of(graph)
    scratch = [min(c.scratch for c in options) for _, options in search.nodes]
    # the last row of y: x, and 7 rows of z; or its row of 20 bytes before
    assert bound_of(search) == max(96 + 7 * 20 + 20 + scratch[0], 160)


def chain(layers: int) -> Graph:
    """Convolutions, with a sum over every fourth."""
    maker = _Branches(0)
    maker.chance = mock.Mock(randint=lambda low, high: 4)
    last = skip = maker.conv(maker.made[0], 1)
    for index in range(layers):
        maker.made.append(last)
        last = maker.conv(last, 3)
        if index % 4 == 3:
            last = skip = maker.net.op("add", last, skip, **_QUANT)
    maker.net.output(last)
    return maker.net.build()


def test_what_trying_stages_takes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer stages are tried of smaller graphs only."""
    monkeypatch.setattr(cuts, "_MOST_WORK", 20_000)
    for layers in (10, 60):
        found = search_of(chain(layers)).cuts
        longest = max(map(len, found.bases))
        assert longest >= 2 and found.work < 20_000 * 2 + 100 * layers
        assert (longest > 6) == (layers == 10)


@pytest.mark.sweep
def test_a_thousand_layers_take_ten_seconds() -> None:
    """Kernels and printing included."""
    model = model_of(chain(800))
    start = time.process_time()
    assert len(model.build().plan.graph.nodes) > 1000
    assert time.process_time() - start < 10
