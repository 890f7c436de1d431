"""Parts of kernels that have one name are one, whatever layers a model has: a build
refuses others, as printers take the first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybuild.ir.loop import Func
from pybuild.ir.loop_verify import verify_parts
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.perf.layers import layer
from tests.perf.measure import model

LAYERS = range(300)


def _offered(core: str) -> Iterator[Func]:
    """What a core could compute the made layers with."""
    for seed in LAYERS:
        made = layer(seed)
        graph = model(made).lower(made.rounding)
        for node in graph.nodes:
            for found in candidates(node, graph, TARGETS[core]):
                if isinstance(found.func, Func):
                    yield found.func


@pytest.mark.parametrize(
    "core",
    [
        "cortex-m55",
        "cortex-m4",
        *(
            pytest.param(core, marks=pytest.mark.sweep)
            for core in ("cortex-m3", "cortex-m0", "rv32imc", "generic")
        ),
    ],
)
def test_parts_of_one_name_are_one(core: str) -> None:
    verify_parts(_offered(core))
