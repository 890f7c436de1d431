"""Frames on a stream of bytes: docs/rpc-protocol.md, the same as crt/src/frame.c.

Knows no call and no line.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum

from pybuild.records import dataclass

_FLAG, _ESCAPE = b"\x7e", 0x7D
# the escape itself first on the way out, last on the way in
_STUFFED = tuple(
    (bytes([byte]), bytes([_ESCAPE, byte ^ 0x20])) for byte in (0x7D, 0x7E, 0x11, 0x13)
)
_HEADER = struct.Struct("<BBHII")
EXTRA = _HEADER.size + 4  # bytes beside the data
_MOST = 2 * (65535 + EXTRA)  # between two flags, all escaped


class Kind(IntEnum):
    HELLO = 1
    WELCOME = 2
    CALL = 3
    REPLY = 4
    WORKING = 5
    LOG = 6
    LOST = 7


@dataclass(frozen=True)
class Frame:
    kind: int
    session: int
    sequence: int
    data: bytes = b""


def header(frame: Frame, more: int = 0) -> bytes:
    """Its first bytes, as they are with `more` bytes behind its data."""
    count = len(frame.data) + more
    return _HEADER.pack(frame.kind, 0, count, frame.session, frame.sequence)


def encode(frame: Frame) -> bytes:
    """The frame as bytes on the line, flags included."""
    body = header(frame) + frame.data
    body += zlib.crc32(body).to_bytes(4, "little")
    for byte, stuffed in _STUFFED:
        body = body.replace(byte, stuffed)
    return _FLAG + body + _FLAG


class Decoder:
    """Takes bytes as they arrive and gives whole frames."""

    def __init__(self) -> None:
        self._kept = b""
        self._begun = False  # a flag was seen
        self.dropped = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        *pieces, self._kept = (self._kept + data).split(_FLAG)
        for piece in pieces:
            begun, self._begun = self._begun, True
            if not piece or not begun:
                continue
            frame = _decoded(piece)
            if frame is None:
                self.dropped += 1
            else:
                yield frame
        if len(self._kept) > _MOST or not self._begun:
            self._kept = b""


def _decoded(piece: bytes) -> Frame | None:
    for byte, stuffed in reversed(_STUFFED):
        piece = piece.replace(stuffed, byte)
    if len(piece) < EXTRA:
        return None
    kind, zero, count, session, sequence = _HEADER.unpack_from(piece)
    crc = int.from_bytes(piece[-4:], "little")
    if zero or count != len(piece) - EXTRA or crc != zlib.crc32(piece[:-4]):
        return None
    return Frame(kind, session, sequence, piece[_HEADER.size : -4])
