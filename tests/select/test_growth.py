"""What builds take grows with layers, not with their square: choices cost what they
change, prices of functions that kernels share are found once."""

from __future__ import annotations

import pytest

from pybuild.ir.loop import Func
from pybuild.select import prices, seen
from pybuild.select.choose import Option, _Chosen, chosen
from pybuild.targets.target import TARGETS
from tests.fieldnets.measure import built


def options(layers: int) -> dict[str, tuple[Option, ...]]:
    """Each layer has a kernel of its own, one of its kind, one that all could take."""
    made = {}
    for n in range(layers):
        own = Option(f"own{n}", 1000, {f"own{n}": 900, "part": 300})
        kind = Option(f"kind{n % 7}", 1001 + n % 3, {f"kind{n % 7}": 1200})
        least = Option("all", 1005 if n % 5 else 4000, {"all": 2000, "part": 300})
        made[f"l{n}"] = (own, kind, least)
    return made


def worth(at: dict[str, Option], fastest: int) -> float:
    pieces: dict[str, int] = {}
    for option in at.values():
        pieces.update(option.pieces)
    total = sum(o.instructions for o in at.values())
    return total + fastest * sum(pieces.values()) / 70_000


def test_choices_are_what_they_come_to() -> None:
    known = options(60)
    found = chosen(known, "balanced")
    fastest = 1000 * 60
    value = worth(found, fastest)
    assert value < worth({n: o[0] for n, o in known.items()}, fastest)
    assert len({o.kernel for o in found.values()}) < 10
    for layer, mine in known.items():  # no single layer would gain by another
        for option in mine:
            assert value <= worth({**found, layer: option}, fastest)


def test_choices_cost_what_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    value = _Chosen.value

    def counted(self: _Chosen, changed: dict[str, Option]) -> float:
        looked[-1] += len(changed)
        return value(self, changed)

    monkeypatch.setattr(_Chosen, "value", counted)
    for layers in (100, 800):
        looked.append(0)
        chosen(options(layers), "balanced")
    assert 0 < looked[1] < 12 * looked[0]  # the square would be 64 times


def test_parts_that_are_remembered_cost_as_much() -> None:
    """As in a process that has priced nothing before."""
    core = TARGETS["cortex-m4"]
    kernels: list[tuple[Func, tuple[int, ...]]] = [
        (s.candidate.func, s.candidate.args)
        for s in built("ds_cnn", "cortex-m4").plan.steps
        if isinstance(s.candidate.func, Func)
    ]
    assert len(kernels) > 5

    def each(forget: bool) -> list[object]:
        found = []
        for func, args in kernels:
            prices._price.cache_clear()
            if forget:
                prices._parts_of.cache_clear()
                seen.seen_in.cache_clear()
            found.append(prices._price(func, args, core, 0.0))
        return found

    assert each(forget=True) == each(forget=False) == each(forget=False)
