"""Rows and columns of a layer's images exchanged: its attributes and shapes.

Values lie in memory as before where an image has one row or one column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# operator -> the axis of its weights that belongs to the rows of its window
WEIGHTS = {"conv2d": 1, "depthwise_conv2d": 0, "conv2d_sums": 1,
           "depthwise_conv2d_sums": 0}  # fmt: skip
POOLS = ("avg_pool2d", "max_pool2d")
# pairs: of rows, of columns
_PAIRS = ("strides", "dilations", "input_dilations", "kernel")
_ROWS = 1  # the axis of images [N,H,W,C]


def exchanged(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of the same layer on images [N,W,H,C].

    Shapes  pads (top, left, bottom, right), or a pair for each of four axes
    """
    found = dict(attrs)
    for name in _PAIRS:
        if len(found.get(name, ())) == 2:
            found[name] = found[name][::-1]
    for name in ("begin", "end", "strides"):
        if len(found.get(name, ())) == 4:
            found[name] = swapped(found[name])
    pads: tuple[Any, ...] = tuple(found.get("pads", ()))
    if pads and isinstance(pads[0], Sequence):
        found["pads"] = swapped(pads)
    elif pads:
        top, left, bottom, right = pads
        found["pads"] = left, top, right, bottom
    if found.get("axis") in (_ROWS, _ROWS + 1):
        found["axis"] = 2 * _ROWS + 1 - found["axis"]
    return found


def swapped(items: Sequence[Any], axis: int = _ROWS) -> tuple[Any, ...]:
    """Return the items with those of an axis and the one after it exchanged."""
    before, (a, b), after = items[:axis], items[axis : axis + 2], items[axis + 2 :]
    return (*before, b, a, *after)
