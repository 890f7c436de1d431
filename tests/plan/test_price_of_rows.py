"""A plan by rows never comes to more than the price it may have: also where its
kernels, which are chosen after its stages, are dearer than these were thought to be."""

from __future__ import annotations

import pytest

import pybuild
from pybuild.plan import make
from pybuild.plan.choice import by_rows
from pybuild.plan.plan import Plan
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.fieldnets.measure import built, loaded

MOST = 1.10
NETS = (
    ("ds_cnn", "cortex-m4"), ("ds_cnn", "cortex-m55"), ("ds_cnn", "cortex-m3"),
    ("resnet_8", "rv32imc"), ("stream", "cortex-m55"), ("stream", "cortex-m0"),
)  # fmt: skip


def spent(library: pybuild.Library, core: str) -> int:
    steps = (step.candidate for step in library.plan.steps)
    return sum(price(c, TARGETS[core]).instructions for c in steps)


@pytest.mark.parametrize(("name", "core"), NETS)
def test_rows_keep_to_their_price(name: str, core: str) -> None:
    rows, whole = (built(name, core, plan=plan) for plan in ("rows", "whole"))
    assert spent(rows, core) <= MOST * spent(whole, core)
    assert rows.report.ram.arena <= whole.report.ram.arena


@pytest.mark.parametrize("dear", [False, True])
def test_rows_that_are_too_dear_are_not_taken(
    dear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Plan] = []

    def times(*_: object) -> object:
        def one(plan: Plan) -> float:
            asked.append(plan)
            return 1.3 if dear else MOST

        return one

    monkeypatch.setattr(make, "_times", times)
    plan = loaded("resnet_8").build(name="net", target="cortex-m4").plan
    assert (by_rows(plan) == 0) == dear
    assert len(asked) == 1
