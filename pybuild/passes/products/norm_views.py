"""How the elements of a norm are read: [outer, rows, groups, n] of elements of which
each has the number of its group. Knows no node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array

Numbers = npt.NDArray[np.int64]
View = tuple[int, int, int, int]


def ordered(each: Array, shape: tuple[int, ...], turned: bool) -> Array:
    """Values of elements in their order, or with channels last."""
    if not turned:
        return each
    return np.moveaxis(each.reshape(shape), 1, -1).reshape(-1)


def view_by_owners(owners: Numbers) -> View | None:
    """[outer, rows, groups, n] of elements of which each has the number of its group;
    None: they do not lie so."""
    count = owners.size
    inner = _first(owners != owners[0], count)
    lines = owners[::inner]
    if count % inner or not (lines == lines[0]).any():
        return None
    again = np.flatnonzero(lines[1:] == lines[0])
    groups = int(again[0]) + 1 if again.size else 1
    rows = int((lines == lines[0]).sum())
    outer = count // (rows * groups * inner)
    view = (outer, rows, groups, inner)
    if outer * rows * groups * inner != count:
        return None
    numbers = np.arange(outer * groups).reshape(outer, 1, groups, 1)
    return view if (owners.reshape(view) == numbers).all() else None


def _first(true: npt.NDArray[np.bool_], none: int) -> int:
    found = int(true.argmax())
    return found if true[found] else none


def finer(view: View, shape: tuple[int, ...]) -> Iterator[View]:
    """The view, and those in which lines of an image have factors of their own, or
    all of a line's rows the same ones."""
    yield view
    outer, rows, groups, inner = view
    if rows == groups == 1:
        images, last = shape[0], shape[-1]
        if outer % images == 0 and outer > images:
            yield images, 1, outer // images, inner
        if last and inner % last == 0 and inner > last:
            yield outer, inner // last, 1, last
