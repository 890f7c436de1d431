"""LZ4 blocks: packed and unpacked here, so that one input gives one output everywhere.

The format that crt_lz4_unpack reads. Knows nothing of what the bytes mean.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

MIN_MATCH = 4
LAST_LITERALS = 5  # the last bytes of a block are never a match
MATCH_LIMIT = 12  # nor does one start in the last 12
MAX_DISTANCE = 65535
_TRIES = 32  # earlier places tried for a longer match


class Lz4Error(ValueError):
    """Bytes that are not an LZ4 block of the expected size."""


def pack(data: bytes) -> bytes:
    """An LZ4 block of `data`; the longest of the nearest 32 matches is taken."""
    earlier = _earlier(data)
    starts = np.flatnonzero(earlier >= 0)
    places, end = earlier.tolist(), len(data) - LAST_LITERALS
    out, anchor, at = bytearray(), 0, 0
    while True:
        found = int(np.searchsorted(starts, at))
        if found == len(starts):
            break
        at = int(starts[found])
        length, distance = _longest(data, places, at, end)
        if length < MIN_MATCH:
            at += 1
            continue
        ahead = _longest(data, places, at + 1, end)[0] if at + 1 in range(end) else 0
        if ahead > length + 1:
            at += 1
            continue
        _sequence(out, data[anchor:at], length, distance)
        at += length
        anchor = at
    _sequence(out, data[anchor:], 0, 0)
    return bytes(out)


def _earlier(data: bytes) -> npt.NDArray[np.int64]:
    """For each place the nearest one before it with the same 4 bytes, or -1."""
    count = max(0, len(data) - MATCH_LIMIT + 1)
    b = np.frombuffer(data, np.uint8).astype(np.uint32)
    words = np.zeros(count, np.uint32)
    for i in range(MIN_MATCH):
        words |= b[i : count + i] << np.uint32(8 * i)
    found = np.full(len(data), -1, np.int64)
    order = np.argsort(words, kind="stable")
    same = words[order[1:]] == words[order[:-1]]
    near = same & (order[1:] - order[:-1] <= MAX_DISTANCE)
    found[order[1:][near]] = order[:-1][near]
    return found


def _longest(data: bytes, places: list[int], at: int, end: int) -> tuple[int, int]:
    """Length and distance of the longest match of what begins at `at`."""
    best, distance, place = 0, 0, places[at]
    for _ in range(_TRIES):
        if place < 0 or at - place > MAX_DISTANCE:
            break
        if data[place + best] == data[at + best]:
            length = _common(data, place, at, end)
            if length > best:
                best, distance = length, at - place
                if at + best >= end:
                    break
        place = places[place]
    return best, distance


def _common(data: bytes, a: int, b: int, end: int) -> int:
    """The length of the common prefix of the bytes at a and at b, up to `end`."""
    length, step = 0, 32
    while step:
        size = min(step, end - b - length)
        here = data[a + length : a + length + size]
        if size > 0 and here == data[b + length : b + length + size]:
            length += size
            step *= 2
        else:
            step = size // 2
    return length


def _sequence(out: bytearray, literals: bytes, length: int, distance: int) -> None:
    """Literals, then a match (none where length is 0)."""
    extra = length - MIN_MATCH if length else 0
    out.append(min(len(literals), 15) << 4 | min(extra, 15))
    _more(out, len(literals))
    out += literals
    if length:
        out += distance.to_bytes(2, "little")
        _more(out, extra)


def _more(out: bytearray, length: int) -> None:
    """Writes the part of a length that does not fit in the token's 4 bits."""
    if length >= 15:
        full, rest = divmod(length - 15, 255)
        out += b"\xff" * full + bytes([rest])


def unpack(block: bytes, size: int) -> bytes:
    """The `size` bytes of a block.

    Errors  Lz4Error where the block is damaged or of another size
    """
    out, at = bytearray(), 0
    while True:
        token, at = _byte(block, at)
        length, at = _length(block, at, token >> 4, size - len(out))
        if length > len(block) - at:
            raise Lz4Error("literals go on after the end")
        out += block[at : at + length]
        at += length
        if at == len(block):
            break
        low, at = _byte(block, at)
        high, at = _byte(block, at)
        length, at = _length(block, at, token & 15, size - len(out) - MIN_MATCH)
        _copy(out, low | high << 8, length + MIN_MATCH)
    if len(out) != size:
        raise Lz4Error(f"gives {len(out)} bytes, not {size}")
    return bytes(out)


def _byte(block: bytes, at: int) -> tuple[int, int]:
    if at >= len(block):
        raise Lz4Error("ends too early")
    return block[at], at + 1


def _length(block: bytes, at: int, length: int, most: int) -> tuple[int, int]:
    if length == 15:
        more = 255
        while more == 255 and length <= most:
            more, at = _byte(block, at)
            length += more
    if length > most:
        raise Lz4Error("gives too many bytes")
    return length, at


def _copy(out: bytearray, distance: int, length: int) -> None:
    start = len(out) - distance
    if distance == 0 or start < 0:
        raise Lz4Error("a match begins before the first byte")
    pattern = bytes(out[start:])
    out += (pattern * (length // distance + 1))[:length]
