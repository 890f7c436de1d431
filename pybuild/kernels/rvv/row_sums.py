"""Sums of the channels of int8 over rows, a row at a time, on vectors of any length."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pybuild.ir.graph import Tensor
from pybuild.ir.loop import INT8, INT32, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.targets.target import Target

_v = partial(vectors, 16)  # made when it is first used
LEAST = 4  # channels


def on_vectors(one: Candidate, x: Tensor, target: Target) -> Candidate:
    """The candidate of portable/row_sums.py that adds rows of x, with a kernel on
    vectors where the core has them; maxima stay as they are."""
    assert one.func is not None
    is_sum = not one.func.name.startswith("max")
    if FEATURE not in target.features or x.dtype is not INT8 or not is_sum:
        return one
    _, height, width, channels = x.shape
    if channels < LEAST:
        return one
    k = _added(width, channels)
    cost = height * -(-channels // _v().lanes) * (5 * width + 10) + 14 * channels
    return replace(one, func=k.finish(in_place=True), args=tuple(k.values), cost=cost)


def _added(width_of: int, channels_of: int) -> Builder:
    """sums[c] = before[c] + one row's x[.., c]; sums and before may be one"""
    what = "sums of channels so far, with one more row: int8 to int32"
    order = "a vector of channels at a time, all pixels of the row"
    k = Builder("row_sums_rvv", told(what, order))
    to = k.row("sums", 0, INT32, writable=True)
    row, before = k.row("x", 1, INT8), k.row("before", 2, INT32)
    width, channels = k.arg("width", width_of), k.arg("channels", channels_of)
    with Steps(k, _v(), channels).each() as (at, n):
        total = k.let("total", _v().WORDS(offset(before, at), n))
        cell = k.let("cell", offset(row, at))
        with k.loop("ox", width, rolled=True):
            k.assign(total, _v().ADD(total, _v().WIDENED(cell, n), n))
            k.assign(cell, offset(cell, channels))
        k.store(to, at, total, count=n)
    return k
