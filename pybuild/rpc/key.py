"""A key that a host and a board share: only who has it is served, and no call is
executed twice.

The frames' tags: docs/rpc-protocol.md, the same as crt/src/rpc.c. Knows no line.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from dataclasses import field, replace

from pybuild.errors import UsageError
from pybuild.files.read import KIB, read_bytes
from pybuild.records import dataclass
from pybuild.rpc.frame import Frame, header

KEY_BYTES, NONCE_BYTES, OFFER_BYTES, TAG_BYTES = 32, 16, 24, 16
OPTION, VARIABLE = "--key-file", "CRT_KEY_FILE"
_HINT = "python -c 'import secrets; print(secrets.token_hex(32))' > board.key"


@dataclass(frozen=True)
class Key:
    """A key of 32 bytes, which printing does not reveal."""

    secret: bytes = field(repr=False)

    def session(self, asked: bytes, offered: bytes) -> Seal:
        """The key of a session: from the bytes that the host and the board have
        contributed."""
        return Seal(hmac.digest(self.secret, asked + offered, "sha256"))


@dataclass(frozen=True)
class Seal:
    """The key of one session."""

    key: bytes = field(repr=False)

    def sealed(self, frame: Frame) -> Frame:
        """The frame with its tag behind the data."""
        tag = hmac.digest(self.key, header(frame, TAG_BYTES) + frame.data, "sha256")
        return replace(frame, data=frame.data + tag[:TAG_BYTES])

    def opened(self, frame: Frame) -> Frame | None:
        """The frame without its tag; None if the tag is wrong."""
        plain = replace(frame, data=frame.data[:-TAG_BYTES])
        if len(frame.data) < TAG_BYTES:
            return None
        whole = self.sealed(plain).data
        return plain if hmac.compare_digest(whole, frame.data) else None


def random_bytes() -> bytes:
    """The random bytes that the host adds to a session."""
    return secrets.token_bytes(NONCE_BYTES)


def key_in(path: str | os.PathLike[str]) -> Key:
    """The key in a file: 64 hexadecimal digits.

    Errors  UsageError, which says nothing of what is in the file
    """
    where = f"{OPTION} {os.fspath(path)}"
    try:
        text = read_bytes(path, KIB).decode("ascii")
    except OSError as error:
        raise UsageError(where, f"cannot be read ({error.strerror})") from None
    except ValueError:
        text = ""
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", text.strip()):
        what = f"is not a key of {2 * KEY_BYTES} hexadecimal digits"
        raise UsageError(where, what, _HINT)
    return Key(bytes.fromhex(text.strip()))


def key_from(path: str | os.PathLike[str] | None) -> Key | None:
    """The key in this file, else in that which CRT_KEY_FILE names; None for neither."""
    path = path or os.environ.get(VARIABLE) or None
    return None if path is None else key_in(path)
