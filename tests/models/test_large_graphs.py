"""Large models: time near linear in nodes, memory at most four times the file."""

from __future__ import annotations

import pytest

from tests.bench.large_graphs import many_bytes, many_nodes, verb


@pytest.mark.parametrize(
    ("small", "factor"), [(60, 4), pytest.param(2500, 4, marks=pytest.mark.sweep)]
)
def test_time_is_near_linear_in_nodes(small: int, factor: int) -> None:
    _, start, _ = verb("build", many_nodes(5))
    _, few, _ = verb("build", many_nodes(small))
    _, many, _ = verb("build", many_nodes(small * factor))
    assert many - start < 1.5 * factor * max(few - start, 0.1)


@pytest.mark.parametrize("layers", [12, pytest.param(40, marks=pytest.mark.sweep)])
@pytest.mark.parametrize(
    "name", ["inspect", pytest.param("build", marks=pytest.mark.sweep)]
)
def test_memory_is_four_times_the_file(name: str, layers: int) -> None:
    _, _, empty = verb(name, many_nodes(5))
    size, _, held = verb(name, many_bytes(layers))
    assert held - empty < 4 * size
