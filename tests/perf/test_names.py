"""Functions that kernels call by one name are one, whatever layers a model has:
printers take the first of a name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybuild.ir.loop import Func, Intrin, Piece
from pybuild.ir.loop_verify import intrins
from pybuild.kernels.table import candidates
from pybuild.targets.target import TARGETS
from tests.perf.layers import layer
from tests.perf.measure import model

LAYERS = range(0, 300, 7)


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
def test_functions_of_one_name_are_one(core: str) -> None:
    known: dict[str, Intrin] = {}
    for func in _offered(core):
        for called in intrins(func):
            if not isinstance(called, Piece):  # tables number those
                assert known.setdefault(called.name, called) == called, func.name
    assert len(known) > 5
