"""y = table[x] of bytes on vectors of any length: an indexed load (vluxei8)."""

from __future__ import annotations

from functools import partial

from pybuild.ir.loop import Expr, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.targets.target import Target

_v = partial(vectors, 32)  # made when it is first used
LEAST = 8  # elements


def suits(target: Target, count: int) -> bool:
    """True if so many elements are looked up on vectors."""
    return FEATURE in target.features and count >= LEAST


def write(k: Builder, to: Expr, source: Expr, table: Expr, size: Expr) -> None:
    """Looks `size` bytes up in a table of 256, that of -128 first; x and y may be
    one."""
    with Steps(k, _v(), size).each() as (at, n):
        x = _v().BYTES(offset(source, at), n)
        k.store(to, at, _v().TABLE(table, x, n), count=n)
