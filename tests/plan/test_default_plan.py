"""The default plan: no other plan that the tool knows beats it in bytes and in
instructions, and none has far fewer bytes at a fair price."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Tensor
from pybuild.library import Library
from pybuild.package.totals import totals
from pybuild.plan.choice import FAIR
from pybuild.plan.plan import estimate
from tests.conftest import ROOT
from tests.fieldnets.measure import loaded
from tests.graphs.rows import model_of

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"

CORES = ("cortex-m4", "cortex-m55")
SHARES = (0.95, 0.8, 0.65, 0.5, 0.3)
# nets of the field; the larger ones in all tests
RARELY = pytest.mark.sweep
FIELD = (
    "mobilenet_v1_0.25_96", "resnet_8",
    pytest.param("mobilenet_v2_0.35_96", marks=RARELY),
    pytest.param("yolo_128", marks=RARELY),
)  # fmt: skip


def _float_net(seed: int) -> Graph:
    """MobileNet's layers in floats: every width, depth and stride from a seed."""
    chance = np.random.default_rng((17, seed))
    net = GraphBuilder(f"float_{seed}")

    count = itertools.count()

    def weights(shape: tuple[int, ...]) -> Tensor:
        values = chance.normal(size=shape).astype(np.float32)
        return net.constant(f"w{next(count)}", values)

    side, channels = int(chance.integers(24, 57)), int(chance.integers(8, 25))
    x: Tensor = net.input("x", (1, side, side, 3))
    stem: dict[str, Any] = {"strides": (2, 2), "pads": (1, 1, 1, 1)}
    x = net.op("conv2d", x, weights((channels, 3, 3, 3)), **stem)
    for _ in range(int(chance.integers(2, 5))):
        stride = int(chance.integers(1, 3))
        window: dict[str, Any] = {"strides": (stride, stride), "pads": (1, 1, 1, 1)}
        x = net.op("depthwise_conv2d", x, weights((3, 3, channels)), **window)
        wider = channels * int(chance.integers(1, 3))
        x = net.op("conv2d", x, weights((wider, 1, 1, channels)))
        channels = wider
    net.output(net.op("mean", x, axes=(1, 2), keepdims=False))
    return net.build()


def _other_plans(library: Library) -> list[tuple[str, int, int]]:
    """Bytes and instructions, by estimate, of other plans of the same model."""
    most = library.plan.arena_bytes
    changes: list[dict[str, Any]] = [{"optimise": "ram"}, {"plan": "whole"}]
    changes += [{"ram_limit": int(share * most)} for share in SHARES]
    found, planners = list[tuple[str, int, int]](), library.planners
    assert planners is not None
    for changed in changes:
        try:
            planner, plan = planners.plan(replace(library.options, **changed))
        except Exception:
            continue
        words = ", ".join(f"{key} {value}" for key, value in changed.items())
        found.append((words, plan.arena_bytes, estimate(plan, planner.prices)))
    return found


def _must_be_best(library: Library) -> None:
    mine, cost = library.plan.arena_bytes, estimate(library.plan, library.kernels)
    others = _other_plans(library)
    assert others
    least = min([cost, *(spent for _, _, spent in others)])
    for words, bytes_, spent in others:
        better = bytes_ <= mine and spent <= cost
        assert not better or (bytes_, spent) >= (0.995 * mine, 0.99 * cost), words
        assert bytes_ >= 0.95 * mine or spent > FAIR * least, words


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("name", FIELD)
def test_nets_of_the_field(name: str, core: str) -> None:
    _must_be_best(loaded(name).build(target=core))


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed", range(6))
def test_float_nets_from_seeds(seed: int, core: str) -> None:
    library = model_of(_float_net(seed)).build(target=core)
    _must_be_best(library)
    whole = library.again(plan="whole").plan
    assert library.plan.arena_bytes <= 0.75 * whole.arena_bytes


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55", "cortex-m3"])
def test_a_limit_of_much_room_is_as_fast_as_whole_tensors(target: str) -> None:
    """Kernels take the room that the limit leaves; code is weighed, too."""
    spent = []
    model = pybuild.load(DIGITS)
    limited = model.build(target=target, ram_limit="64K")
    for library in (limited, model.build(target=target, plan="whole")):
        spent.append(totals(library.report).instructions)
    assert spent[0] <= 1.01 * spent[1]
