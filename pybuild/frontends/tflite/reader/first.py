"""Makes another subgraph of a .tflite file its first, for tools that run only that
one.
"""

from __future__ import annotations

import struct

import tflite

_OFFSET = struct.Struct("<I")
_SUBGRAPHS = 8  # where the vtable of a model has its subgraphs


def with_first(data: bytes, number: int) -> bytes:
    """Return the file with the first subgraph and the given one exchanged. Operators
    that call one of the two then find the other; a subgraph that is run must not be
    called by one that it reaches."""
    if number == 0:
        return data
    table = tflite.Model.GetRootAs(data, 0)._tab
    start = table.Vector(table.Offset(_SUBGRAPHS))
    places = [start + 4 * n for n in (0, number)]
    targets = [at + _OFFSET.unpack_from(data, at)[0] for at in places]
    made = bytearray(data)
    for at, target in zip(places, reversed(targets), strict=True):
        _OFFSET.pack_into(made, at, target - at)
    return bytes(made)
