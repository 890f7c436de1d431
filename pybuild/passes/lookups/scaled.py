"""Tables of float32 whose values are integers of a byte times a scale: what a file with
a dequantised table holds. The values decide, not the file. Knows no graph.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.records import dataclass

_STEPS = 255  # from the least integer to the greatest
_FEW = 8  # rows, or values of a row, that mostly say whether the others are such


@dataclass(frozen=True)
class ScaledTable:
    """(numbers - zero) * scales, in float32, are the values.

    Shapes  numbers int8, as the table; scales float32[1] or one for each row
    """

    numbers: Array
    scales: Array
    zero: int = 0


def scaled_table(table: Array, rows: bool) -> ScaledTable | None:
    """The integers and scales of a table of finite numbers; None: it has none, or it
    has -0.

    rows  its first axis may have a scale for each place, without a zero point
    """
    flat = table.reshape(1, -1)
    if not np.isfinite(flat).all() or (np.signbit(flat) & (flat == 0)).any():
        return None
    scales = _scales(flat, _STEPS)
    if scales is not None:
        return _shifted(table, scales)
    flat = table.reshape(len(table), -1)
    if not rows or _scales(flat[:_FEW], 128) is None:
        return None
    scales = _scales(flat, 128)
    if scales is None:
        return None
    numbers = _numbers(flat, scales)
    if numbers.max() > 127:
        return None
    return ScaledTable(numbers.astype(np.int8).reshape(table.shape), scales)


def _shifted(table: Array, scales: Array) -> ScaledTable | None:
    """With the zero point that makes bytes of all integers, 0 if they are."""
    numbers = _numbers(table.reshape(1, -1), scales)
    least, most = int(numbers.min()), int(numbers.max())
    zero = 0
    if least < -128 or most > 127:
        zero = min(max(-128 - least, -128), 127)
    held = numbers + zero
    if held.min() < -128 or held.max() > 127:
        return None
    return ScaledTable(held.astype(np.int8).reshape(table.shape), scales, zero)


def _scales(rows: Array, steps: int) -> Array | None:
    """A scale for each row, whose greatest number is at most so many steps; None: some
    row has none."""
    most = np.abs(rows).max(1, initial=0)
    found = np.where(most == 0, np.float32(1), np.float32(0))
    few = rows[:, :: max(1, rows.shape[1] // _FEW)]
    for count in range(1, steps + 1):
        for to in (None, np.float32(0), np.float32(np.inf)):
            at = np.flatnonzero(found == 0)
            if not at.size:
                return found
            scales = (most[at] / np.float32(count)).astype(np.float32)
            if to is not None:
                scales = np.nextafter(scales, to)
            fits = scales >= np.finfo(np.float32).tiny
            for some in (few, rows):
                at, scales = at[fits], scales[fits]
                fits = _fits(some[at], scales)
            found[at[fits]] = scales[fits]
    return found if (found > 0).all() else None


def _fits(rows: Array, scales: Array) -> Array:
    """True for each row that is integers times its scale."""
    numbers = _numbers(rows, scales).astype(np.float32)
    again = np.multiply(numbers, scales[:, None], dtype=np.float32)
    made: Array = (again == rows).all(1)
    return made


def _numbers(rows: Array, scales: Array) -> Array:
    made: Array = np.rint(rows.astype(np.float64) / scales[:, None].astype(np.float64))
    return made
