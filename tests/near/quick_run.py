"""A plugin of pytest for `./dev test --quick`: leaves out what tests/quick.toml names,
runs first what is near to a change, and has LLVM leave code as it was printed.

--near ARGUMENTS  tests before all others, as --nearest of nearest.py; of what is left
                  out those, too, for NEAR seconds of each process
"""

from __future__ import annotations

import resource
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.compiled import plainly
from tests.near.nearest import place_of
from tests.quick import MOST, is_quick, left_out

# these are about what LLVM makes of code
OPTIMISED = {"test_vectoriser.py", "test_compiled.py", "test_other_objects.py"}
NEAR = 20.0

_DEAR = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "tests in this order before all others, as of --nearest of nearest.py"
    parser.addoption("--near", default="", help=said)


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """What is near to a change is first, and then of what is left out, too."""
    names, lines = left_out(), config.getoption("--near").splitlines()
    kept: list[tuple[int, pytest.Item]] = []
    others = []
    for item in items:
        rank = place_of(item.nodeid, lines)
        quick = is_quick(item.nodeid, names)
        item.stash[_DEAR] = not quick
        if quick or (rank < len(lines) and not item.get_closest_marker("slow")):
            kept.append((rank, item))
        else:
            others.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = [item for _, item in sorted(kept, key=lambda one: one[0])]


def _spent() -> float:
    """Of this process and of those that it waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in used)


_on_dear = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global _on_dear
    plainly(item.path.name not in OPTIMISED)
    before = _spent()
    result = yield
    if item.stash[_DEAR]:
        _on_dear += _spent() - before
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.stash[_DEAR] and _on_dear > NEAR:
        pytest.skip(f"near, but {NEAR:.0f} seconds are over: ./dev test FILE")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _spent()
    yield
    taken = _spent() - before
    if taken > MOST and not item.stash[_DEAR]:
        pytest.fail(f"{taken:.1f} seconds of the processor: tests/quick.toml names it")
