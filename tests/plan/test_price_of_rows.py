"""A plan by rows never comes to more than the price it may have: also where its
kernels, which are chosen after its stages, are dearer than these were thought to be."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import pybuild
from pybuild.errors import LimitError
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.plan import choice, make
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.choice import Ways, by_rows, chosen_rows
from pybuild.plan.plan import Plan
from pybuild.plan.row_input import fastest_of_smallest
from pybuild.select.choose import estimated
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.fieldnets.maker import Maker
from tests.fieldnets.measure import RAM_RATIO, built, loaded
from tests.graphs.rows import model_of
from tests.perf.layers import layer
from tests.perf.measure import model

MOST, SURE = 1.10, 1.05
PLANS = ("rows", "whole")
RARELY = pytest.mark.sweep
NETS = (
    ("ds_cnn", "cortex-m4"), ("resnet_8", "rv32imc"), ("stream", "cortex-m55"),
    ("stream", "cortex-m0"), pytest.param("ds_cnn", "cortex-m3", marks=RARELY),
    pytest.param("ds_cnn", "cortex-m55", marks=RARELY),
)  # fmt: skip


def spent(library: pybuild.Library, core: str) -> int:
    steps = (step.candidate for step in library.plan.steps)
    return sum(price(c, TARGETS[core]).instructions for c in steps)


@pytest.mark.parametrize(("name", "core"), NETS)
def test_rows_keep_to_their_price(name: str, core: str) -> None:
    rows, whole = (built(name, core, plan=plan) for plan in ("rows", "whole"))
    assert spent(rows, core) <= MOST * spent(whole, core)
    assert rows.report.ram.arena <= whole.report.ram.arena


@pytest.mark.parametrize("core", ["cortex-m3", "rv32imc"])
def test_rows_of_few_pixels_are_fair_on_cores_that_multiply_one_by_one(
    core: str,
) -> None:
    """Pixels that blocks leave over are a block, and windows are read where they lie:
    5 a row would else cost much more than 65 at once."""
    rows, plain = (built("ds_cnn", one).report.ram.arena for one in (core, "generic"))
    assert rows <= 1.05 * plain


@pytest.mark.parametrize("dear", [False, True])
def test_rows_that_are_too_dear_are_not_taken(
    dear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Plan] = []

    def times(*_: object) -> object:
        def one(plan: Plan) -> float:
            asked.append(plan)
            return 1.3 if dear else 1.05

        return one

    monkeypatch.setattr(make, "_times", times)
    plan = loaded("resnet_8").build(name="net", target="cortex-m3").plan
    assert (by_rows(plan) == 0) == dear
    # stages by other prices are tried, too, and then both at a higher one
    assert len(asked) >= (4 if dear else 1)


def test_many_layers_by_rows_keep_to_their_price() -> None:
    rows, whole = (built("resnet_32", "cortex-m3", plan=p) for p in ("rows", "whole"))
    assert by_rows(rows.plan) > 10
    assert rows.report.ram.arena < 0.8 * whole.report.ram.arena
    assert spent(rows, "cortex-m3") <= 1.05 * spent(whole, "cortex-m3")


@pytest.mark.parametrize(
    ("usual", "priced", "taken"),
    [(1.3, 1.04, "priced"), (1.3, 1.3, "whole"), (1.04, 1.0, "usual")],
)
def test_stages_by_the_prices_of_kernels_where_others_are_too_dear(
    usual: float, priced: float, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages as layers say that they cost, and as kernels are priced: what the kernels
    of each come to, in those of whole tensors, says which are taken."""
    monkeypatch.setattr(choice, "in_pieces", lambda *_: None)
    graph, many = SimpleNamespace(nodes=[]), range(1000)  # not counted row by row

    def stages(name: str, size: int) -> Any:
        blocks = (Block(name, size, 0, 1),)
        return SimpleNamespace(steps=("step",), storage=SimpleNamespace(blocks=blocks))

    def search(found: object) -> Any:
        least = {"least": lambda cost: found, "others": (), "spent": ()}
        return SimpleNamespace(graph=graph, nodes=many, views=None, alive={}, **least)

    def made(found: Any) -> Any:
        (block,) = found.storage.blocks
        together = [SimpleNamespace(first=0, end=1 + (block.name != "whole"))]
        return SimpleNamespace(
            name=block.name, stages=together, arena_bytes=block.bytes
        )

    one, other = (search(stages(name, 500)) for name in ("usual", "priced"))
    cost = {"usual": usual, "priced": priced, "whole": 1.0}
    found = chosen_rows(
        Ways(one, one, other, stages("whole", 900)), None, made,
        times=lambda plan: cost[cast(Any, plan).name],
    )  # fmt: skip
    assert cast(Any, found).name == taken


@pytest.mark.parametrize(
    ("higher", "taken", "unit"),
    [(880, 990, 100), (892, 990, 100), (890, 890, 100), (890, 990, 10)],
)
def test_a_higher_price_is_paid_for_far_fewer_bytes_only(
    higher: int, taken: int, unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many bytes each, 990 at 1.05 times the instructions, `higher` at 1.10;
    nothing is where 990 are hardly more than the 905 of any price, or `higher` hardly
    less than 990, or less than 1,024 bytes are between."""
    monkeypatch.setattr(choice, "in_pieces", lambda *_: None)
    wide = SimpleNamespace(outputs=("x",))
    tensor = SimpleNamespace(shape=(1, 8, 8, 4))
    graph = SimpleNamespace(nodes=[wide], tensor=lambda name: tensor)
    fewest = 905 if higher == 880 else 500

    def stages(size: int) -> Any:
        blocks = (Block("x", size * unit, 0, 1),)
        return SimpleNamespace(steps=("step",), storage=SimpleNamespace(blocks=blocks))

    def least(cost: float) -> Any:
        return stages(990 if cost < 1.1 else higher if cost < 2 else fewest)

    one: Any = SimpleNamespace(
        graph=graph,
        nodes=range(1000),
        views=None,
        others=(),
        spent=(),
        least=least,
        alive={},
    )

    def made(found: Any) -> Any:
        (block,) = found.storage.blocks
        return SimpleNamespace(stages=(), arena_bytes=block.bytes)

    found = chosen_rows(Ways(one, one, one, stages(2000)), None, made)
    assert found.arena_bytes == taken * unit


def _blaze(m: Maker) -> bytes:
    """V. Bazarevsky et al. 2019: blocks of 5x5 depthwise layers."""
    x = m.conv(m.x, 24, 5, 2)
    steps = (1, 1, 2, 1, 1, 2, 1, 1)
    for outs, step in zip((24, 28, 32, 36, 42, 48, 56, 64), steps, strict=True):
        made = m.conv(m.depthwise(x, 5, step), outs, act="")
        same = step == 1 and x.real.shape[-1] == outs
        x = m.add(x, made, "relu") if same else made
    return m.file(m.softmax(m.dense(m.mean(x), 4)))


def _ghost(m: Maker) -> bytes:
    """K. Han et al. 2020: half of the channels are made of the other half."""
    x = m.conv(m.x, 16, 3, 2)
    for outs, step in ((16, 1), (24, 2), (24, 1), (40, 2)):
        half = m.conv(x, outs // 2)
        x = m.concat(half, m.depthwise(half, 3))
        if step == 2:
            x = m.depthwise(x, 3, 2)
    return m.file(m.softmax(m.dense(m.mean(x), 4)))


@pytest.mark.parametrize(
    ("net", "core"),
    [
        (_blaze, "cortex-m55"),
        (_ghost, "cortex-m4"),
        pytest.param(_blaze, "cortex-m4", marks=pytest.mark.sweep),
        pytest.param(_ghost, "cortex-m55", marks=pytest.mark.sweep),
    ],
)
def test_unseen_kinds_of_nets_have_far_fewer_bytes_at_a_higher_price(
    net: Callable[[Maker], bytes], core: str
) -> None:
    given = pybuild.load(net(Maker(7, (64, 64, 3))))
    plain = given.build(name="net").report.ram.arena
    rows, whole = (given.build(name="net", target=core, plan=p) for p in PLANS)
    assert rows.report.ram.arena <= RAM_RATIO * plain < whole.report.ram.arena
    assert spent(rows, core) <= MOST * SURE * spent(whole, core)


def test_a_layer_is_priced_by_its_own_kernel_not_by_one_of_equal_code() -> None:
    """Pointwise kernels by rows and of whole tensors are one code on a Cortex-M4."""
    library = built("stream", "cortex-m4")
    works = [(step.node, step.candidate) for step in library.plan.steps]
    made = [price(candidate, TARGETS["cortex-m4"]).instructions
            for _, candidate in works if candidate.func]  # fmt: skip
    assert sum(estimated(works, library.kernels)) == pytest.approx(sum(made), rel=0.01)
    shared = [
        {option.instructions for option in options if option.func == one.func}
        for options in library.kernels.values()
        for one in options
    ]
    assert any(len(found) > 1 for found in shared)


def test_a_layer_alone_has_its_fastest_kernel() -> None:
    """Pieces of rows spare bytes at a price, which a plan of whole tensors pays too."""
    core, depthwise = "cortex-m55", 0
    for seed in range(60):
        made = layer(seed)
        if made.kind != "depthwise 3x3":
            continue
        ways = [
            model(made).build(
                name="layer", target=core, rounding=made.rounding, plan=plan
            )
            for plan in ("rows", "whole")
        ]
        rows, whole = (spent(library, core) for library in ways)
        assert rows <= MOST * whole, made.words
        depthwise += 1
    assert depthwise > 5


@pytest.mark.parametrize(
    ("sizes", "anyway", "limit", "taken"),
    [
        ((900, 500, 300), 1000, None, 2),  # saves, at a price
        ((303, 301, 300), 1000, None, 0),  # hardly more bytes, for nothing
        ((1200, 1100, 995), 1000, None, 0),  # nothing to pay for
        ((1200, 1100, 995), 1000, 1000, 2),  # a limit is kept at any price
    ],
)
def test_nothing_is_paid_for_pushed_rows_that_save_nothing(
    sizes: tuple[int, ...], anyway: int, limit: int | None, taken: int
) -> None:
    """Ways at rising prices, beside the plan where the input is there."""

    def plan(size: object) -> Any:
        return SimpleNamespace(arena_bytes=size)

    found = fastest_of_smallest(cast(Any, sizes), plan, limit, lambda: plan(anyway))
    assert found.arena_bytes == sizes[taken]


def test_pushed_rows_of_seeded_nets_save_bytes_or_cost_nothing() -> None:
    for seed, core in ((3, "cortex-m4"), (3, "cortex-m55"), (9, "cortex-m3")):
        given = pybuild.load(_small(seed))
        inputs = given.graph.inputs
        pushed = given.build(name="net", target=core, push=inputs)
        anyway = given.build(name="net", target=core)
        saved = pushed.report.ram.arena < 0.99 * anyway.report.ram.arena
        assert saved or spent(pushed, core) <= MOST * spent(anyway, core), (seed, core)


def _small(seed: int) -> bytes:
    """A few layers of few pixels a row, and a dense one."""
    chance = np.random.default_rng(seed)
    m = Maker(seed, (int(chance.integers(16, 40)), int(chance.integers(3, 7)), 2))
    x = m.conv(m.x, int(chance.integers(8, 40)), 3, 1, "relu")
    for _ in range(3):
        x = m.conv(m.depthwise(x, 3, 1), int(chance.integers(8, 64)))
    return m.file(m.dense(m.mean(x), 4))


def _resolution(side: int, outs: tuple[int, ...], last: int) -> Graph:
    """Floats: 5x5, two 3x3, and a 3x3 of `last` channels, which become pixels."""
    chance, net = np.random.default_rng((46, side, *outs)), GraphBuilder("resolution")
    x = net.input("x", (1, side, side, 1), "float32")
    for number, (count, size) in enumerate(
        zip((*outs, last), (5, 3, 3, 3), strict=True)
    ):
        form = (count, size, size, x.shape[3])
        w = net.constant(f"w{number}", chance.normal(0, 0.3, form).astype(np.float32))
        x = net.op("conv2d", x, w, pads=(size // 2,) * 4)
    net.output(x)
    return net.build()


@pytest.mark.parametrize("outs", [(8, 12, 8), (16, 16, 12), (8, 8, 16)])
@pytest.mark.parametrize("side", [12, 16])
def test_no_plan_of_a_limit_has_fewer_bytes_and_instructions(
    side: int, outs: tuple[int, ...]
) -> None:
    net = model_of(_resolution(side, outs, 4))
    made = net.build(target="cortex-m4")
    most = spent(net.build(target="cortex-m4", plan="whole"), "cortex-m4")
    for _ in range(3):
        try:
            less = net.build(target="cortex-m4", ram_limit=made.plan.arena_bytes - 4)
        except LimitError:
            break
        assert spent(less, "cortex-m4") > 1.06 * most
        made = less


def test_a_consumable_input_never_takes_more_bytes() -> None:
    for side, outs in ((12, (8, 12, 8)), (16, (16, 12, 4))):
        net = model_of(_resolution(side, outs, 9))
        kept, used = (net.build(target="cortex-m4", input=i).plan.arena_bytes
                      for i in ("reuse", "consumable"))  # fmt: skip
        assert used <= kept
