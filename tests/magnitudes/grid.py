"""Numbers of every magnitude, and how far from the true result one may be.

Bound(ulps=2, least=2e-38): two units in the last place, or 2e-38, if that is more
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybuild.dtype import Array

# where functions begin, end, or are cut in two
_EDGES = (
    0.0, 0.125, 0.25, 0.267949, 0.5, 0.6745, 0.75, 1.0, 1.0606602, 1.5, 2.0, 2.5, 3.0,
    3.5, 4.0, 5.0, 6.0, 8.0, 9.0104, 10.0, 12.0, 15.0, 16.6355, 20.0, 40.0, 44.36,
    65504.0, 86.9, 87.0, 87.33655, 88.0, 88.72283, 88.8, 89.41598, 100.0, 103.2789,
    103.97208, 104.0, 2047.9999, 2048.0, 4096.5, 98304.0, 104173.0, 131123.0, 8388607.5,
    8388608.0, 16777216.0, 3e8, 1e9, 1e10, 1.9e19, 2e19, 16367173.0 * 2.0**72,
)  # fmt: skip


@functools.cache
def grid() -> Array:
    """float32 of both signs: zeros, subnormal ones, ties, ends of functions, infinity,
    no number, and many between."""
    rng = np.random.default_rng(0)
    powers = 2.0 ** np.arange(-149, 128)
    halves = np.arange(0, 30) / 4
    quarters = np.arange(1, 2000, 7) * (np.pi / 2)
    drawn = 10.0 ** rng.uniform(-45, 38.5, 1500)
    usual = rng.uniform(0, 12, 1000)
    edges = np.asarray(_EDGES, np.float32)
    near = [np.nextafter(edges, np.float32(to)) for to in (0, np.inf)]
    ends = [1e-45, 1.1754942e-38, 1.1754944e-38, 3e38, 3.4028235e38, np.inf]
    parts = [powers, powers * 1.5, halves, quarters, drawn, usual, edges, *near, ends]
    flat = np.concatenate([np.asarray(p, np.float64) for p in parts])
    with np.errstate(over="ignore"):
        whole = np.unique(flat.astype(np.float32))
    return np.concatenate([-whole[::-1], whole, np.float32([np.nan])])


@functools.cache
def halves() -> Array:
    """Every eleventh float16, and all that the grid has."""
    every = np.arange(0, 0x7C01, 11, np.uint16).view(np.float16)
    with np.errstate(over="ignore"):
        few = grid().astype(np.float16)
    return np.unique(np.concatenate([every, -every, few]))


@dataclass(frozen=True)
class Bound:
    """ulps  of the result's type, of the true result rounded to it
    least   what is allowed whatever the result
    """

    ulps: float = 2.0
    least: float = 0.0


def excess(found: Array, true: Any, bound: Bound) -> tuple[Array, Array]:
    """Where a result is outside the bound; and its distance in units of the last place.

    true  float64; what the type cannot hold is infinite there
    """
    kind = found.dtype
    with np.errstate(all="ignore"):
        real = np.asarray(true, np.float64)
        near = real.astype(kind)
        most = np.finfo(kind).max
        step = np.spacing(np.minimum(np.abs(near), most)).astype(np.float64)
        apart = np.abs(found.astype(np.float64) - real)
        alike = (np.isnan(found) & np.isnan(near)) | (found == near)
        steps = np.where(alike & ~np.isfinite(near), 0.0, apart / step)
        # next to infinity: the greatest number is as near
        last = np.abs(np.abs(real) - float(most)) <= bound.ulps * np.spacing(most)
    close = (steps <= bound.ulps + 0.5) | (apart <= bound.least)
    ended = (
        last & (np.isinf(near) | np.isinf(found)) & (np.sign(found) == np.sign(near))
    )
    return ~(alike | close | ended), steps
