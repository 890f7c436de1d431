"""Which loads and stores of small made kernels are proven, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.bounds.linear import Steps
from pybuild.bounds.values import Memory
from pybuild.bounds.walk import accesses
from pybuild.dtype import DType
from pybuild.ir.loop_parse import parse

HEAD = "def kernel(count: i32, width: i32):\n"
BOTH = "    y: mut(i8) = row(0, mut(i8))\n    x: ptr(i8) = row(1, ptr(i8))\n"
# a kernel's body, the bytes of its output and its input that it needs
NEEDS = {
    "rows after rows": (
        """
    for r in range(0, count, 1):
        for c in range(0, width, 1):
            y[r * width + c] = x[r * width + c]
""",
        48,
        48,
    ),
    "a pointer that moves": (
        """
    to: mut(i8) = y
    for r in range(0, count, 1):
        for c in range(0, width, 2):
            to[0] = x[c]
            to[1] = x[c + 1]
            to = at(to, 2)
""",
        48,
        8,
    ),
    "only what is inside of a row": (
        """
    for r in range(0, count, 1):
        column: i32 = r * 3 - 2
        if 0 <= min(column, (width - 1) - column):
            y[column] = x[column]
""",
        8,
        8,
    ),
    "a ring of three lines": (
        """
    slot: i32 = 0
    for r in range(0, count * 5, 1):
        y[slot] = x[0]
        after: i32 = slot + 1
        slot = select(after < 3, after, 0)
""",
        3,
        1,
    ),
    "every other of six": (
        """
    slot: i32 = 0
    for r in range(0, count * 5, 1):
        y[slot] = x[0]
        less: i32 = slot - 2
        slot = select(less < 0, less + 6, less)
""",
        5,
        1,
    ),
    "blocks and what is left": (
        """
    rest: i32 = width % 3
    whole: i32 = width - rest
    for c in range(0, whole, 3):
        y[c + 2] = x[c]
    for c in range(whole, width, 1):
        y[c] = x[c]
""",
        8,
        8,
    ),
    "turns that depend on another loop": (
        """
    for r in range(0, count, 1):
        for c in range(r, width, 1):
            y[c - r] = x[c]
""",
        8,
        8,
    ),
    "the part of a window that is in the row": (
        """
    for ox in range(0, count + 4, 1):
        x0: i32 = ox * 2 - 3
        first: i32 = min(max((1 - x0) / 2, 0), 3)
        ahead: i32 = (width - x0 + 1) / 2
        last: i32 = max(min(ahead, 3), first)
        for kx in range(first, last, 1):
            y[x0 + kx * 2] = x[x0 + kx * 2]
""",
        8,
        8,
    ),
    "by what is read": (
        """
    for c in range(0, width, 1):
        value: i32 = cast(x[c], i32)
        y[value + 128] = x[c]
""",
        256,
        8,
    ),
    "held within its ends": (
        """
    for c in range(0, width, 1):
        value: i32 = cast(x[c], i32)
        y[min(max(value, 0), 9)] = x[c]
""",
        10,
        8,
    ),
    "words": (
        """
    for c in range(0, width, 4):
        word: i32 = wide(x, c, i32, 1)
        store_wide(y, c, word)
""",
        8,
        8,
    ),
}


def open_of(body: str, output: int, given: int) -> list[bool]:
    func = parse(HEAD + BOTH + body)
    memories = [Memory("output", output), Memory("input", given)]
    found = accesses(func, (6, 8), memories)
    assert found
    return [access.is_store for access in found if not access.is_inside]


@pytest.mark.parametrize("name", NEEDS)
def test_what_a_kernel_needs_is_found_to_the_byte(name: str) -> None:
    body, output, given = NEEDS[name]
    assert open_of(body, output, given) == []
    assert set(open_of(body, output - 1, given)) == {True}
    assert set(open_of(body, output, given - 1)) == {False}


def test_before_the_first_byte() -> None:
    body = "    for c in range(0, width, 1):\n        y[c - 1] = x[c]\n"
    assert open_of(body, 100, 100) == [True]


def test_a_constant_is_read_where_it_says() -> None:
    """Each second word leads into the rows, where it is negative: -1 - its row."""
    table = np.array([7, -1, 9, 500, 11, -3], np.int32)
    text = """
def kernel():
    y: mut(i8) = row(0, mut(i8))
    table: ptr(i32) = row(1, ptr(i32))
    rows: ptr(i8) = row(2, ptr(i8))
    for turn in range(0, 3, 1):
        word: i32 = table[turn * 2 + 1]
        if word < 0:
            y[0] = rows[-1 - word]
"""
    for size, inside in ((3, True), (2, False)):
        memories = [Memory("y", 1), Memory("table", 24, table), Memory("rows", size)]
        found = accesses(parse(text), (), memories)
        assert all(access.is_inside for access in found) is inside


def test_values_of_a_constant_are_those_at_its_steps() -> None:
    memory = Memory("table", 24, np.array([7, -1, 9, 500, 11, -3], np.int32))
    assert memory.values(Steps(0, 16, 8), DType.INT32) == (7, 11)
    assert memory.values(Steps(4, 20, 8), DType.INT32) == (-3, 500)
    assert memory.values(Steps(4, 4, 0), DType.INT32) == (-1, -1)
    assert memory.values(Steps(0, 16, 8), DType.FLOAT32) is None
