"""A plugin of pytest for the whole of `./dev test`: LLVM optimises for one of ONE_OF
tests, drawn by their names, and leaves code as it was printed for others: it means the
same in an eighth of the time. `--all`, and a file by its name, optimise for all.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import Any

import pytest

from tests.compiled import plainly
from tests.near.quick_run import OPTIMISED

ONE_OF = 8
# whether the test that runs was drawn: of many kernels it may optimise few
drawn = False


def is_optimised(identity: str) -> bool:
    """Of a test by pytest's identity."""
    file = identity.partition("::")[0].rpartition("/")[2]
    return file in OPTIMISED or is_drawn(identity)


def is_drawn(identity: str) -> bool:
    return zlib.crc32(identity.encode()) % ONE_OF == 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global drawn
    plainly(not is_optimised(item.nodeid))
    drawn = is_drawn(item.nodeid)
    return (yield)
