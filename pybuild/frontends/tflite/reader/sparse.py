"""Constants that a file stores without their zeros, with a table of dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

Places = npt.NDArray[np.int64]
_VECTORS = ("Uint8Vector", "Uint16Vector", "Int32Vector")
_DENSE = tflite.DimensionType.DENSE


def dense(
    sparsity: Any, data: npt.NDArray[np.uint8], shape: tuple[int, ...], item: int
) -> npt.NDArray[np.uint8]:
    """Return the bytes of all elements; item: bytes of one.

    Source  LiteRT FormatConverter::SparseToDense
    Errors  ValueError, IndexError if the table does not fit the shape
    """
    rank, count = len(shape), math.prod(shape)
    order = [int(n) for n in sparsity.TraversalOrderAsNumpy()]
    levels = [sparsity.DimMetadata(n) for n in range(sparsity.DimMetadataLength())]
    blocks = sparsity.BlockMapAsNumpy() if sparsity.BlockMapLength() else []
    if len(order) != len(levels) or sorted(order) != list(range(len(order))):
        raise ValueError(order)
    at: Places = np.zeros(1, np.int64)  # of what is stored, after each level
    places: list[Places] = []
    for level in levels:
        at, parents, index = _level(level, at, count)
        places = [*(one[parents] for one in places), index]
    where: list[Places] = [np.zeros(at.size, np.int64) for _ in shape]
    for axis, index in zip(order[:rank], places, strict=False):
        where[axis] = index
    for number, index in zip(order[rank:], places[rank:], strict=True):
        axis = int(blocks[number - rank])
        size = levels[rank + order[rank:].index(number)].DenseSize()
        where[axis] = where[axis] * size + index
    items = data.reshape(-1, item)
    inside = all(
        ((one >= 0) & (one < n)).all() for one, n in zip(where, shape, strict=True)
    )
    if at.size != len(items) or not inside:
        raise ValueError(len(items))
    made = np.zeros((count, item), np.uint8)
    made[np.ravel_multi_index(tuple(where), shape)] = items[at]
    return made.reshape(-1)


def _level(level: Any, at: Places, most: int) -> tuple[Places, Places, Places]:
    """One dimension further: places of what is stored, which one before each comes
    from, and its index along the dimension.
    """
    parents = np.arange(at.size)
    if level.Format() == _DENSE:
        size = level.DenseSize()
        counts = np.full(at.size, size, np.int64)
        firsts, listed = at * size, None
    else:
        segments = _numbers(level.ArraySegments(), level.ArraySegmentsType())
        listed = _numbers(level.ArrayIndices(), level.ArrayIndicesType())
        firsts, counts = segments[at], segments[at + 1] - segments[at]
    if counts.size and (counts.min() < 0 or int(counts.sum()) > most):
        raise ValueError(most)
    parents = np.repeat(parents, counts)
    steps = np.arange(parents.size) - np.repeat(np.cumsum(counts) - counts, counts)
    there = np.repeat(firsts, counts) + steps
    return there, parents, steps if listed is None else listed[there]


def _numbers(table: Any, kind: int) -> Places:
    names = {getattr(tflite.SparseIndexVector, name): name for name in _VECTORS}
    vector = getattr(tflite, names[kind])()
    vector.Init(table.Bytes, table.Pos)
    found: Places = np.asarray(vector.ValuesAsNumpy()).astype(np.int64)
    return found
