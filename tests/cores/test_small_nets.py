"""Nets near the border where a second core pays: counted, two cores never take more
instructions than one core's own build."""

from __future__ import annotations

import pytest

from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from tests.cores.nets import few

BOARDS = {"cortex-m0": "pico", "cortex-m33": "pico2"}


def _shares(target: str, seeds: range | tuple[int, ...]) -> list[float]:
    """What two cores take of one core's instructions, of the nets that have two."""
    device = open_device(BOARDS[target], "gcc", cores=2)
    built = [few(seed).build(target=target, cores=2) for seed in seeds]
    shares = [
        bench_on_board(device, one).share for one in built if one.tables.cores > 1
    ]
    return [share for share in shares if share is not None]


@pytest.mark.parametrize(
    ("target", "one", "two"), [("cortex-m0", (7,), (46,)), ("cortex-m33", (1,), (45,))]
)
def test_small_nets_are_never_slower(
    target: str, one: tuple[int, ...], two: tuple[int, ...]
) -> None:
    """one: nets of which slices would take 1.02 to 1.2 times the instructions"""
    assert _shares(target, one) == []
    shares = _shares(target, two)
    assert len(shares) == len(two) and max(shares) <= 1.0


@pytest.mark.sweep
@pytest.mark.parametrize("target", BOARDS)
def test_sixty_small_nets(target: str) -> None:
    shares = _shares(target, range(60))
    assert len(shares) > 20 and max(shares) <= 1.0
