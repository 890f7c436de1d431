"""Vectors that grow, in the loop IR: as text, as types, and which bytes they reach."""

from __future__ import annotations

import pytest

from pybuild.bounds.values import Memory
from pybuild.bounds.walk import accesses
from pybuild.ir.loop import INT8, Func, offset
from pybuild.ir.loop_parse import parse
from pybuild.ir.loop_text import text
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import vectors
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS

V = vectors(16)


def _copy(count: int) -> tuple[Func, tuple[int, ...]]:
    """y = x, so many bytes."""
    k = Builder("copied")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    with Steps(k, V, k.arg("count", count)).each() as (at, n):
        k.store(y, at, V.BYTES(offset(x, at), n), count=n)
    return k.finish(), tuple(k.values)


def test_the_text_is_read_back() -> None:
    func, _ = _copy(20)
    assert "store_some(y, at, " in text(func)
    assert "grows(i8, 16)" in text(func)
    assert parse(text(func)) == func


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
def test_no_byte_beside_is_reached(count: int) -> None:
    """Whether the last vector is full or not."""
    func, args = _copy(count)
    memories = Memory("y", count), Memory("x", count)
    found = accesses(func, args, memories)
    for memory, stored in zip(memories, (True, False), strict=True):
        own = [one for one in found if one.memory is memory]
        assert own and all(one.is_store == stored for one in own)
        assert min(one.least for one in own) == 0
        assert max(one.end for one in own) == count


def test_turns_are_counted_by_the_lanes() -> None:
    """Forty bytes are three vectors, sixteen are one."""
    prices = []
    for count in (16, 40):
        func, args = _copy(count)
        prices.append(price(Candidate(func, args, (), ()), TARGETS["rv32imcv"]))
    assert 2 < (prices[1].instructions - 20) / (prices[0].instructions - 20) <= 3


def test_a_store_says_how_many_lanes() -> None:
    k = Builder("wrong")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    k.store(y, 0, V.BYTES(x, k.arg("n", 3)))
    with pytest.raises(ValueError, match="a count of lanes, or none"):
        k.finish()
