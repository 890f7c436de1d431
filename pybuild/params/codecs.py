"""How the payload of one parameter may be packed: a table of codecs by number.

Numbers below 32768 are ours, the others are the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybuild.params import lz4
from pybuild.records import dataclass

NONE, LZ4 = 0, 1


@dataclass(frozen=True)
class Codec:
    """A way to pack bytes; the device needs the other half.

    pack    bytes -> packed bytes
    unpack  packed bytes, size -> bytes; ValueError for damaged ones
    """

    number: int
    name: str
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes, int], bytes]


Codecs = Mapping[int, Codec]


def _as_it_is(packed: bytes, size: int) -> bytes:
    return packed


CODECS: dict[int, Codec] = {
    NONE: Codec(NONE, "none", bytes, _as_it_is),
    LZ4: Codec(LZ4, "lz4", lz4.pack, lz4.unpack),
}


def codec_called(name: str) -> Codec:
    """One of CODECS."""
    return next(codec for codec in CODECS.values() if codec.name == name)


def codec_name(number: int) -> str:
    """For messages and tables."""
    return CODECS[number].name if number in CODECS else f"codec {number}"
