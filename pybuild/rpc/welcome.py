"""A board's description of itself when a session is offered: docs/rpc-protocol.md.

Knows frames and keys; no line.
"""

from __future__ import annotations

import struct

from pybuild.records import dataclass
from pybuild.rpc.frame import Frame, Kind
from pybuild.rpc.key import OFFER_BYTES, TAG_BYTES, Key, Seal

VERSION, KEYED = 1, 2  # of the protocol: without a key, with one
# data of a frame as crt/rpc.h has it
LEAST_DATA, MOST_DATA = 128, 65535
_WELCOME = struct.Struct("<8I")
WANTS_KEY = "the board serves only who has its key: give --key-file, or key_file="
HAS_NO_KEY = "the board has no key, so that anybody could be at the other end"
OTHER_KEY = "the board has another key, or what it says is changed on the way"


@dataclass(frozen=True)
class Welcome:
    """A board's description of itself; units: bytes, ticks a second (0: not known).

    most     data of a frame; waits: what it keeps while it deals with a frame
    library  name and content hash of what is in its flash
    """

    session: int
    version: int
    most: int
    waits: int
    hz: int
    memory: int
    objects: int
    has_ticks: bool
    library: str
    board: str


@dataclass(frozen=True)
class Offer:
    """A session; seal: what its frames are tagged with, None without a key.

    refused  why there is none
    """

    welcome: Welcome | None
    seal: Seal | None = None
    refused: str = ""


def offer_in(
    frame: Frame, nonce: int, asked: bytes = b"", key: Key | None = None
) -> Offer | None:
    """The offer in a frame; None where it is of something else.

    asked   what this side has put in, where there is a key
    """
    if frame.kind != Kind.WELCOME or len(frame.data) < _WELCOME.size:
        return None
    found = _of(frame, nonce, _WELCOME.size)
    if found is None:
        return None
    if key is None:
        wants = found.version == KEYED
        return Offer(None, refused=WANTS_KEY) if wants else Offer(found)
    if found.version != KEYED:
        return Offer(None, refused=HAS_NO_KEY)
    texts = _WELCOME.size + OFFER_BYTES
    seal = key.session(asked, frame.data[_WELCOME.size : texts])
    opened = seal.opened(frame) if len(frame.data) >= texts + TAG_BYTES else None
    found = None if opened is None else _of(opened, nonce, texts)
    if found is None:
        return Offer(None, refused=OTHER_KEY)
    return Offer(found, seal)


def _of(frame: Frame, nonce: int, texts: int) -> Welcome | None:
    """texts: where those begin"""
    version, most, waits, hz, memory, objects, ticks, for_ = _WELCOME.unpack_from(
        frame.data
    )
    if for_ != nonce:
        return None
    said = frame.data[texts:].split(b"\0")
    library, board = map(text, [*said, b"", b""][:2])
    facts = (version, most, waits, hz, memory, objects, bool(ticks), library, board)
    return Welcome(frame.session, *facts)


def text(data: bytes) -> str:
    """A board's text for people: control characters are escaped."""
    said = data.decode(errors="replace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in said)
