"""`--optimise size` takes the fewest bytes of flash, most of which is what kernels read
there: never more than `balanced`, of real nets and of made ones."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import pybuild
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.plan import make
from pybuild.plan.plan import Plan
from pybuild.select.choose import Option, chosen, with_constants
from tests.bench.flash_costs import taken
from tests.conftest import model_path
from tests.fieldnets.maker import Maker
from tests.fieldnets.nets import net

CORES = ("cortex-m4", "cortex-m55", "generic")
# bytes of arena, which fewer bytes of flash must not raise
ARENAS = {
    "kws": (5_252, 11_032, 5_060),
    "vww": (55_328, 42_776, 39_568),
    "ic": (34_416, 16_536, 13_148),
    "ad": (768, 768, 768),
}


def flash(library: pybuild.Library) -> int:
    """Bytes of kernels, by estimate, of what they read, and of all tables."""
    pieces: dict[str, int] = {}
    for step in library.plan.steps:
        options = library.kernels.get(step.node.output, ())
        known = (one.pieces for one in options if one.computes(step.candidate))
        pieces.update(next(known, {}))
    report = library.report.flash
    return taken(library) + sum(pieces.values()) + report.tables + report.stages


def built(model: pybuild.Model, core: str, optimise: str) -> pybuild.Library:
    return model.build(name="net", target=core, optimise=optimise)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.sweep] * (n == "vww")) for n in ARENAS],
)
@pytest.mark.parametrize("core", CORES)
def test_real_nets_have_no_more_flash_than_balanced(name: str, core: str) -> None:
    model = pybuild.load(model_path(f"{name}_int8.tflite"))
    size = built(model, core, "size")
    assert flash(size) <= flash(built(model, core, "balanced"))
    assert size.report.ram.arena <= ARENAS[name][CORES.index(core)]


def _made(seed: int) -> bytes:
    chance = np.random.default_rng(seed)
    m = Maker(seed, (int(chance.integers(12, 28)), int(chance.integers(8, 20)), 3))
    x = m.conv(m.x, int(chance.integers(8, 24)), 3, 2)
    for _ in range(int(chance.integers(2, 5))):
        x = m.conv(m.depthwise(x, 3, 1), int(chance.integers(8, 40)))
    return m.file(m.softmax(m.dense(m.mean(x), 4)))


@pytest.mark.parametrize("seed", range(6))
def test_made_nets_have_no_more_flash_than_balanced(seed: int) -> None:
    model, core = pybuild.load(_made(seed)), CORES[seed % 2]
    assert flash(built(model, core, "size")) <= flash(built(model, core, "balanced"))


def test_what_kernels_read_counts_in_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """In stages and bytes that are found without it, kernels are chosen again."""

    def as_it_was(*given: Any) -> Plan:
        return cast(Plan, given[-1])

    model, core = pybuild.load(net("stream").file), "cortex-m0"
    lighter = built(model, core, "size")
    monkeypatch.setattr(make, "_lighter", as_it_was)
    before = built(model, core, "size")
    assert flash(lighter) < flash(before)
    assert lighter.report.ram.arena <= before.report.ram.arena


def test_constants_decide_between_kernels_of_equal_code() -> None:
    """What users may replace lies in no flash of the model's."""

    def of(count: int, *parameters: str) -> Candidate:
        packed = Packed("weights", np.zeros(count, np.int8), parameters)
        return Candidate(None, (), (), (), (packed,))

    wide, narrow = Option("wide", 400, {"w": 100}), Option("narrow", 450, {"n": 100})
    options = {"a": (wide, narrow)}

    def best(*offers: Candidate) -> str:
        return chosen(with_constants(options, {"a": offers}), "size")["a"].kernel

    assert best(of(64), of(32)) == "narrow"
    assert best(of(32), of(32)) == "wide"
    assert best(of(64, "w"), of(32, "w")) == "wide"
