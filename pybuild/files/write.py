"""The one place that writes files: whole or not at all, and through no link.

The bytes go to a file of a random name beside the one that is meant, which is new (a
link that lies in wait there is not followed), and that is renamed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

_FLAGS = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
)  # fmt: skip
_MODE = 0o666  # less what the user's umask takes


def write_bytes(path: Path, parts: Iterable[bytes | memoryview]) -> str:
    """Over a file that is there; its SHA-256. A link of that name is replaced, and what
    it leads to stays. The bytes of what replaces a file are on the disk before its name
    is: a fall of power leaves the old one or the new.

    Errors  OSError; nothing is left then
    """
    partial = path.with_name(f".crt-{secrets.token_hex(8)}.part")
    digest = hashlib.sha256()
    number = os.open(partial, _FLAGS, _MODE)
    try:
        with os.fdopen(number, "wb") as file:
            for part in parts:
                digest.update(part)
                file.write(part)
            if path.exists():
                file.flush()
                os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:  # no room, a folder of this name, Ctrl-C
        partial.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def leads_out(folder: Path, name: str) -> bool:
    """True if a file of that name would lie elsewhere than in the folder: by its name,
    or by a link among the folders on its way."""
    inside = folder.resolve()
    return not (inside / name).parent.resolve().is_relative_to(inside)
