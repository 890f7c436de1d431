"""Large weights, some output channels at a time.

What is computed of them is wider than they are: of a chunk it is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array

MOST = 1 << 18  # weights of a chunk

Kind = TypeVar("Kind", bound=np.generic)


def chunks(
    rows: npt.NDArray[Kind], each: int, together: int = 1
) -> Iterator[npt.NDArray[Kind]]:
    """Some of the rows after the others, a multiple of `together`; of none one chunk.

    rows  weights [O, ...], or the numbers of output channels
    each  weights of a row
    """
    step = max(1, MOST // max(1, together * each)) * together
    for start in range(0, max(1, len(rows)), step):
        yield rows[start : start + step]


def filled(made: npt.NDArray[Kind], parts: Iterable[Array]) -> npt.NDArray[Kind]:
    """`made`, which is flat, with the parts in it, one after another."""
    at = 0
    for part in parts:
        made[at : at + part.size] = part.reshape(-1)
        at += part.size
    return made
